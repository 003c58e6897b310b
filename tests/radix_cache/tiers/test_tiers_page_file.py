import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from phloem.radix_cache.tiers import page_file
from phloem.radix_cache.tiers.page_file import HEADER, DamagedFile

KEY = bytes(range(32))
PAYLOAD = np.arange(100, dtype=np.uint8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "page"
    page_file.write(file, KEY, PAYLOAD)
    return file


def test_a_page_comes_back(path: Path) -> None:
    assert (page_file.read(path, KEY, 100) == PAYLOAD).all()
    assert path.stat().st_size == page_file.file_bytes(100)
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("at", range(0, HEADER.size + 100, 3))
def test_any_flipped_bit_is_found(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile):
        page_file.read(path, KEY, 100)


@pytest.mark.parametrize("length", [0, 5, HEADER.size, HEADER.size + 99, HEADER.size + 101])
def test_another_length_is_found(path: Path, length: int) -> None:
    path.write_bytes((path.read_bytes() + b"x")[:length])
    with pytest.raises(DamagedFile):
        page_file.read(path, KEY, 100)


def test_another_pages_file_is_found(path: Path) -> None:
    with pytest.raises(DamagedFile):
        page_file.read(path, bytes(32), 100)


def test_a_page_of_another_size_is_found(path: Path) -> None:
    for size in (99, 101):
        with pytest.raises(DamagedFile):
            page_file.read(path, KEY, size)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    with file_size_limit(HEADER.size + 50), pytest.raises(OSError):
        page_file.write(tmp_path / "page", KEY, PAYLOAD)
    assert [*tmp_path.iterdir()] == []


@contextmanager
def file_size_limit(nbytes: int) -> Iterator[None]:
    """Let files take so many bytes and refuse the rest, as a disk does that fills up."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "page"
    target.mkdir()  # a file cannot be renamed to a folder's name
    with pytest.raises(OSError):
        page_file.write(target, KEY, PAYLOAD)
    assert [*tmp_path.iterdir()] == [target]
