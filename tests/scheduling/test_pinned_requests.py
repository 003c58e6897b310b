"""What a request leaves in the cache for a time, beside requests that want the room."""

from __future__ import annotations

from stepping import Stepper

BOOK = list(range(100, 196))  # six pages


def crowd(world: Stepper, pages: int) -> None:
    """Requests, one after the other, that between them want so many pages."""
    for number in range(pages // 2):
        world.add([1000 + number] * 28, new=1)
        world.run()


def cached(world: Stepper, prompt: list[int]) -> int:
    seq = world.add([*prompt, 1], new=1)
    world.run()
    assert seq.cached_tokens is not None
    return seq.cached_tokens


def test_a_pinned_prompt_outlasts_a_crowd() -> None:
    for pin_ttl, kept in ((0.0, 0), (1000.0, len(BOOK))):
        world = Stepper("lpm", pages=16)
        world.add(BOOK, new=1, pin_ttl=pin_ttl)
        world.run()
        crowd(world, 60)
        assert cached(world, BOOK) == kept


def test_it_is_kept_no_longer_than_asked_for() -> None:
    world = Stepper("lpm", pages=16)
    world.add(BOOK, new=1, pin_ttl=20.0)
    world.run()
    world.now += 20
    crowd(world, 60)
    assert cached(world, BOOK) == 0
    assert world.memory.usage().pinned == 0


def test_who_runs_gets_pinned_pages_when_nothing_else_is_left() -> None:
    world = Stepper("lpm", pages=16)
    world.add(BOOK, new=1, pin_ttl=1000.0)
    world.run()
    large = world.add([7] * 200, new=40)
    world.run()
    assert large.remaining == 0
    assert large.retractions == 0


def test_pins_hold_half_of_all_pages_at_most() -> None:
    world = Stepper("lpm", pages=16)
    for number in range(20):
        world.add([number] * 48, new=1, pin_ttl=1000.0)
        world.run()
        assert world.memory.usage().pinned <= 8


def test_what_was_not_brought_to_its_end_is_not_pinned() -> None:
    world = Stepper("lpm", pages=16)
    seq = world.add(BOOK, new=9, pin_ttl=1000.0)
    world.step()
    world.step()
    world.scheduler.remove(seq, world.now)
    assert world.memory.usage().pinned == 0


def test_emptying_the_cache_ends_pins() -> None:
    world = Stepper("lpm", pages=16)
    world.add(BOOK, new=1, pin_ttl=1000.0)
    world.run()
    assert world.memory.flush()
    assert world.memory.usage().free == 16
