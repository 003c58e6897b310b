"""The server as a process: listening, stopping, exit codes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from conftest import until
from tiny import write_tokenizer

from phloem.runtime.server import ServerSettings
from phloem.runtime.server.launch import listener

SCRIPT = """
import sys
from pathlib import Path
from conftest import toy_client
from phloem.runtime.server import ServerSettings, serve
from phloem.runtime.text.folder import folder_tokenizer
tokenizer = folder_tokenizer(Path(sys.argv[1]))
settings = ServerSettings(port=int(sys.argv[2]), shutdown_grace=float(sys.argv[3]))
sys.exit(serve(lambda: toy_client(tokenizer, delay=0.01)[1], settings))
"""
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("launch")
    write_tokenizer(made)
    return made


def free_port() -> int:
    with listener(ServerSettings(port=0)) as bound:
        return int(bound.getsockname()[1])


@contextmanager
def process(folder: Path, grace: float) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    paths = os.pathsep.join([str(HERE), str(HERE.parent / "support")])
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(port), str(grace)],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: is_up(url), 60)
        yield child, url
    finally:
        child.kill()
        child.communicate()


def is_up(url: str) -> bool:
    try:
        return httpx.get(url + "/health").status_code == 200
    except httpx.TransportError:
        return False


BODY = {"text": "a", "stream": True, "sampling_params": {"ignore_eos": True}}


def stopped(child: subprocess.Popen[bytes]) -> str:
    """Wait for the end, which must be a success; what was logged."""
    _, log = child.communicate(timeout=30)
    assert child.returncode == 0, log.decode()
    assert b"Traceback" not in log
    return log.decode()


def test_a_stop_lets_streams_finish(folder: Path) -> None:
    with process(folder, grace=20) as (child, url):
        body = {**BODY, "sampling_params": {"max_new_tokens": 60, "ignore_eos": True}}
        with httpx.stream("POST", url + "/generate", json=body, timeout=30) as response:
            lines = response.iter_lines()
            next(lines)
            child.send_signal(signal.SIGTERM)
            *_, last, _, done, _ = lines
        assert '"type":"length"' in last
        assert done == "data: [DONE]"
        stopped(child)


def test_after_the_grace_streams_are_aborted(folder: Path) -> None:
    with process(folder, grace=0.2) as (child, url):
        body = {**BODY, "sampling_params": {"max_new_tokens": 2000, "ignore_eos": True}}
        with httpx.stream("POST", url + "/generate", json=body, timeout=30) as response:
            lines = response.iter_lines()
            next(lines)
            child.send_signal(signal.SIGINT)
            *_, last, _, done, _ = lines
        assert '"type":"abort"' in last
        assert done == "data: [DONE]"
        stopped(child)


@pytest.mark.parametrize(
    "fields", [{"api_key": ""}, {"port": 70000}, {"max_batch": 0}, {"request_timeout": 0}]
)
def test_settings_have_limits(fields: dict[str, object]) -> None:
    assert msgspec.convert({"api_key": "k", "request_timeout": 5}, ServerSettings).api_key == "k"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, ServerSettings)


def test_a_taken_port_is_told_before_the_model_is_loaded() -> None:
    from phloem.runtime.server import serve

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        def never() -> object:
            raise AssertionError("the model was loaded")

        with pytest.raises(OSError, match=str(port)):
            serve(never, ServerSettings(port=port))  # type: ignore[arg-type]
