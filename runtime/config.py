"""The engine's settings: one annotated struct, from which the command line and docs are made."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

DEFAULT_MODEL = "smollm2-135m-instruct"

Policy = Literal["fcfs", "lpm", "dfs-weight", "priority", "shortest-prefill-first", "program"]
Eviction = Literal["lru", "lfu", "slru", "fifo", "priority", "cost"]
GrammarBackend = Literal["auto", "llguidance", "fsm", "outlines"]
Positive = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=0)]


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to load a model and run it. None means: choose from the model and the machine."""

    model: Annotated[str, Meta(description="name in the store, folder, .gguf file or hub id")] = (
        DEFAULT_MODEL
    )
    served_model_name: Annotated[
        str | None, Meta(description="name that clients use (default: the model's own)")
    ] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Meta(description="where to run")] = "auto"
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Meta(description="type of activations and dense weights"),
    ] = "auto"
    ops: Annotated[
        Literal["auto", "native", "reference"],
        Meta(description="kernels: native ones for CPUs, or plain torch"),
    ] = "auto"
    quantization: Annotated[
        Literal["none", "int8", "int4", "w8a8"],
        Meta(
            description="round weights at load (native ops): dense ones to int8 or int4 in blocks "
            "of 32, or all to 8 bits with one scale per output, fastest with many rows"
        ),
    ] = "none"
    cpu_activations: Annotated[
        Literal["auto", "int8", "float32"],
        Meta(
            description="what quantised weights are multiplied with: int8 in blocks of 32, or "
            "float32, slower and exact (native ops; default: float32 if dtype is)"
        ),
    ] = "auto"
    kv_dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16", "int8"],
        Meta(description="type of the KV cache (default: dtype; int8 needs native ops)"),
    ] = "auto"
    context_length: Annotated[
        Positive | None, Meta(description="longest sequence in tokens (default: the model's)")
    ] = None
    page_size: Annotated[
        Literal[1, 8, 16, 32, 64], Meta(description="tokens per KV cache page")
    ] = 16
    kv_tokens: Annotated[
        Annotated[int, Meta(ge=64)] | None,
        Meta(description="capacity of the KV cache in tokens"),
    ] = None
    kv_fraction: Annotated[
        float,
        Meta(gt=0, le=0.95, description="share of free memory for the KV cache without kv_tokens"),
    ] = 0.25
    prefix_cache: Annotated[bool, Meta(description="share prefixes between requests")] = True
    eviction_policy: Annotated[
        Eviction,
        Meta(
            description="which cached pages go first: least recently used, least frequently used, "
            "used once only, oldest, of lowest priority, or cheapest to recompute"
        ),
    ] = "lru"
    host_cache_bytes: Annotated[
        Bytes, Meta(description="host memory for pages that the KV cache has no room for")
    ] = 0
    disk_cache: Annotated[
        str | None, Meta(description="folder for pages that survive a restart; may be shared")
    ] = None
    disk_cache_bytes: Annotated[
        Bytes, Meta(description="size of that folder, of which the oldest pages are removed")
    ] = 4 << 30
    disk_write: Annotated[
        Literal["through", "back"],
        Meta(
            description="write a page when it is computed, or when memory has no room for it any "
            "more and at the end"
        ),
    ] = "through"
    kv_events: Annotated[
        str | None,
        Meta(description="address to publish what is cached on, such as tcp://127.0.0.1:5557"),
    ] = None
    kv_events_replay: Annotated[
        str | None, Meta(description="address where past events can be had again")
    ] = None
    schedule_policy: Annotated[
        Policy,
        Meta(
            description="order of waiting requests: arrival, longest cached prefix, subtrees of "
            "the cache one after the other, priority (which also preempts), fewest tokens to "
            "compute, or least work left of the program that a request belongs to"
        ),
    ] = "lpm"
    max_wait: Annotated[
        float,
        Meta(ge=0, le=86_400, description="seconds after which a request is overtaken by none"),
    ] = 5.0
    queue_timeout: Annotated[
        Annotated[float, Meta(gt=0, le=86_400)] | None,
        Meta(description="seconds after which a request that could not start is refused"),
    ] = None
    step_tokens: Annotated[
        Positive | None, Meta(description="tokens computed per step, prefill and decode together")
    ] = None
    max_running: Annotated[int, Meta(ge=1, description="sequences decoded together")] = 64
    max_waiting: Annotated[int, Meta(ge=1, description="requests queued before refusing")] = 4096
    grammar_backend: Annotated[
        GrammarBackend,
        Meta(
            description="engine of grammars: llguidance (schemas, regexes, EBNF), our automata "
            "(fsm: regexes, choices), outlines-core (outlines: regexes; needs the package), or "
            "llguidance with our automata for choices; what it does not serve is refused"
        ),
    ] = "auto"
    jump_forward: Annotated[
        bool, Meta(description="compute tokens that a grammar forces in one step")
    ] = True
    threads: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None,
        Meta(description="CPU threads for kernels (default: physical cores)"),
    ] = None
    random_seed: Annotated[
        int | None, Meta(description="seed of the seeds of requests that bring none")
    ] = None
    check_invariants: Annotated[
        bool, Meta(description="account for every page after every step (for tests)")
    ] = False
