"""What a grammar is asked to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from phloem.constrained import strict_json
from phloem.constrained.errors import GrammarError

GrammarKind = Literal["json_schema", "json_object", "regex", "ebnf", "choice"]
KINDS: tuple[GrammarKind, ...] = ("json_schema", "json_object", "regex", "ebnf", "choice")


@dataclass(frozen=True, slots=True)
class GrammarOptions:
    """Choices of form that leave the meaning alone.

    ``whitespace`` (JSON only): ``flexible`` allows up to 40 characters of white space wherever
    JSON does inside the document, ``compact`` none. Neither allows any around the document.
    """

    whitespace: Literal["flexible", "compact"] = "flexible"


@dataclass(frozen=True)
class GrammarSpec:
    """A grammar's source.

    Attributes:
        kind: what ``text`` is.
        text: for ``json_schema`` the schema as JSON text; for ``choice`` a JSON array of strings;
            for ``regex`` an expression that the whole output must match; for ``ebnf`` a grammar
            in GBNF notation whose start rule is ``root``; ignored for ``json_object``.
        options: see `GrammarOptions`.
    """

    kind: GrammarKind
    text: str = ""
    options: GrammarOptions = field(default_factory=GrammarOptions)

    @cached_property
    def key(self) -> tuple[str, str, GrammarOptions]:
        """Equal for specs that mean the same to every engine.

        JSON is compared without its white space. The order of keys is kept: it is the order in
        which a model writes them.
        """
        return self.kind, self._canonical_text(), self.options

    def _canonical_text(self) -> str:
        if self.kind == "json_object":
            return ""
        if self.kind not in ("json_schema", "choice"):
            return self.text
        try:
            return strict_json.dumps(strict_json.loads(self.text, depth=500))
        except GrammarError:
            return self.text  # it will be refused; two spellings are two refusals
