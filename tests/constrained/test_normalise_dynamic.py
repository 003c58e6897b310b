"""``$dynamicRef``, ``$recursiveRef`` and the meta-schemas."""

from __future__ import annotations

from typing import Any

import pytest
from constrained_tools import Bench, schema_spec
from normalised import check

from phloem.constrained import GrammarError

LIST = {
    "$id": "list",
    "type": "array",
    "items": {"$dynamicRef": "#item"},
    "$defs": {"any": {"$dynamicAnchor": "item"}},
}


def extending(item: Any) -> dict[str, Any]:
    """A list of what the outer document says that an item is."""
    return {
        "$id": "https://example.org/root",
        "$ref": "list",
        "$defs": {"item": {"$dynamicAnchor": "item", **item}, "list": LIST},
    }


def test_the_outermost_anchor_counts(bench: Bench) -> None:
    check(bench, extending({"type": "string"}), [[], ["a"], [1], ["a", 1], "a"])


def test_without_an_outer_anchor_the_own_one_counts(bench: Bench) -> None:
    check(bench, {"$ref": "list", "$defs": {"list": LIST}}, [[], [1, "a"], 1])


def test_what_is_no_dynamic_anchor_is_like_any(bench: Bench) -> None:
    schema = {
        "properties": {"a": {"$dynamicRef": "#x"}, "b": {"$dynamicRef": "#/$defs/x"}},
        "$defs": {"x": {"$anchor": "x", "type": "integer"}},
    }
    check(bench, schema, [{"a": 1}, {"a": ""}, {"b": 1}, {"b": ""}])


def test_a_ref_to_a_dynamic_anchor_is_not_dynamic(bench: Bench) -> None:
    schema = {"$ref": "#x", "$defs": {"x": {"$dynamicAnchor": "x", "type": "integer"}}}
    check(bench, schema, [1, "a"])


def test_a_tree_refers_to_itself(bench: Bench) -> None:
    schema = {
        "$id": "https://example.org/tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"c": {"type": "array", "items": {"$dynamicRef": "#node"}}},
        "additionalProperties": False,
    }
    check(bench, schema, [{}, {"c": []}, {"c": [{"c": []}]}, {"c": [{"d": 1}]}, {"c": [1]}])


def test_a_recursive_ref_leads_to_the_root(bench: Bench) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$recursiveAnchor": True,
        "type": "object",
        "properties": {"c": {"$recursiveRef": "#"}},
        "additionalProperties": False,
    }
    check(bench, schema, [{}, {"c": {}}, {"c": {"c": {}}}, {"c": {"d": 1}}, {"c": 1}])


def test_what_depends_on_the_way_is_refused(bench: Bench) -> None:
    def via(name: str, item: Any) -> dict[str, Any]:
        own = {"$dynamicAnchor": "item", **item}
        return {"$id": name, "$ref": "list", "$defs": {"own": own}}

    schema = {
        "anyOf": [{"$ref": "a"}, {"$ref": "b"}],
        "$defs": {"a": via("a", {"type": "null"}), "b": via("b", {"const": 1}), "list": LIST},
    }
    with pytest.raises(GrammarError) as caught:
        bench.schema(schema)
    assert caught.value.code == "unsupported_json_schema"
    assert caught.value.keyword == "$dynamicRef"


SCHEMAS_AS_DATA = [
    {"type": "object"},
    {"type": "objekt"},
    {"minLength": 2},
    {"minLength": -1},
    {"items": {"pattern": "a"}},
    {"properties": {"a": {"type": 1}}},
    {"required": ["a", "a"]},
    True,
    1,
]


@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/draft-04/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_meta_schemas_are_known(bench: Bench, uri: str) -> None:
    schema = {"$schema": uri, "type": "object", "properties": {"schema": {"$ref": f"{uri}#"}}}
    check(bench, schema, [{"schema": one} for one in SCHEMAS_AS_DATA])


def test_other_documents_are_not(bench: Bench) -> None:
    with pytest.raises(GrammarError, match="not in this document"):
        bench.compiler.compile(schema_spec({"$ref": "https://example.org/other"}))
