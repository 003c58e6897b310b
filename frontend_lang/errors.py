"""Errors of programs themselves; those of requests are in ``phloem.runtime.errors``."""

from phloem.runtime.errors import PhloemError


class ProgramError(PhloemError):
    """A program does what its state does not allow, such as nesting roles."""
