"""Expressions: composition and what is refused when they are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import phloem as ph
from phloem.frontend_lang.ir import Gen, RoleBegin, RoleEnd, Select, Sequence, Text, flatten
from phloem.frontend_lang.options import make_options
from phloem.runtime.protocol import Constraint


class Person(BaseModel):
    name: str
    age: int


def only_gen(expr) -> Gen:
    (item,) = flatten(expr)
    assert isinstance(item, Gen)
    return item


def test_strings_and_expressions_join_in_order_on_either_side():
    joined = "a" + ph.gen("x") + "b" + ph.select("y", ["1", "2"])
    kinds = [type(item) for item in flatten(joined)]
    assert kinds == [Text, Gen, Text, Select]


@given(st.lists(st.text(max_size=3), min_size=3, max_size=6), st.integers(0, 3))
def test_composition_is_associative(texts, split):
    parts = [Text(text) for text in texts]
    left = parts[0]
    for part in parts[1:]:
        left = left + part
    tail = parts[-1]
    for part in reversed(parts[split + 1 : -1]):
        tail = part + tail
    head = parts[0]
    for part in parts[1 : split + 1]:
        head = head + part
    both = head + tail if split + 1 < len(parts) else head
    assert list(flatten(left)) == list(flatten(both))


def test_a_role_wraps_what_it_is_given():
    turn = ph.user("hi " + ph.gen("x"))
    assert isinstance(turn, Sequence)
    assert turn.items[0] == RoleBegin("user")
    assert turn.items[-1] == RoleEnd("user")
    assert ph.user_begin() + "hi" + ph.user_end() == ph.user("hi")


@pytest.mark.parametrize("value", [None, 3, ["a"], object()])
def test_other_values_cannot_be_appended(value):
    with pytest.raises(TypeError, match=type(value).__name__):
        ph.gen("x") + value
    with pytest.raises(TypeError):
        value + ph.gen("x")


def test_an_expression_in_an_f_string_is_an_error():
    with pytest.raises(TypeError, match=r"append it with \+"):
        f"Answer: {ph.gen('x')}"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"regex": "a", "ebnf": "b"}, "ebnf"),
        ({"choices": ["a"], "regex": "a"}, "regex"),
        ({"dtype": int, "json_schema": {}}, "json_schema"),
        ({"json_schema": "{"}, "json_schema"),
        ({"json_schema": "[1]"}, "json_schema"),
        ({"json_schema": 3}, "json_schema"),
        ({"json_schema": {"a": object()}}, "json_schema"),
        ({"regex": ""}, "regex"),
        ({"ebnf": 1}, "ebnf"),
        ({"dtype": list}, "dtype"),
        ({"dtype": []}, "dtype"),
        ({"max_tokens": "many"}, "max_new_tokens"),
        ({"max_tokens": 1.5}, "max_new_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"stop": [1]}, "stop"),
        ({"name": 1}, "name"),
    ],
)
def test_bad_options_are_refused_where_they_are_written(options, param):
    with pytest.raises(ph.RequestError) as caught:
        ph.gen(**options)
    assert caught.value.param == param


def test_json_schema_may_be_a_dict_text_or_a_model_class():
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    as_dict = only_gen(ph.gen(json_schema=schema)).constraint
    assert as_dict == only_gen(ph.gen(json_schema=json.dumps(schema, indent=2))).constraint
    assert list(json.loads(as_dict.text)["properties"]) == ["b", "a"]
    of_model = only_gen(ph.gen(json_schema=Person)).constraint
    assert json.loads(of_model.text)["required"] == ["name", "age"]


@pytest.mark.parametrize("dtype", [int, float, bool, str])
def test_dtypes_constrain_to_what_the_type_reads(dtype):
    import regex

    constraint = only_gen(ph.gen(dtype=dtype)).constraint
    good = {int: "-42", float: "3.25", bool: "True", str: '"two words"'}[dtype]
    bad = {int: "x4", float: ".5", bool: "true", str: "two"}[dtype]
    assert regex.fullmatch(constraint.text, good)
    assert not regex.fullmatch(constraint.text, bad)


@pytest.mark.parametrize(
    ("dtype", "said", "number"),
    [(int, "42 apples", "42"), (int, "4.5", "4"), (float, "4.5. ", "4.5"), (float, "4. ", "4")],
)
def test_a_number_ends_where_the_model_goes_on_with_something_else(dtype, said, number):
    import regex

    from phloem.runtime.text.stop import StopMatcher

    gen = only_gen(ph.gen("x", dtype=dtype, stop_regex="never"))
    assert regex.fullmatch(gen.constraint.text, said)
    assert gen.options.stop_regex[0] == "never"
    assert StopMatcher((), gen.options.stop_regex).push(said).text == number


@pytest.mark.parametrize(
    "choices", [None, [], "abc", ["a", ""], ["a", 1], ["a", "b", "a"]], ids=repr
)
def test_select_refuses_choices_that_cannot_be_told_apart(choices):
    with pytest.raises(ph.RequestError) as caught:
        ph.select("x", choices)
    assert caught.value.param == "choices"


def test_select_draws_nothing():
    with pytest.raises(ph.RequestError):
        ph.select("x", ["a", "b"], temperature=0.7)


def test_gen_of_choices_is_a_select():
    expr = ph.gen("x", choices=["a", "b"], choices_method=ph.greedy_token_selection)
    assert expr == ph.select("x", ["a", "b"], choices_method=ph.greedy_token_selection)


def test_options_of_a_call_win_over_those_of_the_run():
    call = make_options({"temperature": 0.0, "stop": "\n"})
    run = make_options({"temperature": 0.9, "max_new_tokens": 7, "stop": ["a", "b"]})
    sampling = call.over(run).sampling(Constraint(kind="regex", text="x"))
    assert (sampling.temperature, sampling.max_new_tokens) == (0.0, 7)
    assert sampling.stop == ("\n",)
    assert sampling.constraint.text == "x"
    assert sampling.top_p == 1.0
