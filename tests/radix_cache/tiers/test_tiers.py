"""What leaves the device comes back from below, or is a miss; never another page's content."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiers_helpers import PAGE, PAGE_BYTES, TieredCache, Tokens, array, file_size, files

from phloem.radix_cache.tiers import tiers as tiers_module


def run(start: int, pages: int) -> Tokens:
    return tuple(range(start, start + pages * PAGE))


A, B = run(0, 4), run(1000, 4)


def test_without_lower_tiers_what_is_evicted_is_gone() -> None:
    cache = TieredCache(pages=4)
    cache.put("", A)
    cache.put("", B)
    assert cache.get("", A) == 0


def test_evicted_pages_come_back_from_the_host() -> None:
    cache = TieredCache(pages=4, host_pages=8)
    cache.put("", A)
    cache.put("", B)
    assert cache.get("", A) == len(A)
    assert cache.get("", B) == len(B)
    assert cache.tiers.restored_from_host == (len(A) + len(B)) // PAGE
    cache.tree.check(private=0)


def test_a_part_comes_back_behind_what_the_tree_has() -> None:
    cache = TieredCache(pages=4, host_pages=8)
    cache.put("", A)
    cache.tree.evict(2)
    assert cache.get("", A[: 3 * PAGE]) == 3 * PAGE
    assert cache.get("", A) == len(A)


def test_the_host_is_bounded_and_keeps_the_heads_of_runs() -> None:
    cache = TieredCache(pages=4, host_pages=3)
    cache.put("", A)
    cache.put("", B)
    assert cache.tiers.host.used == 3 * PAGE_BYTES
    assert cache.get("", A) == 3 * PAGE


def test_what_falls_out_of_the_host_goes_to_disk(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path, pages=4, host_pages=4, write="back")
    cache.put("", A)
    cache.put("", B)
    assert files(tmp_path) == []
    cache.put("", run(2000, 4))
    cache.settle()
    assert len(files(tmp_path)) == 4
    assert cache.get("", A) == len(A)


@pytest.mark.parametrize("write", ["through", "back"])
def test_a_restarted_cache_goes_on_where_the_last_one_ended(tmp_path: Path, write: str) -> None:
    cache = TieredCache(tmp_path, pages=4, write=write)
    cache.put("", A)
    cache.put("tenant", B)
    cache.close()
    again = TieredCache(tmp_path, pages=8, write=write)
    assert again.get("", A) == len(A)
    assert again.get("tenant", B) == len(B)
    again.tree.check(private=0)


def test_writing_through_needs_no_end(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path)
    cache.put("", A)
    cache.settle()
    assert TieredCache(tmp_path).get("", A) == len(A)


def test_writing_back_waits_for_eviction(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path, write="back")
    cache.put("", A)
    cache.settle()
    assert files(tmp_path) == []
    cache.tree.evict(1)
    cache.settle()
    assert len(files(tmp_path)) == 1


def test_the_end_writes_the_host_too(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path, pages=4, host_pages=8, write="back")
    cache.put("", A)
    cache.put("", B)
    cache.close()
    again = TieredCache(tmp_path)
    assert (again.get("", A), again.get("", B)) == (len(A), len(B))


def test_the_end_writes_no_more_than_fits_and_the_latest_first(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path, write="back", disk_pages=5)
    cache.put("", A)
    cache.put("", B)
    cache.close()
    assert sum(file.stat().st_size for file in files(tmp_path)) <= 5 * file_size()
    again = TieredCache(tmp_path, disk_pages=5)
    assert again.get("", B) == len(B)
    assert again.get("", A) == PAGE


def test_the_oldest_files_are_the_ends_of_runs(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path)
    cache.put("", A[: 2 * PAGE])
    cache.settle()
    cache.put("", A)
    cache.close()
    for file in files(tmp_path)[:2]:
        file.unlink()
    assert TieredCache(tmp_path).get("", A) == 2 * PAGE


@pytest.mark.parametrize(
    "other", [{"fingerprint": b"other"}, {"namespace": "tenant"}, {"tokens": (1, *A[1:])}]
)
def test_other_models_tenants_and_tokens_have_other_pages(
    tmp_path: Path, other: dict[str, object]
) -> None:
    cache = TieredCache(tmp_path)
    cache.put("", A)
    cache.close()
    asked = {"fingerprint": b"model", "namespace": "", "tokens": A, **other}
    again = TieredCache(tmp_path, fingerprint=asked["fingerprint"])
    assert again.get(asked["namespace"], asked["tokens"]) == 0


def test_a_damaged_page_ends_the_hit_and_is_written_again(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path)
    cache.put("", A)
    cache.settle()
    for page in files(tmp_path):
        keep = page.read_bytes()
        page.write_bytes(keep[:-1])
        again = TieredCache(tmp_path)
        hit = again.get("", A)
        assert hit < len(A)
        assert not page.exists()
        again.put("", A)
        again.close()
        assert page.read_bytes() == keep


def test_two_caches_on_one_folder_share(tmp_path: Path) -> None:
    one, other = TieredCache(tmp_path), TieredCache(tmp_path)
    one.put("", A)
    one.settle()
    assert other.get("", A) == len(A)


def test_pages_in_use_are_not_pushed_out_by_a_restore(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path, pages=6)
    cache.put("", A)
    cache.put("", B)
    cache.settle()
    match = cache.tree.match("", array(B))
    cache.tree.lock(match.node)
    assert cache.get("", A) == 2 * PAGE  # as much as there is room for
    cache.tree.unlock(match.node)
    cache.tree.check(private=0)


def test_long_prefixes_come_back_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers_module, "LOAD_BYTES", 3 * PAGE_BYTES)
    cache = TieredCache(tmp_path, pages=8)
    cache.put("", run(0, 7))
    cache.close()
    again = TieredCache(tmp_path, pages=8)
    steps = [again.tiers.restore("", array(run(0, 7))) for _ in range(4)]
    assert steps == [False, False, True, True]
    assert again.tree.cached_tokens == 7 * PAGE


def test_clear_leaves_files_only(tmp_path: Path) -> None:
    cache = TieredCache(tmp_path, pages=4, host_pages=8)
    cache.put("", A)
    cache.put("", B)
    cache.settle()
    assert cache.tree.reset()
    assert cache.tiers.host.used == 0
    assert cache.get("", A) == len(A)
