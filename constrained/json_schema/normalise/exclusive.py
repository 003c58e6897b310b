"""``oneOf``: branches that exclude each other are an ``anyOf``, others are made to."""

from __future__ import annotations

from collections import Counter

from phloem.constrained import strict_json
from phloem.constrained.json_schema.keywords import Schema
from phloem.constrained.json_schema.normalise.compose import all_of, any_of, both, negation
from phloem.constrained.json_schema.normalise.overlap import Overlaps
from phloem.constrained.json_schema.normalise.workspace import Workspace


def rewrite_one_of(schema: Schema, workspace: Workspace) -> Schema | bool:
    """``schema`` with an ``anyOf`` for its ``oneOf``.

    A branch that is there twice is never the only one to hold, so it only excludes the others.
    """
    rest = {key: value for key, value in schema.items() if key != "oneOf"}
    branches = schema["oneOf"]
    overlaps = Overlaps(branches, workspace, given=rest)
    texts = list(map(strict_json.dumps, branches))
    counts = Counter(texts)
    return both(
        rest,
        any_of(
            all_of((branches[index], *map(negation, overlaps.rivals(index))))
            for index in overlaps.possible
            if counts[texts[index]] == 1
        ),
    )
