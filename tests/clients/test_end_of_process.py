"""However a process ends, it ends: soon, and by its own code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, threading
import phloem as ph

engine = ph.Engine(sys.argv[1], kv_tokens=2048)
long = {"max_new_tokens": 500, "ignore_eos": True}
prompt = [5, 6, 7]
"""
IN_FLIGHT = """
threading.Thread(target=lambda: engine.generate(prompt, long), daemon=True).start()
threading.Event().wait(0.1)
sys.exit(7)
"""
HALF_READ = """
stream = engine.stream(prompt, long)
next(stream)
sys.exit(7)
"""
INTERRUPTED = """
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        engine.generate(prompt, long)
except KeyboardInterrupt:
    sys.exit(7)
"""
CLOSED_BY_OTHERS = """
def call():
    try:
        while True:
            engine.generate(prompt, long)
    except ph.EngineDeadError:
        ended.append(1)

ended = []
callers = [threading.Thread(target=call, daemon=True) for _ in range(4)]
closers = [threading.Timer(0.1, engine.close) for _ in range(2)]
for thread in callers + closers:
    thread.start()
for thread in callers + closers:
    thread.join(20)
sys.exit(7 if len(ended) == 4 else 1)
"""
FORKED = """
child = os.fork()
if child == 0:
    try:
        engine.generate(prompt)
    except ph.EngineDeadError as error:
        engine.close()
        sys.exit(7 if "parent" in str(error) else 1)
    sys.exit(1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
engine.generate(prompt, {"max_new_tokens": 1})
sys.exit(code)
"""


ENDS = {
    "in flight": IN_FLIGHT,
    "half read": HALF_READ,
    "interrupted": INTERRUPTED,
    "closed by others": CLOSED_BY_OTHERS,
    "forked": FORKED,
}


@pytest.mark.parametrize("ops", ["native", "reference"])
@pytest.mark.parametrize("end", ENDS)
def test_the_process_ends(tiny_model: Path, end: str, ops: str) -> None:
    script = BEGIN.replace("kv_tokens", f"ops={ops!r}, kv_tokens") + ENDS[end]
    done = subprocess.run([sys.executable, "-c", script, str(tiny_model)], timeout=60)
    assert done.returncode == 7
