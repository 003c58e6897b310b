"""What a strand can be told to do besides evaluating an expression."""

from __future__ import annotations

from dataclasses import dataclass

from phloem.frontend_lang.ir import Expr
from phloem.frontend_lang.promise import Promise
from phloem.frontend_lang.transcript import Transcript
from phloem.frontend_lang.variables import Value


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Yield the transcript as it stands."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Take over another strand's transcript: the first action of a fork."""

    source: Promise[Transcript]


@dataclass(frozen=True, slots=True)
class Gather:
    """Yield the values of other strands' variables as one list."""

    sources: tuple[Promise[Value], ...]


@dataclass(frozen=True, slots=True)
class Graft:
    """Append what another strand added to ``base`` until it stood at ``tip``."""

    base: Promise[Transcript]
    tip: Promise[Transcript]


@dataclass(frozen=True, slots=True)
class Close:
    """End the published text."""


Action = Expr | Snapshot | Restore | Gather | Graft | Close
