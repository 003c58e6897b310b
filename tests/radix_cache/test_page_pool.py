import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radix_helpers import ids

from phloem.radix_cache import InvariantError, OutOfPages, PagePool


def test_pages_are_handed_out_once() -> None:
    pool = PagePool(5, 16)
    first, second = pool.allocate(2), pool.allocate(3)
    assert sorted([*first, *second]) == [0, 1, 2, 3, 4]
    assert first.dtype == np.int32
    assert pool.free == 0


def test_what_was_handed_out_does_not_change() -> None:
    pool = PagePool(2, 16)
    first, second = pool.allocate(1), pool.allocate(1)
    expected = second.tolist()
    pool.release(first)
    assert second.tolist() == expected


def test_nothing_is_taken_when_too_few_are_free() -> None:
    pool = PagePool(4, 16)
    pool.allocate(1)
    with pytest.raises(OutOfPages) as caught:
        pool.allocate(4)
    assert (caught.value.wanted, caught.value.free) == (4, 3)
    assert pool.free == 3
    assert len(pool.allocate(3)) == 3


def test_a_page_is_free_after_its_last_release() -> None:
    pool = PagePool(2, 16)
    pages = pool.allocate(1)
    pool.retain(pages)
    assert pool.release(pages) == 0
    assert pool.refcount(int(pages[0])) == 1
    assert pool.release(pages) == 1
    assert pool.free == 2


def test_a_page_named_twice_counts_twice() -> None:
    pool = PagePool(2, 16)
    page = int(pool.allocate(1)[0])
    pool.retain(ids(page, page))
    assert pool.refcount(page) == 3
    assert pool.release(ids(page, page, page)) == 1
    assert pool.free == 2
    pool.check()


@pytest.mark.parametrize("count", [1, 2])
def test_a_failed_release_changes_nothing(count: int) -> None:
    pool = PagePool(4, 16)
    held = pool.allocate(2)
    free = 3 if count == 1 else int(held[0])  # free already, or free after one of two releases
    with pytest.raises(InvariantError, match=f"page {free}"):
        pool.release(ids(*held, free))
    assert [pool.refcount(page) for page in range(4)] == [1, 1, 0, 0]
    assert pool.free == 2
    pool.check()


def test_a_failed_retain_changes_nothing() -> None:
    pool = PagePool(4, 16)
    held = int(pool.allocate(1)[0])
    with pytest.raises(InvariantError, match="page 3"):
        pool.retain(ids(held, 3))
    assert pool.refcount(held) == 1


@pytest.mark.parametrize("page", [-1, 4, 2**31 - 1])
def test_unknown_pages_are_refused(page: int) -> None:
    pool = PagePool(4, 16)
    pool.allocate(4)
    with pytest.raises(ValueError, match=r"0 \.\. 3"):
        pool.release(ids(0, page))
    with pytest.raises(ValueError, match=r"0 \.\. 3"):
        pool.retain(ids(page))
    with pytest.raises(ValueError, match=r"0 \.\. 3"):
        pool.refcount(page)
    assert pool.refcount(0) == 1


def test_no_pages_is_a_valid_amount() -> None:
    pool = PagePool(1, 16)
    nothing = pool.allocate(0)
    pool.retain(nothing)
    assert pool.release(nothing) == 0
    assert pool.free == 1


@pytest.mark.parametrize(
    ("num_pages", "page_size", "field"),
    [(0, 16, "num_pages"), (-1, 16, "num_pages"), (2**31, 16, "num_pages")]
    + [(1, size, "page_size") for size in (0, -1, 2, 24, 128)],
)
def test_absurd_sizes_are_refused(num_pages: int, page_size: int, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        PagePool(num_pages, page_size)


def test_a_negative_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        PagePool(1, 16).allocate(-1)


def test_check_notices_a_page_that_is_lost() -> None:
    pool = PagePool(4, 16)
    pool.allocate(2)
    pool.free -= 1
    with pytest.raises(InvariantError):
        pool.check()


@given(st.lists(st.tuples(st.sampled_from("atr"), st.integers(0, 7)), max_size=60))
def test_counts_follow_a_dictionary(steps: list[tuple[str, int]]) -> None:
    pool = PagePool(8, 1)
    counts = dict.fromkeys(range(8), 0)
    for action, page in steps:
        if action == "a" and pool.free:
            counts[int(pool.allocate(1)[0])] += 1
        elif action == "t" and counts[page]:
            pool.retain(ids(page))
            counts[page] += 1
        elif action == "r" and counts[page]:
            pool.release(ids(page))
            counts[page] -= 1
        assert [pool.refcount(page) for page in range(8)] == list(counts.values())
        assert pool.free == sum(count == 0 for count in counts.values())
        pool.check()
