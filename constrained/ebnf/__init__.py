"""EBNF in GBNF notation (llama.cpp, XGrammar): parsing, and lowering to the engine's notation."""

from phloem.constrained.ebnf.lark import to_lark
from phloem.constrained.ebnf.parser import parse

__all__ = ["parse", "to_lark"]
