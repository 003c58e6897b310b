"""Regexes as automata over bytes, in numpy."""

from phloem.constrained.engines.fsm.engine import FsmEngine

__all__ = ["FsmEngine"]
