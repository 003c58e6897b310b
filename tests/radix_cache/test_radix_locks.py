import pytest
from radix_helpers import SmallCache

from phloem.radix_cache import InvariantError


def test_a_lock_protects_its_path(small: SmallCache) -> None:
    small.put("abc")
    small.put("abd")
    node = small.match("abc").node
    small.tree.lock(node)
    assert (small.tree.evictable, small.tree.protected) == (1, 3)
    assert small.tree.evict(9) == 1
    assert small.words() == {"abc"}
    small.tree.unlock(node)
    assert (small.tree.evictable, small.tree.protected) == (3, 0)
    assert small.tree.evict(9) == 3


def test_totals_change_with_the_first_lock_and_the_last(small: SmallCache) -> None:
    node = small.put("ab").node
    for _ in range(2):
        small.tree.lock(node)
        assert (small.tree.evictable, small.tree.protected) == (0, 2)
    small.tree.unlock(node)
    assert (small.tree.evictable, small.tree.protected) == (0, 2)
    small.tree.unlock(node)
    assert (small.tree.evictable, small.tree.protected) == (2, 0)


def test_a_shorter_match_protects_its_part_only(small: SmallCache) -> None:
    small.put("abcd")
    node = small.match("abx").node
    small.tree.lock(node)
    assert (small.tree.evictable, small.tree.protected) == (2, 2)
    assert small.tree.evict(9) == 2
    assert small.words() == {"ab"}


def test_a_handle_stays_valid_when_its_edge_is_split(small: SmallCache) -> None:
    pages = small.put("abcd").pages
    node = small.match("abcd").node
    small.tree.lock(node)
    small.put("axyz")
    small.match("abc")
    small.tree.check(0)
    assert small.tree.evict(32) == 3
    assert small.match("abcd").pages.tolist() == pages.tolist()
    small.tree.unlock(node)
    assert small.tree.evict(32) == 4
    small.tree.check(0)


def test_a_lock_covers_what_is_above_and_not_what_comes_below(small: SmallCache) -> None:
    node = small.put("a").node
    small.tree.lock(node)
    small.put("ab")
    assert (small.tree.evictable, small.tree.protected) == (1, 1)


def test_unlocking_what_is_not_locked_is_an_error(small: SmallCache) -> None:
    node = small.put("a").node
    with pytest.raises(InvariantError, match="not locked"):
        small.tree.unlock(node)
    small.tree.lock(node)
    small.tree.unlock(node)
    with pytest.raises(InvariantError, match="not locked"):
        small.tree.unlock(node)
    small.tree.check(0)


def test_locking_what_was_evicted_is_an_error(small: SmallCache) -> None:
    node = small.put("a").node
    small.tree.evict(1)
    with pytest.raises(InvariantError, match="evicted"):
        small.tree.lock(node)


def test_locking_what_was_reset_is_an_error(small: SmallCache) -> None:
    small.put("ab")
    node = small.put("ac").node
    assert small.tree.reset()
    with pytest.raises(InvariantError, match="evicted"):
        small.tree.lock(node)
    assert (small.tree.evictable, small.tree.protected) == (0, 0)


def test_the_handle_of_a_miss_can_be_locked(small: SmallCache) -> None:
    node = small.match("a").node
    small.tree.lock(node)
    small.put("a")
    small.tree.unlock(node)
    with pytest.raises(InvariantError):
        small.tree.unlock(node)
    assert (small.tree.evictable, small.tree.protected) == (1, 0)
    small.tree.check(0)
