from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import pytest

from phloem.runtime.simulator.mooncake import read_mooncake
from phloem.runtime.simulator.trace import Call, Segment, spell, stream
from phloem.runtime.simulator.workloads import (
    AgentTree,
    Chat,
    LongPrefill,
    Rag,
    SharedPrefix,
)

WORKLOADS = [
    SharedPrefix(sessions=30, rate=1),
    Chat(sessions=30, rate=1),
    AgentTree(sessions=30, rate=1),
    Rag(sessions=30, rate=1, documents=20, drift=10),
    LongPrefill(sessions=30, rate=1),
]


def shared(a: Call, b: Call) -> int:
    """Leading tokens that two prompts have in common."""
    x, y = spell(a.prompt), spell(b.prompt)
    n = min(len(x), len(y))
    differ = np.flatnonzero(x[:n] != y[:n])
    return int(differ[0]) if len(differ) else n


def test_a_stream_begins_the_same_at_any_length() -> None:
    assert np.array_equal(stream(7, 100)[:10], stream(7, 10))


def test_streams_are_tokens_and_differ() -> None:
    streams = np.stack([stream(number, 1000) for number in (0, 1, 2**32 - 1)])
    assert streams.min() >= 0
    assert streams.max() < 2**15
    assert len({tuple(each[:4]) for each in streams}) == 3
    assert len(np.unique(streams[0])) > 900


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: type(w).__name__)
def test_a_workload_is_in_the_order_of_time_and_always_the_same(workload: Chat) -> None:
    calls = list(workload.calls())
    assert [call.at for call in calls] == sorted(call.at for call in calls)
    assert len(calls) == workload.sessions
    again = [list(call) for call in workload.calls()]
    assert [[(c.at, c.prompt, c.output) for c in call] for call in calls] == [
        [(c.at, c.prompt, c.output) for c in call] for call in again
    ]
    other = replace(workload, seed=1)
    assert [c.at for c in other.calls()] != [c.at for c in calls]


def test_questions_of_a_group_share_its_system_prompt() -> None:
    a, b, *_ = SharedPrefix(sessions=5, rate=1, groups=1).calls()
    assert a.prompt[0] == b.prompt[0]
    assert shared(a, b) == a.prompt[0].length


def test_a_turn_continues_the_turn_before_with_its_output() -> None:
    for first in Chat(sessions=20, rate=1, turns=4).calls():
        for second in first.then:
            assert second.prompt[:-1] == (*first.prompt, first.output)


def test_branches_of_an_agent_share_all_but_the_tool_result() -> None:
    calls = [call for root in AgentTree(sessions=20, rate=1).calls() for call in root]
    branching = [call for call in calls if len(call.then) > 1]
    assert branching
    for call in branching:
        a, b, *_ = call.then
        assert shared(a, b) == call.prompt_length + call.output.length


def test_popular_documents_are_retrieved_more_often() -> None:
    workload = Rag(sessions=500, rate=1, documents=50, retrieved=1, drift=1000)
    counts = np.unique([call.prompt[1].stream for call in workload.calls()], return_counts=True)[1]
    assert counts.max() > 5 * np.median(counts)


def test_a_long_text_is_asked_about_again() -> None:
    long = [call for call in LongPrefill(sessions=100, rate=1).calls() if call.then]
    assert 2 < len(long) < 30
    for call in long:
        one, other = call.then
        assert shared(call, one) == shared(call, other) == shared(one, other) > 5000


def test_a_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    lines = [
        {"timestamp": 0, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]},
        {"timestamp": 27482, "input_length": 1024, "output_length": 9, "hash_ids": [0, 2]},
    ]
    path.write_bytes(b"\n".join(msgspec.json.encode(line) for line in lines))
    first, second = read_mooncake(path)
    assert (first.prompt_length, first.output.length, first.at) == (700, 5, 0)
    assert (second.prompt, second.at) == ((Segment(0, 512), Segment(2, 512)), 27.482)
    assert shared(first, second) == 512
    assert first.output.stream != second.output.stream


def test_hashes_that_do_not_cover_the_prompt_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [0]}')
    with pytest.raises(ValueError, match="line 1: 1 hash_ids for 513 tokens"):
        list(islice(read_mooncake(path), 1))
