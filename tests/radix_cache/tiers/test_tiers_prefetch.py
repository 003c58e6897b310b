"""Pages read ahead: the same ones, no more than there is room for, and none kept for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from phloem.radix_cache.tiers import prefetch
from phloem.radix_cache.tiers.folder import PageFolder
from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.page_file import file_bytes
from phloem.radix_cache.tiers.prefetch import Prefetch
from phloem.radix_cache.tiers.raw_pages import Payload

SIZE = 100


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


KEYS = [key(number) for number in range(5)]


class GatedFolder(PageFolder):
    """A disk that stands still until it is let go, and counts what is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 100 * file_bytes(SIZE))
        self.go = threading.Event()
        self.reads: list[Key] = []
        for number, name in enumerate(KEYS):
            self.write(name, np.full(SIZE, number, dtype=np.uint8))

    def read(self, key: Key, size: int) -> Payload | None:
        assert self.go.wait(30)
        self.reads.append(key)
        return super().read(key, size)


@pytest.fixture
def folder(tmp_path: Path) -> GatedFolder:
    return GatedFolder(tmp_path)


def test_what_was_asked_for_is_read_once(folder: GatedFolder) -> None:
    ahead = Prefetch(folder)
    ahead.ask(KEYS[:4], SIZE)
    ahead.ask(KEYS[:4], SIZE)
    folder.go.set()
    for number, name in enumerate(KEYS):
        payload = ahead.take(name, SIZE)
        assert payload is not None and (payload == number).all()
    assert sorted(folder.reads) == KEYS
    assert len(ahead) == 0


def test_taking_waits_for_a_page_on_its_way(folder: GatedFolder) -> None:
    ahead = Prefetch(folder)
    ahead.ask(KEYS[:1], SIZE)
    threading.Timer(0.1, folder.go.set).start()
    payload = ahead.take(KEYS[0], SIZE)
    assert payload is not None and (payload == 0).all()
    assert folder.reads == KEYS[:1]


def test_no_more_is_read_ahead_than_there_is_room_for(folder: GatedFolder) -> None:
    ahead = Prefetch(folder, limit=3 * SIZE)
    ahead.ask(KEYS, SIZE)
    assert len(ahead) == 3
    folder.go.set()
    assert ahead.take(KEYS[4], SIZE) is not None  # read when it is wanted
    ahead.take(KEYS[0], SIZE)
    ahead.ask(KEYS[3:], SIZE)
    assert len(ahead) == 3


def test_pages_that_nobody_takes_make_room(
    folder: GatedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "STALE_SECONDS", 0.0)
    folder.go.set()
    ahead = Prefetch(folder, limit=3 * SIZE)
    ahead.ask(KEYS[:3], SIZE)
    ahead.ask(KEYS[3:], SIZE)
    assert len(ahead) == 2


def test_a_page_that_is_not_there_is_a_miss(folder: GatedFolder) -> None:
    folder.go.set()
    ahead = Prefetch(folder)
    ahead.ask([key(9)], SIZE)
    assert ahead.take(key(9), SIZE) is None
