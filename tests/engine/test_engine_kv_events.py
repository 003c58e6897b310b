"""An engine tells subscribers what its cache holds."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
import zmq
from harness import make_core, request, run_alone

from phloem.runtime.bootstrap import LoadedModel
from phloem.runtime.errors import ModelError

PROMPT = list(range(20, 60))
REPLAYS = 500


def replay(context: zmq.Context[zmq.Socket[bytes]], address: str, batches: int) -> list[object]:
    """All events, once so many batches were published."""
    client: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    client.connect(address)
    events: list[object] = []
    for _ in range(REPLAYS):
        client.send_multipart((b"", bytes(8)))
        found = []
        while (frames := client.recv_multipart())[1] != b"\xff" * 8:
            found.append(msgspec.msgpack.decode(frames[2])[1])
        if len(found) >= batches:
            events = [event for batch in found for event in batch]
            break
        time.sleep(0.01)
    return events


def test_what_is_cached_is_told(tiny: LoadedModel, tmp_path: Path) -> None:
    events, again = f"ipc://{tmp_path}/events", f"ipc://{tmp_path}/replay"
    core = make_core(tiny, kv_events=events, kv_events_replay=again)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        run_alone(core, request(PROMPT, max_new_tokens=2))
        assert core.flush_cache()
        stored, cleared = replay(context, again, batches=2)
    finally:
        core.close()
        context.destroy(linger=0)
    assert isinstance(stored, list)
    name, hashes, parent, tokens, page, _, medium = stored
    assert (name, parent, page, medium) == ("BlockStored", None, 16, "GPU")
    assert tokens == PROMPT[:32]
    assert len(set(hashes)) == 2
    assert cleared == ["AllBlocksCleared"]


def test_events_need_a_cache_and_an_address(tiny: LoadedModel) -> None:
    with pytest.raises(ModelError, match="kv_events"):
        make_core(tiny, kv_events="tcp://127.0.0.1:0", prefix_cache=False)
    with pytest.raises(ModelError, match="kv_events_replay"):
        make_core(tiny, kv_events_replay="tcp://127.0.0.1:0")
    with pytest.raises(ModelError, match="cannot be bound"):
        make_core(tiny, kv_events="nowhere")
