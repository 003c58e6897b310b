"""States that forked from one, handled as a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Self

from phloem.frontend_lang.ir import Expr, as_expr
from phloem.runtime.errors import RequestError

if TYPE_CHECKING:
    from phloem.frontend_lang.branch import Branch
    from phloem.frontend_lang.state import ProgramState

JoinMode = Literal["gather_variable", "concate_and_append"]
Addition = Expr | str | Callable[[int], Expr | str] | Sequence[Expr | str]


class StateGroup:
    """The states of one ``fork``, in order; ``+=`` adds to all of them."""

    def __init__(self, parent: Branch, branches: list[Branch], states: list[ProgramState]) -> None:
        self._parent = parent
        self._branches = branches
        self._states = states

    def __iadd__(self, value: Addition) -> Self:
        """Add one expression to each state: the same, one per state of a list, or what
        a function makes of the state's index.

        Raises:
            RequestError: a list has not as many entries as the group has states.
        """
        for branch, expr in zip(self._branches, self._spread(value), strict=True):
            branch.add(expr)
        return self

    def __getitem__(self, index: int) -> ProgramState:
        return self._states[index]

    def __setitem__(self, index: int, state: ProgramState) -> None:
        """Complete ``group[i] += expr``, which Python ends with an assignment."""
        if state is not self._states[index]:
            raise TypeError("the states of a group are its forks; add to them with +=")

    def __iter__(self) -> Iterator[ProgramState]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def join(self, mode: JoinMode = "gather_variable") -> None:
        """Bring the forks' results to their parent and end the forks. Nothing is waited for.

        ``gather_variable``: each variable that the forks made becomes, in the parent, the list
        of its values in their order. ``concate_and_append``: the text that each fork added is
        appended to the parent's, one after another.

        A fork that failed fails the parent here; read a fork's ``error()`` first to spare it.

        Raises:
            RequestError: ``mode`` is neither.
        """
        if mode == "gather_variable":
            self._parent.gather(self._branches)
        elif mode == "concate_and_append":
            self._parent.graft(self._branches)
        else:
            raise RequestError(
                f"join mode must be 'gather_variable' or 'concate_and_append', not {mode!r}",
                param="mode",
            )
        for branch in self._branches:
            branch.close()

    def _spread(self, value: Addition) -> list[Expr]:
        if callable(value):
            return [as_expr(value(index)) for index in range(len(self))]
        if isinstance(value, Expr | str):
            return [as_expr(value)] * len(self)
        if len(value) != len(self):
            raise RequestError(f"{len(value)} expressions for a group of {len(self)} states")
        return [as_expr(each) for each in value]
