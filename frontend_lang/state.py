"""The state that a program receives as ``s``: text and variables, added to with ``+=``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from phloem.frontend_lang.fork import StateGroup
from phloem.frontend_lang.ir import (
    Expr,
    Role,
    RoleBegin,
    RoleEnd,
    ScopeBegin,
    ScopeEnd,
    as_expr,
    in_role,
)
from phloem.frontend_lang.promise import Promise, Stream
from phloem.frontend_lang.transcript import Message, Transcript
from phloem.frontend_lang.variables import Value, Variable
from phloem.runtime.errors import RequestError

if TYPE_CHECKING:
    from phloem.frontend_lang.branch import Branch
    from phloem.frontend_lang.run import Run

M_co = TypeVar("M_co", covariant=True)


class JsonModel(Protocol[M_co]):
    """A class that reads itself from JSON, as pydantic's models do."""

    def model_validate_json(self, json_data: str) -> M_co:
        """The object that ``json_data`` describes."""


class ProgramState:
    """The text of one program so far and the variables in it.

    Adding never waits: ``+=`` queues its expressions, which run in order beside the program.
    Reading waits for what is read. An expression that fails fails the state: whatever comes
    after it raises the original error where it is read; what came before stays readable.

    Attributes:
        ret_value: what the program's function returned.
    """

    def __init__(self, run: Run, branch: Branch) -> None:
        self.ret_value: Any = None
        self._run = run
        self._branch = branch

    def __iadd__(self, value: Expr | str) -> Self:
        self._branch.add(as_expr(value))
        return self

    def system(self, expr: Expr | str | None = None) -> AbstractContextManager[None]:
        """Add a system turn of ``expr``, or of what a ``with`` block adds."""
        return self._turn("system", expr)

    def user(self, expr: Expr | str | None = None) -> AbstractContextManager[None]:
        """Add a user turn of ``expr``, or of what a ``with`` block adds."""
        return self._turn("user", expr)

    def assistant(self, expr: Expr | str | None = None) -> AbstractContextManager[None]:
        """Add an assistant turn of ``expr``, or of what a ``with`` block adds."""
        return self._turn("assistant", expr)

    @contextmanager
    def var_scope(self, name: str) -> Iterator[None]:
        """Keep all text that the ``with`` block adds as variable ``name``."""
        with self._between(ScopeBegin(name), ScopeEnd(name)):
            yield

    def set_var(self, name: str, value: Any) -> None:
        """Let ``name`` be ``value``; same as ``s[name] = value``."""
        self._branch.variables.declare(name, Variable(Promise.kept(Value(value))))

    __setitem__ = set_var

    def fork(self, n: int = 1) -> StateGroup:
        """``n`` states that start as this one stands now and go on independently.

        Raises:
            RequestError: ``n`` is not a positive integer.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise RequestError(f"fork takes a positive number of states, not {n!r}", param="n")
        self._branch.check_open()
        branches = [self._run.new_branch(self._branch) for _ in range(n)]
        states = [ProgramState(self._run, branch) for branch in branches]
        return StateGroup(self._branch, branches, states)

    def copy(self) -> ProgramState:
        """An independent state that starts as this one stands now."""
        return self.fork(1)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._branch.close()

    def get_var(self, name: str) -> Any:
        """The value of variable ``name``, once it is there; same as ``s[name]``.

        Raises:
            KeyError: the program makes no such variable.
            Exception: what failed the state before the variable had its value.
        """
        return self._value(name).value

    __getitem__ = get_var

    def __contains__(self, name: str) -> bool:
        return name in self._branch.variables.snapshot()

    def get_meta_info(self, name: str) -> Any:
        """How variable ``name`` came about: a dict, or a list of them for a list of values."""
        return self._value(name).meta

    def result(self, name: str, model: JsonModel[M_co]) -> M_co:
        """Variable ``name``, which is JSON text, as an object of the pydantic ``model``."""
        return model.model_validate_json(self.get_var(name))

    def text(self) -> str:
        """All text, after everything added so far (after the whole program, read from outside a
        streaming run)."""
        return self._transcript().result().text

    def messages(self) -> list[Message]:
        """The finished chat turns."""
        return list(self._transcript().result().messages)

    def error(self) -> BaseException | None:
        """What failed the state, after everything added so far; None if nothing did."""
        return self._transcript().exception()

    def sync(self) -> None:
        """Wait for everything added so far, failed or not."""
        self.error()

    def text_iter(self, name: str | None = None) -> Iterator[Any]:
        """Variable ``name``, or the whole text, in pieces as it grows.

        All in one piece where the run does not stream, where the variable is not a ``gen``'s,
        and for the program that reads its own whole text.
        """
        if name is None:
            yield from self._published() or [self.text()]
        else:
            variable = self._find(name).result()
            yield from variable.chunks or [variable.value.result().value]

    async def text_async_iter(self, name: str | None = None) -> AsyncIterator[Any]:
        """``text_iter`` for use inside any running event loop."""
        variable = None if name is None else await self._find(name)
        stream = self._published() if variable is None else variable.chunks
        if stream is not None:
            async for piece in stream:
                yield piece
        elif variable is not None:
            yield (await variable.value).value
        else:
            yield (await self._transcript()).text

    def _turn(self, role: Role, expr: Expr | str | None) -> AbstractContextManager[None]:
        if expr is None:
            return self._between(RoleBegin(role), RoleEnd(role))
        self._branch.add(in_role(role, expr))
        return nullcontext()

    @contextmanager
    def _between(self, begin: Expr, end: Expr) -> Iterator[None]:
        self._branch.add(begin)
        yield
        self._branch.add(end)

    def _find(self, name: str) -> Promise[Variable]:
        return self._branch.variables.find(name, wait=self._run.reader_waits())

    def _value(self, name: str) -> Value:
        return self._find(name).result().value.result()

    def _published(self) -> Stream | None:
        """The text as it grows; not for the program itself, before whose end it does not end."""
        return self._branch.published if self._run.reader_waits() else None

    def _transcript(self) -> Promise[Transcript]:
        if self._run.reader_waits():
            self._run.ended.result()
        return self._branch.snapshot()
