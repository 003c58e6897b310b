from __future__ import annotations

import argparse
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from phloem.arguments import add_options, read_options


class Settings(msgspec.Struct, frozen=True):
    size: Annotated[int, Meta(ge=1, description="how large, in %")] = 3
    limit: Annotated[Annotated[int, Meta(ge=2)] | None, Meta(description="or none")] = None
    fast: Annotated[bool, Meta(description="hurry")] = True
    kind: Annotated[Literal["a", "b"], Meta(description="which")] = "a"
    page: Annotated[Literal[1, 2], Meta(description="number")] = 1
    ratio: float = 0.5
    some_name: str | None = None


def parse(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_options(parser, Settings)
    return read_options(parser.parse_args(words), Settings)


def test_no_options_give_the_defaults() -> None:
    assert parse() == Settings()


def test_every_kind_of_field_is_read() -> None:
    words = "--size 5 --limit 4 --no-fast --kind b --page 2 --ratio 0.25 --some-name x"
    assert parse(*words.split()) == Settings(5, 4, False, "b", 2, 0.25, "x")


def test_a_value_out_of_range_is_refused_by_name() -> None:
    with pytest.raises(msgspec.ValidationError, match=r">= 2.*limit"):
        parse("--limit", "1")


def test_help_has_each_description(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--help")
    shown = capsys.readouterr().out
    assert "how large, in % (default: 3)" in shown
    assert "or none" in shown
