"""What the engine counts; see EngineStats for meanings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Totals since the start."""

    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0
    finished: int = 0
    aborted: int = 0
    failed: int = 0
    retracted: int = 0
    step_seconds: float = 0.0
