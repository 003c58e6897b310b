from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from phloem.cli import COMMANDS, main


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "phloem", *words], capture_output=True, text=True, timeout=60
    )


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    script = "import sys, phloem.cli\ntry: phloem.cli.main(['--help'])\nexcept SystemExit: pass\n"
    script += "heavy = {'torch', 'transformers', 'fastapi', 'numpy'} & set(sys.modules)\n"
    script += "sys.exit(f'imported {heavy}' if heavy else 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["fly"])
    assert caught.value.code == 2


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "serve" in capsys.readouterr().out


def test_a_model_that_is_not_there_is_one_line_and_exit_1() -> None:
    done = run("generate", "hi", "--model", "no-such-model")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("phloem generate: ")
    assert "no-such-model" in done.stderr
    assert "Traceback" not in done.stderr


def test_generate_prints_the_text(tiny_model: Path) -> None:
    options = ["--model", str(tiny_model), "--kv-tokens", "1024", "--max-new-tokens", "4"]
    done = run("generate", "Numbers: 1 2", *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    limited = run("generate", "Numbers:", "--regex", "[0-9]{3}", *options)
    assert limited.stdout.strip().isdigit()


def test_a_schema_file_that_is_no_text_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    done = run("generate", "hi", "--json-schema", str(tmp_path / "bad.json"))
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_bench_refuses_counts_below_one() -> None:
    assert "less than 1" in run("bench", "--requests", "0").stderr
