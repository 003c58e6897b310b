"""The policy that knows programs: least work left first, forks together, prefixes kept warm."""

from __future__ import annotations

from stepping import Stepper

from phloem.runtime.scheduling.programs import FORGET_SECONDS
from phloem.runtime.scheduling.sequence import Sequence

STATE = list(range(100, 196))


def order(world: Stepper) -> list[Sequence]:
    return list(world.scheduler.waiting.candidates(world.now))


def test_who_is_nearer_to_its_end_goes_first() -> None:
    world = Stepper("program")
    far, near, last = (
        world.add([number] * 50, program=f"p{number}", calls_left=left)
        for number, left in ((1, 9), (2, 2), (3, 0))
    )
    assert order(world) == [last, near, far]


def test_of_those_that_do_not_say_who_has_had_least_goes_first() -> None:
    world = Stepper("program")
    for _ in range(3):
        world.add([1] * 60, program="old")
        world.run()
        world.memory.flush()
    old, new = world.add([1] * 60, program="old"), world.add([2] * 60, program="new")
    assert order(world) == [new, old]


def test_a_program_has_had_only_what_was_computed_for_it() -> None:
    world = Stepper("program", max_running=1, step_tokens=16)
    world.add([7] * 30, new=20)
    world.step()
    never = world.add([1] * 400, program="a")
    program = never.program
    world.step()
    world.scheduler.remove(never, world.now)
    assert program is not None
    assert program.computed == 0
    world.run()
    partly = world.add([2] * 400, program="b")
    program = partly.program
    world.step()
    world.scheduler.remove(partly, world.now)
    assert program is not None
    assert program.computed == 16


def test_calls_of_no_program_are_programs_of_one_call() -> None:
    world = Stepper("program")
    world.add([1] * 200)
    world.run()
    again, shorter = world.add([2] * 200), world.add([3] * 20)
    assert order(world) == [shorter, again]


def test_forks_of_one_state_start_together() -> None:
    world = Stepper("program", max_running=3)
    branches: dict[str, list[Sequence]] = {"a": [], "b": []}
    for number in range(3):
        for name, sequences in branches.items():
            prompt = [*STATE, ord(name), number]
            sequences.append(world.add(prompt, program=name, calls_left=0))
    world.run()
    starts = {name: [world.started[seq] for seq in each] for name, each in branches.items()}
    assert max(starts["a"]) < min(starts["b"]) or max(starts["b"]) < min(starts["a"])


def test_a_prefix_is_kept_for_a_program_that_will_come_back() -> None:
    for calls_left, kept in ((3, True), (0, False), (None, False)):
        world = Stepper("program", pages=24)
        world.add(STATE, new=1, program="agent", calls_left=calls_left)
        world.run()
        assert (world.memory.usage().pinned > 0) == kept
        world.now += 61
        world.step()
        assert world.memory.usage().pinned == 0


def test_the_time_is_that_of_the_gaps_that_were_seen() -> None:
    world = Stepper("program", pages=24)
    for _ in range(40):
        last = world.add(STATE, new=1, program="agent", calls_left=3)
        world.run()
        world.now += 1.0
    assert 4.0 <= world.scheduler.programs.keep_warm(last) < 6.0


def test_other_policies_keep_nothing_by_themselves() -> None:
    world = Stepper("lpm", pages=24)
    world.add(STATE, new=1, program="agent", calls_left=3)
    world.run()
    assert world.memory.usage().pinned == 0


def test_ended_programs_are_forgotten() -> None:
    world = Stepper("program")
    for number in range(50):
        world.add([number] * 5, program=f"p{number}", new=1)
        world.run(most=10_000)
        world.now += FORGET_SECONDS / 10
    assert len(world.scheduler.programs) <= 11
