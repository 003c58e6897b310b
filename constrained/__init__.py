"""Schemas, regexes and grammars compiled to token masks; stands alone."""

from phloem.constrained.admission import check
from phloem.constrained.bitmask import allocate
from phloem.constrained.compiler import GrammarCompiler
from phloem.constrained.engines.tokenizer import read_vocabulary
from phloem.constrained.errors import GrammarError, GrammarLimit, GrammarViolation
from phloem.constrained.limits import Limits
from phloem.constrained.matcher import Grammar, Matcher
from phloem.constrained.spec import GrammarKind, GrammarOptions, GrammarSpec
from phloem.constrained.vocabulary import Vocabulary

__all__ = [
    "Grammar",
    "GrammarCompiler",
    "GrammarError",
    "GrammarKind",
    "GrammarLimit",
    "GrammarOptions",
    "GrammarSpec",
    "GrammarViolation",
    "Limits",
    "Matcher",
    "Vocabulary",
    "allocate",
    "check",
    "read_vocabulary",
]
