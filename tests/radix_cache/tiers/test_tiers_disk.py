"""The disk as one tier: queue, files and what is read ahead give the same pages."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from phloem.radix_cache.tiers import DiskStore
from phloem.radix_cache.tiers.keys import Key
from phloem.radix_cache.tiers.page_file import file_bytes
from phloem.radix_cache.tiers.raw_pages import Payload

KEY, SIZE = bytes(range(32)), 100
PAGE = np.arange(SIZE, dtype=np.uint8)


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path, 10 * file_bytes(SIZE), queue_bytes=2 * SIZE)


@pytest.fixture
def gate(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Nothing is written until it is set."""
    gate, write = threading.Event(), store.folder.write

    def wait_and_write(key: Key, payload: Payload) -> None:
        assert gate.wait(30)
        write(key, payload)

    monkeypatch.setattr(store.folder, "write", wait_and_write)
    return gate


def holds(store: DiskStore) -> bool:
    payload = store.get(KEY, SIZE)
    return KEY in store and payload is not None and bool((payload == PAGE).all())


def test_a_page_is_there_before_and_after_it_is_written(
    store: DiskStore, gate: threading.Event
) -> None:
    store.put(KEY, PAGE)
    assert holds(store)
    gate.set()
    assert store.writer.drain(30)
    assert holds(store)


def test_a_page_that_is_still_to_be_written_is_not_missed(
    store: DiskStore, gate: threading.Event
) -> None:
    store.put(KEY, PAGE)
    store.read_ahead([KEY], SIZE)
    wait(store.prefetch._pages.values())
    gate.set()
    assert store.writer.drain(30)
    assert holds(store)


def test_patience_ends_at_its_deadline(store: DiskStore, gate: threading.Event) -> None:
    for number in range(2):
        assert store.put_patiently(bytes([number]) * 32, PAGE, monotonic() + 30)
    assert not store.put_patiently(KEY, PAGE, monotonic())
    gate.set()
    assert store.put_patiently(KEY, PAGE, monotonic() + 30)
    store.close(monotonic() + 30)
    assert KEY in store.folder
