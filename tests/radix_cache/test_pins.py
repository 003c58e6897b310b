"""Pins keep runs for a time; test_radix_model.py follows them among all else."""

from __future__ import annotations

from radix_helpers import SmallCache

from phloem.radix_cache import Pins


def test_a_pin_ends_by_itself(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=32)
    pins.place(small.put("abc").node, 10)
    assert (small.tree.evict(9), pins.pages) == (0, 3)
    small.clock.now += 9.5
    pins.expire()
    assert small.tree.evict(9) == 0
    small.clock.now += 0.5
    pins.expire()
    assert (small.tree.evict(9), pins.pages, len(pins)) == (3, 0, 0)


def test_a_conversation_has_one_pin_and_its_pages_count_once(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=32)
    for word in ("ab", "abcd", "abcdef"):
        pins.place(small.put(word).node, 10)
    assert (len(pins), pins.pages) == (1, 6)
    pins.place(small.put("abx").node, 10)
    assert (len(pins), pins.pages) == (2, 7)


def test_a_shorter_time_further_on_leaves_the_longer_one_above(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=32)
    pins.place(small.put("ab").node, 60)
    pins.place(small.put("abcd").node, 10)
    small.clock.now += 20
    pins.expire()
    assert (pins.pages, small.tree.evict(9)) == (2, 2)


def test_a_pin_that_is_placed_again_lasts_longer_and_never_shorter(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=32)
    node = small.put("ab").node
    for seconds in (10, 30, 5):
        pins.place(node, seconds)
    small.clock.now += 29
    pins.expire()
    assert len(pins) == 1
    small.clock.now += 2
    pins.expire()
    assert len(pins) == 0


def test_a_pin_covers_what_a_split_puts_above_it(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=32)
    pins.place(small.put("abcd").node, 10)
    small.put("abxy")
    assert pins.pages == 4
    assert small.tree.evict(9) == 2
    pins.clear()
    assert (pins.pages, small.tree.evict(9)) == (0, 4)


def test_too_many_pages_drop_the_pins_that_end_first(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=5)
    pins.place(small.put("abc").node, 30)
    pins.place(small.put("xy").node, 10)
    pins.place(small.put("uvw").node, 20)
    assert pins.pages <= 5
    assert small.tree.evict(9) == 5
    assert small.words() == {"abc"}
    pins.place(small.put("qrstuv").node, 60)  # more than may be pinned at all
    assert (len(pins), pins.pages) == (1, 3)


def test_pins_that_are_gone_take_no_memory(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=32)
    first, again = small.put("ab").node, small.put("xy").node
    pins.place(first, 3600)
    for _ in range(1000):
        small.clock.now += 1
        pins.place(again, 3600)
    assert len(pins._heap) < 10


def test_nothing_is_no_pin(small: SmallCache) -> None:
    pins = Pins(small.tree, most_pages=5)
    pins.place(small.match("abc").node, 10)
    assert not pins.drop_first()
