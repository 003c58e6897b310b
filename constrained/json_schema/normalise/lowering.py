"""Rewriting a document schema by schema, from the root down."""

from __future__ import annotations

from collections.abc import Sequence

from phloem.constrained import strict_json
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.branches import cases
from phloem.constrained.json_schema.normalise.children import map_children
from phloem.constrained.json_schema.normalise.compose import any_of
from phloem.constrained.json_schema.normalise.recursion import is_met, recursive, references
from phloem.constrained.json_schema.normalise.values import distinct
from phloem.constrained.json_schema.normalise.workspace import (
    ROOT,
    Indescribable,
    Rewrite,
    Workspace,
)

_ALTERNATIVES = ("allOf", "anyOf")


def lower(workspace: Workspace, shapes: Sequence[Rewrite]) -> dict[str, Schema | bool]:
    """The definitions, the root among them, in keywords that need no rewriting."""
    lowering = _Lowering(workspace, shapes)
    done: dict[str, Schema | bool] = {}
    todo = [ROOT]
    while todo:
        name = todo.pop()
        if name not in done:
            done[name] = lowering.top(workspace.definitions[name])
            todo.extend(reversed(list(references(done[name]))))
    return done


class _Lowering:
    """Rewrites single schemas."""

    def __init__(self, workspace: Workspace, shapes: Sequence[Rewrite]) -> None:
        self._workspace = workspace
        self._shapes = shapes
        self._rewrites = (*workspace.logic, *shapes)
        self._triggers = frozenset(word for one in self._rewrites for word in one.keywords)
        self._recursive = recursive(workspace.definitions)

    def top(self, schema: Schema | bool) -> Schema | bool:
        """``schema``, rewritten at its own level and then inside."""
        if isinstance(schema, bool):
            return schema
        with self._workspace.at(schema):
            return self._located(self._rewritten(schema))

    def _rewritten(self, schema: Schema) -> Schema | bool:
        if not self._concerns(schema):
            return map_children(schema, self._inner)
        if schema.keys() == {"anyOf"}:
            return any_of(self._inner(option) for option in schema["anyOf"])
        found = self._all_shaped(cases(schema, self._workspace))
        return any_of(self._located(map_children(_spelled(case), self._inner)) for case in found)

    def _located(self, schema: Schema | bool) -> Schema | bool:
        if isinstance(schema, dict):
            self._workspace.locate(schema, self._workspace.place)
        return schema

    def _inner(self, schema: Schema | bool) -> Schema | bool:
        """Like `top`, but what refers to anything becomes a definition, as it may recur."""
        if isinstance(schema, bool) or not self._concerns(schema):
            return self.top(schema)
        if '"$ref"' in strict_json.dumps(schema):
            return self._workspace.define(schema)
        return self.top(schema)

    def _concerns(self, schema: Schema | bool) -> bool:
        """Whether ``schema`` must be rewritten at its own level."""
        if isinstance(schema, bool):
            return False
        if is_met(schema, self._recursive):
            return True
        if not self._triggers.isdisjoint(schema) and any(
            rewrite.concerns(schema, self._workspace.ready) for rewrite in self._rewrites
        ):
            return True
        return any(
            self._concerns(member) for key in _ALTERNATIVES for member in schema.get(key, ())
        )

    def _all_shaped(self, found: Sequence[Schema]) -> list[Schema]:
        """What the cases ``found`` become once no rewrite of shapes applies.

        One that cannot be described is left out if others can be.
        """
        shaped: list[Schema] = []
        failures: list[Indescribable] = []
        todo = list(reversed(found))
        while todo:
            case = todo.pop()
            try:
                rewritten = self._shaped(case)
            except Indescribable as error:
                failures.append(error)
            else:
                if rewritten is None:
                    shaped.append(case)
                else:
                    todo.extend(reversed(cases(rewritten, self._workspace)))
        if failures and not shaped:
            raise failures[0]
        for failure in failures:
            self._workspace.warn(f"some of what is valid is not generated ({failure.message})")
        return distinct(shaped)

    def _shaped(self, case: Schema) -> Schema | bool | None:
        """``case`` after a rewrite of shapes; None if none applies."""
        for rewrite in self._shapes:
            if rewrite.concerns(case, self._workspace.ready):
                self._workspace.spend(1)
                return rewrite.apply(case, self._workspace)
        return None


def _spelled(case: Schema) -> Schema:
    """``case`` with a single type as a string."""
    names = case.get("type", ())
    return {**case, "type": names[0]} if len(names) == 1 else case
