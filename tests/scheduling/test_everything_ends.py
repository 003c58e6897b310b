"""Whatever comes, in whatever order: everything is served in full, and every page comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from stepping import PAGE_SIZE, Stepper

from phloem.runtime.config import Policy

PAGES = 14
MOST = (PAGES - 1) * PAGE_SIZE
STEMS = (list(range(100, 200)), [*range(100, 140), *range(300, 360)], [7] * 100)


@dataclass(frozen=True)
class Call:
    """A request, how many steps later it comes, and after how many more it is aborted."""

    stem: int
    cut: int
    own: int
    new: int
    priority: int
    count: int
    later: int
    aborted_after: int | None

    @property
    def prompt(self) -> list[int]:
        return [*STEMS[self.stem][: self.cut], self.own]


calls = st.builds(
    Call,
    stem=st.integers(0, len(STEMS) - 1),
    cut=st.integers(0, 100),
    own=st.integers(0, 3),
    new=st.integers(1, MOST - 101),
    priority=st.integers(-1, 1),
    count=st.sampled_from([1, 1, 1, 3]),
    later=st.sampled_from([0, 0, 1, 5]),
    aborted_after=st.sampled_from([None, None, None, 0, 3, 20]),
)
worlds = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(get_args(Policy)),
        "step_tokens": st.sampled_from([5, 32, 512]),
        "max_running": st.sampled_from([1, 2, 8]),
        "max_wait": st.sampled_from([0.0, 20.0, float("inf")]),
    }
)


@settings(max_examples=80, deadline=None)
@given(st.lists(calls, min_size=1, max_size=10), worlds)
def test_everything_ends(sent: list[Call], options: dict[str, Any]) -> None:
    world = Stepper(pages=PAGES, **options)
    served, to_abort = [], []
    for call in sent:
        for _ in range(call.later):
            world.step()
        first = world.add(call.prompt, call.new, priority=call.priority, n=call.count)
        family = [first, *first.siblings]
        if call.aborted_after is None:
            served += family
        else:
            to_abort.append((world.now + call.aborted_after, family))
        for at, doomed in to_abort:
            if world.now >= at:
                for seq in doomed:
                    world.scheduler.remove(seq, world.now)
    for _, doomed in to_abort:
        for seq in doomed:
            world.scheduler.remove(seq, world.now)
    world.run(most=20_000)
    assert all(seq.remaining == 0 for seq in served)
    usage = world.memory.usage()
    assert usage.free + usage.evictable == usage.total
