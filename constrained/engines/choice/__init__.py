"""Choices among literal strings."""

from phloem.constrained.engines.choice.engine import ChoiceEngine

__all__ = ["ChoiceEngine"]
