"""The process that runs outlines-core, as a program: it imports nothing of ours.

Reads pickles: the vocabulary as (EOS id, {bytes: ids}), then regexes. Answers each regex with a
pickle: an error in words, or the index as (offsets, tokens, targets, accepting), where state s
has the tokens from offsets[s] to offsets[s + 1], ascending, and the start is state 0.
"""

from __future__ import annotations

import pickle
import resource
import sys
from array import array

from outlines_core import Index, Vocabulary

Answer = str | tuple[bytes, bytes, bytes, bytes]


def main(memory: int, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    eos, tokens = pickle.load(source)
    vocabulary = Vocabulary(eos, tokens)
    while True:
        try:
            regex = pickle.load(source)
        except EOFError:
            return
        allow(seconds)
        pickle.dump(answer(regex, vocabulary, eos), sink)
        sink.flush()


def allow(seconds: int) -> None:
    """Let the process end once it has taken so much more time of the processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def answer(regex: str, vocabulary: Vocabulary, eos: int) -> Answer:
    try:
        return flatten(Index(regex, vocabulary), eos)
    except Exception as error:  # of no common type
        return f"{type(error).__name__}: {error}"


def flatten(index: Index, eos: int) -> Answer:
    transitions = index.get_transitions()
    start = index.get_initial_state()
    states = [start, *(state for state in transitions if state != start)]
    numbers = {state: number for number, state in enumerate(states)}
    for state in index.get_final_states():
        numbers.setdefault(state, len(numbers))
    offsets, tokens, targets = array("q", [0]), array("i"), array("i")
    for state in numbers:
        for token, target in sorted(transitions.get(state, {}).items()):
            if token != eos:
                tokens.append(token)
                targets.append(numbers[target])
        offsets.append(len(tokens))
    accepting = bytes(map(index.is_final_state, numbers))
    return offsets.tobytes(), tokens.tobytes(), targets.tobytes(), accepting


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
