"""Start a server on the default model, ask it over HTTP and through the DSL, and stop it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx

import phloem as ph

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"enum": ["London", "Paris", "Rome"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


def main() -> None:
    with server() as url:
        print("\nHTTP, chat:")
        print(" ", ask(url, "What is the capital of France? Answer in one sentence."))
        print("\nHTTP, JSON that satisfies a schema:")
        print(" ", ask(url, "Describe Ada, 36 years old, from London, as JSON.", schema=PERSON))
        print("\nDSL:")
        ph.set_default_backend(ph.RuntimeEndpoint(url))
        state = sky.run()
        print(f"  colour: {state['colour']!r}, season: {state['season']!r}")
    print("\nServe it yourself: .venv/bin/phloem serve")


@ph.function
def sky(s):  # type: ignore[no-untyped-def]  # programs are dynamic
    s += ph.user("What colour is a clear sky at noon?")
    s += ph.assistant(ph.select("colour", choices=["blue", "green", "red"]))
    s += ph.user("Name a season.")
    s += ph.assistant(ph.gen("season", regex="(spring|summer|autumn|winter)"))


def ask(url: str, question: str, schema: dict[str, object] | None = None) -> str:
    """One question through OpenAI's chat endpoint."""
    body: dict[str, object] = {
        "model": "smollm2-135m-instruct",
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": 64,
    }
    if schema is not None:
        shape = {"name": "answer", "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120).raise_for_status()
    return str(answer.json()["choices"][0]["message"]["content"])


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A server process on a free port, stopped at the end."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "phloem", "serve", "--port", str(port)])
    try:
        wait_healthy(url, process)
        print(f"the server at {url} is ready after {time.monotonic() - started:.1f} s")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health", timeout=5).is_success:
                return
        time.sleep(0.1)
    raise SystemExit(f"the server ended with exit code {process.returncode}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
