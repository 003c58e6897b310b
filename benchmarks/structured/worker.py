"""An engine's process: ``python -m structured.worker ENGINE TOKENS BYTES``, a JSON line per case.

The first line out is ``{"description": ...}`` once the engine is loaded, or ``{"error": ...}``.
Each line in is a case, its answer an `Outcome` and the process's peak memory in bytes. BYTES bound
its address space. The end of the input ends the process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from structured.engine import Tokens
from structured.examination import Encode, examine


def main() -> None:
    name, path, most = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
    channel = claim_stdout()
    tokens = Tokens.load(Path(path))
    try:
        engine = import_module("structured." + name.replace("-", "_")).load(tokens)
        encode = encoder(tokens)
    except ImportError as error:
        send(channel, {"error": str(error)})
        return
    send(channel, {"description": engine.description})
    for line in sys.stdin:
        outcome = examine(engine, encode, json.loads(line)).plain()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        send(channel, {"outcome": outcome, "peak": peak})


def encoder(tokens: Tokens) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(tokens.tokenizer_json)
    tokenizer.encode_special_tokens = True  # text that spells one is text all the same

    def encode(text: str) -> Sequence[int] | None:
        if any("\ud800" <= char < "\ue000" for char in text):
            return None
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        data = b"".join(tokens.token_bytes[token] for token in ids)
        return ids if data == text.encode() else None

    return encode


def claim_stdout() -> TextIO:
    """The pipe to the driver; what libraries print on stdout goes to stderr from now on."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def send(channel: TextIO, message: dict[str, Any]) -> None:
    print(json.dumps(message), file=channel, flush=True)


if __name__ == "__main__":
    main()
