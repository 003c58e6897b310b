"""Each kind of damage is noticed."""

from collections.abc import Callable

import pytest
from radix_helpers import SmallCache, spell

from phloem.radix_cache import InvariantError, Node


def node_of(small: SmallCache, word: str) -> Node:
    return small.match(word).node


def lose_a_reference(small: SmallCache) -> None:
    small.pool.release(small.match("ab").pages[:1])


def lose_a_page(small: SmallCache) -> None:
    small.pool.allocate(1)


def use_a_page_twice(small: SmallCache) -> None:
    small.tree.insert("", spell("x"), small.match("a").pages)


def count_wrongly(small: SmallCache) -> None:
    small.tree.evictable += 1


def lock_by_hand(small: SmallCache) -> None:
    node_of(small, "abc").locks += 1


def hang_elsewhere(small: SmallCache) -> None:
    node_of(small, "abc").parent = node_of(small, "abd")


def change_the_run(small: SmallCache) -> None:
    node = node_of(small, "abc")
    node.run = node.run[::-1]


def lengthen_the_run(small: SmallCache) -> None:
    node_of(small, "abc").run *= 2


def rename(small: SmallCache) -> None:
    node_of(small, "abc").namespace = "other"


def forget_a_leaf(small: SmallCache) -> None:
    small.tree._leaves.clear()


def disorder(small: SmallCache) -> None:
    node_of(small, "ab").children._order.reverse()


def keep_an_empty_root(small: SmallCache) -> None:
    small.tree._roots["empty"] = Node.root("empty")


DAMAGES = [
    (lose_a_reference, "a page in the tree is free"),
    (lose_a_page, "0 private != 32"),
    (use_a_page_twice, "more than once"),
    (count_wrongly, "5 evictable"),
    (lock_by_hand, "fewer locks"),
    (hang_elsewhere, "another parent"),
    (change_the_run, "another page than its first"),
    (lengthen_the_run, "wrong run"),
    (rename, "another namespace"),
    (forget_a_leaf, "cannot be found"),
    (disorder, "out of order"),
    (keep_an_empty_root, "dropped"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_damage_is_noticed(
    small: SmallCache, damage: Callable[[SmallCache], None], message: str
) -> None:
    small.put("abc")
    small.put("abd")
    small.tree.check(private=0)
    damage(small)
    with pytest.raises(InvariantError, match=message):
        small.tree.check(private=0)


def test_private_pages_are_those_outside_the_tree(small: SmallCache) -> None:
    small.put("ab")
    small.pool.allocate(3)
    small.tree.check()
    small.tree.check(private=3)
    with pytest.raises(InvariantError, match=r"27 free \+ 2 evictable \+ 0 protected \+ 4 private"):
        small.tree.check(private=4)
