"""Killed while it writes, again and again: no page is ever read that is not whole.

A page's content follows from its key, so that whoever finds it knows what it should hold.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
import sys
import time
from multiprocessing.context import ForkProcess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from phloem.radix_cache.tiers import DiskStore
from phloem.radix_cache.tiers.folder import PageFolder, key_of

PAGE_BYTES = 200_000
LIMIT = 40 * PAGE_BYTES
"""Of the folder: small enough for old pages to be removed all the time."""
KILLS = 20


def page(key: bytes) -> NDArray[np.uint8]:
    return np.random.default_rng(list(key)).integers(0, 256, PAGE_BYTES, dtype=np.uint8)


def write_for_ever(folder: Path, seed: int) -> None:
    store = DiskStore(folder, LIMIT)
    for number in itertools.count():
        key = seed.to_bytes(16, "big") + number.to_bytes(16, "big")
        store.put(key, page(key))


def start(folder: Path, seed: int) -> ForkProcess:
    process = multiprocessing.get_context("fork").Process(
        target=write_for_ever, args=(folder, seed)
    )
    process.start()
    return process


def check_pages(folder: Path) -> int:
    """How many pages there are; each of them whole."""
    store, names = PageFolder(folder, LIMIT), [file.name for file in folder.iterdir()]
    pages = [(key, store.read(key, PAGE_BYTES)) for name in names if (key := key_of(name))]
    whole = [(key, payload) for key, payload in pages if payload is not None]
    for key, payload in whole:
        assert (payload == page(key)).all()
    return len(whole)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_no_page_is_read_that_was_cut_by_a_kill(tmp_path: Path) -> None:
    """Two processes write to the folder at once, and one of them is killed each time."""
    rng = random.Random(0)
    survivor = start(tmp_path, 0)
    found = 0
    try:
        for seed in range(1, KILLS + 1):
            process = start(tmp_path, seed)
            time.sleep(rng.uniform(0.1, 0.4))
            process.kill()
            process.join()
            found += check_pages(tmp_path)
    finally:
        survivor.kill()
        survivor.join()
    assert found > KILLS
