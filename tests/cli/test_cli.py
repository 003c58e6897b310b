from __future__ import annotations

import subprocess
import sys

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
