"""One line of a program's text with its variables: the machinery behind a state."""

from __future__ import annotations

from collections.abc import Sequence

from phloem.frontend_lang.actions import Action, Close, Gather, Graft, Restore, Snapshot
from phloem.frontend_lang.errors import ProgramError
from phloem.frontend_lang.interpreter import Context
from phloem.frontend_lang.ir import Expr, Gen, ScopeEnd, Select, flatten
from phloem.frontend_lang.promise import Promise, Stream
from phloem.frontend_lang.strand import Strand
from phloem.frontend_lang.transcript import Transcript
from phloem.frontend_lang.variables import Variable, Variables


class Branch:
    """A strand and the variables that its actions give values to.

    Variables are declared in the thread that adds, at once, so that a read that follows finds
    them; their values come later. A fork shares its parent's variables, since each is given
    a value only once.

    Attributes:
        variables: everything declared here or inherited.
        published: the text as it grows; None where the run does not stream.
    """

    def __init__(self, context: Context, parent: Branch | None) -> None:
        self._context = context
        self._strand = Strand(context)
        self._inherited: dict[str, Variable] = parent.variables.snapshot() if parent else {}
        self._base = parent.snapshot() if parent else Promise.kept(Transcript())
        self._strand.submit(Restore(self._base))
        self._open = True
        self.variables: Variables = Variables(self._inherited)
        self.published = self._strand.published if context.streaming else None

    def add(self, expr: Expr) -> None:
        """Queue ``expr`` and declare the variables that it makes."""
        self.check_open()
        for item in flatten(expr):
            match item:
                case Gen(name=str(name)):
                    chunks = Stream() if self._context.streaming else None
                    self._declare(name, item, chunks)
                case Select(name=str(name)) | ScopeEnd(name=name):
                    self._declare(name, item)
                case _:
                    self._strand.submit(item)

    def snapshot(self) -> Promise[Transcript]:
        """The transcript after all that is queued now."""
        return self._strand.submit(Snapshot())

    def gather(self, children: Sequence[Branch]) -> None:
        """Declare each variable that children made since they forked as the list of its values,
        in the children's order."""
        self.check_open()
        made = [child.made() for child in children]
        for name in dict.fromkeys(name for variables in made for name in variables):
            sources = tuple(variables[name].value for variables in made if name in variables)
            self._declare(name, Gather(sources))

    def graft(self, children: Sequence[Branch]) -> None:
        """Append the text that children added since they forked from here."""
        self.check_open()
        for child in children:
            self._strand.submit(Graft(child._base, child.snapshot()))

    def made(self) -> dict[str, Variable]:
        """The variables declared here and not inherited."""
        return {
            name: variable
            for name, variable in self.variables.snapshot().items()
            if variable is not self._inherited.get(name)
        }

    def close(self) -> None:
        """Take no more additions."""
        self._open = False

    def fail(self, error: BaseException) -> None:
        """Fail what is under way and all that follows with ``error``."""
        self._strand.fail(error)

    def end(self, error: BaseException | None) -> None:
        """Close for good: the published text ends, and no more variables are declared."""
        self.close()
        self._strand.submit(Close(), self.published)
        self.variables.close(error)

    def check_open(self) -> None:
        """Raise ProgramError if the branch takes no more additions."""
        if not self._open:
            raise ProgramError("this state has ended: it was joined, or its program is over")

    def _declare(self, name: str, action: Action, chunks: Stream | None = None) -> None:
        value = self._strand.submit(action, chunks)
        self.variables.declare(name, Variable(value, chunks))
