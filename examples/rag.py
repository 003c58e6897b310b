"""Questions over documents: the best chapter is retrieved, and the model answers from it.

Several questions need the same chapter. With the prefix cache a chapter is computed for its first
question only; the program prints how much that saves. Run: python examples/rag.py
"""

from __future__ import annotations

import importlib
import inspect
import re
import time

import phloem as ph

MODULES = ("statistics", "textwrap", "shutil")
QUESTIONS = (
    "Which function removes common leading whitespace from the lines of a text?",
    "Which function wraps a single paragraph of text into lines?",
    "Which function returns the most common value of the data?",
    "Which function returns the middle value of the data?",
    "Which function deletes an entire directory tree?",
    "Which function returns disk usage statistics about a path?",
)


def chapter(module_name: str) -> dict[str, str]:
    """The first sentence on each public function of a module of the standard library."""
    module = importlib.import_module(module_name)
    functions = {name: getattr(module, name) for name in module.__all__}
    return {
        name: " ".join(inspect.getdoc(function).split("\n\n")[0].split())
        for name, function in functions.items()
        if inspect.isfunction(function) and inspect.getdoc(function)
    }


def retrieve(chapters: dict[str, dict[str, str]], question: str) -> dict[str, str]:
    """The chapter whose best entry has most of the question's words."""

    def words(text: str) -> set[str]:
        return set(re.findall(r"[a-z]{4,}", text.lower()))

    def overlap(entries: dict[str, str]) -> int:
        return max(len(words(question) & words(text)) for text in entries.values())

    return max(chapters.values(), key=overlap)


@ph.function
def answer(s, chapter, question):
    # What the questions on a chapter share comes first.
    s += "Functions:\n" + "".join(f"{name}: {text}\n" for name, text in chapter.items())
    s += f"\nQuestion: {question}\nAnswer: the function "
    # The answer is one of the chapter's functions, whatever the model would like to invent.
    s += ph.gen("function", regex="|".join(chapter))


def ask_all(engine: ph.Engine, chapters: dict[str, dict[str, str]]) -> list[str]:
    """The answers to all questions, one after another; prints what was computed for them."""
    before, started = engine.stats(), time.perf_counter()
    answers = []
    for question in QUESTIONS:
        state = answer.run(retrieve(chapters, question), question, backend=engine, temperature=0)
        answers.append(state["function"])
    seconds, after = time.perf_counter() - started, engine.stats()
    cached = after.cached_tokens_total - before.cached_tokens_total
    prompt = after.prompt_tokens_total - before.prompt_tokens_total
    print(f"{seconds:5.1f} s, {cached} of {prompt} prompt tokens cached ({cached / prompt:.0%})")
    return answers


def main() -> None:
    chapters = {name: chapter(name) for name in MODULES}
    for prefix_cache in (False, True):
        with ph.Engine(prefix_cache=prefix_cache) as engine:
            print("with the cache:   " if prefix_cache else "without the cache:", end=" ")
            answers = ask_all(engine, chapters)
    for question, function in zip(QUESTIONS, answers, strict=True):
        print(f"{question}\n  -> {function}")


if __name__ == "__main__":
    main()
