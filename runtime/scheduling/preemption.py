"""Who has to stop so that a waiting sequence of higher priority can start."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many

from phloem.runtime.scheduling.room import Room
from phloem.runtime.scheduling.sequence import Sequence


def victims(
    seq: Sequence, running: Many[Sequence], lower: Iterable[Sequence], room: Room
) -> list[Sequence]:
    """Those of ``lower`` that keep ``seq`` from starting beside the others that run.

    ``lower`` begins with who loses least by it; who loses most stays if that is possible. Empty if
    ``seq`` has room as it is, and if all of them would stop in vain.
    """
    leaving = list(lower)
    staying = [each for each in running if each not in leaving]
    if room.suffices(seq, running, ()) or not room.suffices(seq, staying, leaving):
        return []
    for each in reversed(tuple(leaving)):
        others = [other for other in leaving if other is not each]
        if room.suffices(seq, [*staying, each], others):
            staying, leaving = [*staying, each], others
    return leaving
