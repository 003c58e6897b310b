from __future__ import annotations

from typing import Any

import pytest

from phloem.runtime.errors import RequestError
from phloem.runtime.protocol import Constraint, SamplingParams
from phloem.runtime.sampling.fields import sampling_params


def test_nothing_gives_the_defaults() -> None:
    assert sampling_params(None) == sampling_params({}) == SamplingParams()


def test_none_means_that_a_constraint_was_not_brought() -> None:
    given = sampling_params({"regex": None, "json_schema": None, "temperature": 0.5})
    assert given == SamplingParams(temperature=0.5)


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"regex": "a+"}, Constraint(kind="regex", text="a+")),
        ({"ebnf": "root ::= x"}, Constraint(kind="ebnf", text="root ::= x")),
        (
            {"json_schema": {"type": "null"}},
            Constraint(kind="json_schema", text='{"type": "null"}'),
        ),
        ({"json_schema": '{"a": 1}'}, Constraint(kind="json_schema", text='{"a": 1}')),
        ({"choices": ["é", "b"]}, Constraint(kind="choice", text='["é", "b"]')),
    ],
)
def test_one_field_brings_a_constraint(fields: dict[str, Any], constraint: Constraint) -> None:
    assert sampling_params(fields).constraint == constraint


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 3}, "max_tokens"),
        ({"regex": "a", "choices": ["a"]}, "regex"),
        ({"choices": "red"}, "choices"),
        ({"regex": 5}, "regex"),
        ({"json_schema": dict}, "json_schema"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError, match=param) as caught:
        sampling_params(fields)
    assert caught.value.param == param


def test_a_value_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(RequestError, match="temperature"):
        sampling_params({"temperature": "hot"})
