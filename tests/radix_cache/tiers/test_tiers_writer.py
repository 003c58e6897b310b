"""Writing in the background: it may lose pages to the disk, but never waits and never fails."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import numpy as np
import pytest

from phloem.radix_cache.tiers.folder import PageFolder
from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.page_file import file_bytes
from phloem.radix_cache.tiers.raw_pages import Payload
from phloem.radix_cache.tiers.writer import Writer

SIZE = 100


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def page(number: int) -> np.ndarray:
    return np.full(SIZE, number, dtype=np.uint8)


class SlowFolder(PageFolder):
    """A disk that stands still until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 100 * file_bytes(SIZE))
        self.go = threading.Event()

    def write(self, key: Key, payload: Payload) -> None:
        assert self.go.wait(30)
        super().write(key, payload)


def test_what_was_offered_is_written_before_the_end(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path, 100 * file_bytes(SIZE))
    writer = Writer(folder, 100 * SIZE)
    for number in range(20):
        writer.offer(key(number), page(number))
    assert writer.close(30)
    assert all(key(number) in folder for number in range(20))
    assert writer.dropped == 0


def test_a_full_queue_drops_and_does_not_wait(tmp_path: Path) -> None:
    folder = SlowFolder(tmp_path)
    writer = Writer(folder, 3 * SIZE)
    for number in range(5):
        writer.offer(key(number), page(number))
    assert writer.dropped == 2
    assert not writer.wait_for_room(SIZE, 0)
    folder.go.set()
    assert writer.wait_for_room(SIZE, 30)
    assert writer.close(30)
    assert [number for number in range(5) if key(number) in folder] == [0, 1, 2]


def test_a_page_can_be_had_until_it_is_in_its_file(tmp_path: Path) -> None:
    folder = SlowFolder(tmp_path)
    writer = Writer(folder, 3 * SIZE)
    writer.offer(key(1), page(1))
    writer.offer(key(1), page(1))  # is no second page
    waiting = writer.get(key(1))
    assert waiting is not None and (waiting == page(1)).all()
    folder.go.set()
    assert writer.drain(30)
    assert writer.get(key(1)) is None
    assert key(1) in folder
    assert writer.close(30)


def test_closing_in_no_time_loses_the_queue_only(tmp_path: Path) -> None:
    folder = SlowFolder(tmp_path)
    writer = Writer(folder, 3 * SIZE)
    for number in range(3):
        writer.offer(key(number), page(number))
    threading.Timer(0.2, folder.go.set).start()
    assert not writer.close(0)
    assert writer.dropped >= 2
    writer.offer(key(9), page(9))
    assert key(9) not in folder


def test_errors_are_told_once_and_survived(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "cache"
    folder = PageFolder(place, 100 * file_bytes(SIZE))
    writer = Writer(folder, 100 * SIZE)
    place.rmdir()
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            writer.offer(key(number), page(number))
        assert writer.drain(30)
    assert writer.dropped == 5
    assert len(caplog.records) == 1
    place.mkdir()
    writer.offer(key(7), page(7))
    assert writer.close(30)
    assert key(7) in folder
