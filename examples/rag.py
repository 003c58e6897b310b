"""Questions over documents: the best document is retrieved, and the model answers from it.

Several questions need the same document. With the prefix cache it is computed for the first of
them only; the program prints what that saves. Run: python examples/rag.py
"""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
import time

import phloem as ph

DOCUMENTS = [
    f"{thing.__name__}\n\n{inspect.getdoc(thing)}"
    for thing in (textwrap.TextWrapper, difflib.get_close_matches)
]
QUESTIONS = [
    "What is the default width of a TextWrapper?",
    "What is the default tabsize of a TextWrapper?",
    "Which methods form the public interface of a TextWrapper?",
    "What is the default of n in get_close_matches?",
    "What is the default cutoff of get_close_matches?",
    "What does get_close_matches return?",
]


def retrieve(question: str) -> str:
    """The document that has most of the question's words."""

    def words(text: str) -> set[str]:
        return set(re.findall(r"\w{3,}", text.lower()))

    return max(DOCUMENTS, key=lambda document: len(words(question) & words(document)))


@ph.function
def answer(s, question):
    # What questions have in common comes first: the instruction, then the document.
    s += ph.system("Answer in one short sentence from the document.")
    s += ph.user(f"{retrieve(question)}\n\n{question}")
    s += ph.assistant(ph.gen("answer", max_tokens=32, stop=["\n", ". "]))


def ask_all(engine: ph.Engine) -> list[str]:
    """The answers, asked for one after another; prints what was computed for them."""
    before, started = engine.stats(), time.perf_counter()
    answers = [answer.run(q, backend=engine, temperature=0)["answer"] for q in QUESTIONS]
    seconds, after = time.perf_counter() - started, engine.stats()
    prompt = after.prompt_tokens_total - before.prompt_tokens_total
    cached = after.cached_tokens_total - before.cached_tokens_total
    print(f"{seconds:5.1f} s, {cached} of {prompt} prompt tokens cached: {cached / prompt:.0%}")
    return answers


def main() -> None:
    for prefix_cache in (False, True):
        with ph.Engine(prefix_cache=prefix_cache) as engine:
            print("with the cache:   " if prefix_cache else "without the cache:", end=" ")
            answers = ask_all(engine)
    for question, text in zip(QUESTIONS, answers, strict=True):
        print(f"\n{question}\n  {text}")


if __name__ == "__main__":
    main()
