"""Page files of bounded size together, in the order of their use, shared between processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from phloem.radix_cache.tiers.folder import PageFolder
from phloem.radix_cache.tiers.page_file import file_bytes

SIZE = 100
FILE = file_bytes(SIZE)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def page(number: int) -> np.ndarray:
    return np.full(SIZE, number % 256, dtype=np.uint8)


def on_disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def age(folder: Path, number: int, seconds: float) -> None:
    """Let the page have been used so long ago."""
    then = time.time() - seconds
    os.utime(folder / f"{key(number).hex()}.kv", (then, then))


def held(folder: PageFolder, count: int = 100) -> list[int]:
    return [number for number in range(count) if folder.read(key(number), SIZE) is not None]


def test_pages_survive_a_restart(tmp_path: Path) -> None:
    PageFolder(tmp_path, 10 * FILE).write(key(1), page(1))
    again = PageFolder(tmp_path, 10 * FILE)
    assert key(1) in again
    assert again.used == FILE
    assert (again.read(key(1), SIZE) == page(1)).all()


def test_only_the_owner_may_read_pages(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path / "cache", 10 * FILE)
    folder.write(key(1), page(1))
    modes = [path.stat().st_mode & 0o777 for path in (folder.path, *folder.path.iterdir())]
    assert modes == [0o700, 0o600]


def test_the_folder_never_exceeds_its_size(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path, 10 * FILE)
    for number in range(50):
        folder.write(key(number), page(number))
        assert on_disk(tmp_path) <= 10 * FILE
        assert folder.used == on_disk(tmp_path)
    assert key(49) in folder


def test_a_smaller_limit_holds_from_the_start(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path, 10 * FILE)
    for number in range(8):
        folder.write(key(number), page(number))
        age(tmp_path, number, 100 - number)
    smaller = PageFolder(tmp_path, 4 * FILE)
    assert on_disk(tmp_path) <= 4 * FILE
    assert held(smaller) == [5, 6, 7]  # a tenth of the limit is freed beyond what is needed


def test_the_least_recently_used_go_first_also_after_a_restart(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path, 10 * FILE)
    for number in range(10):
        folder.write(key(number), page(number))
        age(tmp_path, number, 100 - number)
    folder.read(key(0), SIZE)
    folder.touch(key(1))
    again = PageFolder(tmp_path, 10 * FILE)
    again.write(key(10), page(10))
    assert held(again) == [0, 1, *range(4, 11)]


def test_a_page_larger_than_the_folder_is_not_written(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path, FILE - 1)
    folder.write(key(1), page(1))
    assert on_disk(tmp_path) == 0


@pytest.mark.parametrize("damage", [b"", b"x" * FILE, b"x" * 3 * FILE])
def test_a_damaged_page_is_a_miss_and_goes(tmp_path: Path, damage: bytes) -> None:
    folder = PageFolder(tmp_path, 10 * FILE)
    folder.write(key(1), page(1))
    file = tmp_path / f"{key(1).hex()}.kv"
    file.write_bytes(damage)
    assert folder.read(key(1), SIZE) is None
    assert not file.exists()
    assert key(1) not in folder
    assert folder.used == 0


def test_a_folder_of_a_pages_name_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / f"{key(1).hex()}.kv").mkdir()
    assert PageFolder(tmp_path, 10 * FILE).read(key(1), SIZE) is None


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = ["notes.txt", "ab.kv", "z" * 64 + ".kv", "A" * 64 + ".kv", "probe"]
    for name in names:
        (tmp_path / name).write_bytes(b"x" * 10 * FILE)
    folder = PageFolder(tmp_path, FILE)
    folder.write(key(1), page(1))
    folder.write(key(2), page(2))
    assert {file.name for file in tmp_path.iterdir()} == {*names, f"{key(2).hex()}.kv"}


def test_old_drafts_of_dead_processes_go_and_young_ones_stay(tmp_path: Path) -> None:
    old, young = tmp_path / "a.1.draft", tmp_path / "b.2.draft"
    for draft in (old, young):
        draft.write_bytes(b"x")
    os.utime(old, (0, 0))
    PageFolder(tmp_path, FILE)
    assert [*tmp_path.iterdir()] == [young]


def test_two_processes_find_each_others_pages(tmp_path: Path) -> None:
    one, other = PageFolder(tmp_path, 10 * FILE), PageFolder(tmp_path, 10 * FILE)
    one.write(key(1), page(1))
    assert key(1) in other
    assert (other.read(key(1), SIZE) == page(1)).all()


def test_a_page_that_another_process_removed_is_a_miss(tmp_path: Path) -> None:
    one, other = PageFolder(tmp_path, 10 * FILE), PageFolder(tmp_path, 10 * FILE)
    one.write(key(1), page(1))
    other._remove(key(1))
    assert one.read(key(1), SIZE) is None
    assert key(1) not in one


def test_two_writers_keep_close_to_the_size(tmp_path: Path) -> None:
    folders = [PageFolder(tmp_path, 100 * FILE) for _ in range(2)]
    for number in range(600):
        folders[number % 2].write(key(number), page(number))
        assert on_disk(tmp_path) <= 111 * FILE


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        PageFolder(tmp_path / "file", FILE)
    with pytest.raises(OSError):
        PageFolder(tmp_path / "file" / "below", FILE)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_file_is_a_miss_at_once(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = PageFolder(tmp_path, limit=10 * FILE)
    folder.write(key(1), page(1))
    file = tmp_path / f"{key(1).hex()}.kv"
    file.unlink()
    if kind == "folder":
        file.mkdir()
        (file / "within").touch()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    assert folder.read(key(1), SIZE) is None
    assert key(1) not in folder
    warnings = len(caplog.records)
    for _ in range(3):
        folder.write(key(1), page(1))
        found = folder.read(key(1), SIZE)
        assert (found is None) == (kind == "folder")
    assert len(caplog.records) == warnings
