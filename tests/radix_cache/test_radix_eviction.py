import pytest
from radix_helpers import SmallCache, spell

from phloem.radix_cache.eviction import LeafHeap, lru
from phloem.radix_cache.node import NO_PAGES, Node


def test_the_least_recently_used_goes_first(small: SmallCache) -> None:
    for word in ("a", "b", "c"):
        small.put(word)
    small.match("a")
    assert small.tree.evict(1) == 1
    assert small.words() == {"a", "c"}
    assert small.tree.evict(1) == 1
    assert small.words() == {"a"}


def test_inserting_again_is_a_use(small: SmallCache) -> None:
    small.put("a")
    small.put("b")
    small.put("a")
    small.tree.evict(1)
    assert small.words() == {"a"}


def test_a_run_is_evicted_from_its_end(small: SmallCache) -> None:
    small.put("abcd")
    assert small.tree.evict(1) == 1
    assert small.words() == {"abc"}
    assert small.tree.evict(2) == 2
    assert small.words() == {"a"}
    small.tree.check(0)


def test_a_parent_goes_after_its_last_child(small: SmallCache) -> None:
    small.put("ab")
    small.put("ac")
    small.put("x")
    assert small.tree.evict(2) == 2
    assert small.words() == {"a", "x"}
    assert small.tree.evict(1) == 1
    assert small.words() == {"x"}


def test_no_more_than_is_there_comes_free(small: SmallCache) -> None:
    small.put("abc")
    assert small.tree.evict(0) == 0
    assert small.tree.evict(-1) == 0
    assert small.tree.evict(99) == 3
    assert small.tree.evict(99) == 0
    assert small.tree.evicted_pages == 3
    assert small.pool.free == small.pool.total


def test_pages_that_a_caller_retains_are_not_counted(small: SmallCache) -> None:
    kept = small.pool.allocate(2)
    small.tree.insert("", spell("ab"), kept)
    small.put("c")
    assert small.tree.evict(1) == 1
    assert small.words() == set()
    small.tree.check(private=2)
    assert small.pool.release(kept) == 2


def test_empty_namespaces_are_dropped(small: SmallCache) -> None:
    for name in range(20):
        small.put("a", str(name))
        small.match("b", namespace=f"miss {name}")
    assert len(small.tree._roots) == 20
    small.tree.evict(19)
    assert list(small.tree._roots) == ["19"]
    small.tree.evict(1)
    assert not small.tree._roots


def test_reset_empties_the_tree(small: SmallCache) -> None:
    small.put("abc")
    small.put("abd", "other")
    node = small.match("abc").node
    assert small.tree.reset()
    assert node not in small.tree._leaves
    assert small.pool.free == small.pool.total
    assert small.match("abc").length == 0
    small.tree.check(0)
    small.put("abc")
    assert small.tree.evict(3) == 3


def test_reset_does_nothing_under_a_lock(small: SmallCache) -> None:
    small.put("abc")
    node = small.match("ab").node
    small.tree.lock(node)
    assert not small.tree.reset()
    assert small.words() == {"abc"}
    small.tree.unlock(node)
    assert small.tree.reset()


def test_an_empty_tree_can_be_reset(small: SmallCache) -> None:
    assert small.tree.reset()


def leaf(time: float) -> Node:
    return Node("", b"1234", NO_PAGES, Node.root(""), last_access=time)


class TestLeafHeap:
    def test_uses_since_the_entry_count(self) -> None:
        heap, early, late = LeafHeap(lru), leaf(1.0), leaf(2.0)
        heap.push(early)
        heap.push(late)
        early.last_access = 3.0
        assert heap.pop() is late
        assert heap.pop() is early
        assert heap.pop() is None

    def test_a_node_is_entered_once(self) -> None:
        heap, node = LeafHeap(lru), leaf(1.0)
        heap.push(node)
        heap.push(node)
        assert heap.pop() is node
        assert heap.pop() is None
        assert node not in heap

    @pytest.mark.parametrize("change", ["locks", "parent"])
    def test_what_is_no_leaf_any_more_is_passed_over(self, change: str) -> None:
        heap, node = LeafHeap(lru), leaf(1.0)
        heap.push(node)
        setattr(node, change, 1 if change == "locks" else None)
        assert heap.pop() is None

    def test_another_policy_is_another_function(self) -> None:
        heap = LeafHeap(lambda node: (-len(node.run), node.last_access))
        short, long = leaf(1.0), leaf(2.0)
        long.run *= 2
        heap.push(short)
        heap.push(long)
        assert heap.pop() is long
