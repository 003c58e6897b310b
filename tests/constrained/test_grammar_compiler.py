"""The compile service: one compile per key, bounded caches, failures remembered for a while."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from typing import Any

import pytest
from constrained_tools import schema_spec

from phloem.constrained import GrammarCompiler, GrammarError, GrammarSpec, Limits, Vocabulary
from phloem.constrained.cache import GrammarCache
from phloem.constrained.engines.choice import ChoiceEngine
from phloem.constrained.spec import GrammarKind
from phloem.constrained.state import Compiled


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fresh(vocabulary: Vocabulary, clock: Clock) -> Iterator[GrammarCompiler]:
    compiler = GrammarCompiler(vocabulary, clock=clock)
    yield compiler
    compiler.close()


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[GrammarSpec]:
    """The specs that the choice engine was given, in order."""
    seen: list[GrammarSpec] = []
    compile_choice = ChoiceEngine.compile

    def counted(engine: ChoiceEngine, spec: GrammarSpec) -> Compiled:
        seen.append(spec)
        return compile_choice(engine, spec)

    monkeypatch.setattr(ChoiceEngine, "compile", counted)
    return seen


def choice(*words: str) -> GrammarSpec:
    return GrammarSpec("choice", json.dumps(words))


def test_equal_specs_share_one_grammar(fresh: GrammarCompiler) -> None:
    spec = schema_spec({"type": "null"})
    spaced = GrammarSpec("json_schema", ' { "type" : "null" } ')
    grammar = fresh.compile(spec)
    assert fresh.compile(spec) is fresh.compile(spaced) is grammar
    assert fresh.compile(schema_spec({"type": "null"}, whitespace="compact")) is not grammar
    assert grammar.spec is spec and grammar.nbytes > 0 and grammar.compile_s > 0


@pytest.mark.parametrize("kind", ["json_schema", "json_object", "regex", "ebnf", "choice"])
def test_every_kind_compiles(fresh: GrammarCompiler, kind: GrammarKind) -> None:
    texts = {"json_schema": "true", "regex": "a", "ebnf": 'root ::= "a"', "choice": '["a"]'}
    grammar = fresh.compile(GrammarSpec(kind, texts.get(kind, "ignored")))
    assert grammar.matcher().fork().terminated is False


def test_specs_compile_once_however_many_wait(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, compiles: list[GrammarSpec]
) -> None:
    compiler = GrammarCompiler(vocabulary, workers=2)
    go = threading.Event()
    counted = ChoiceEngine.compile
    monkeypatch.setattr(
        ChoiceEngine, "compile", lambda engine, spec: (go.wait(30), counted(engine, spec))[1]
    )
    futures = [compiler.submit(choice("a", "b")) for _ in range(20)]
    assert not any(future.done() for future in futures)
    assert futures[3].cancel()
    go.set()
    wait(futures, 30)
    assert len(compiles) == 1
    assert len({id(future.result()) for future in futures if not future.cancelled()}) == 1
    assert compiler.compile(choice("a", "b")) is futures[0].result()
    compiler.close()


def test_many_threads_get_one_grammar_each_key(
    fresh: GrammarCompiler, compiles: list[GrammarSpec]
) -> None:
    got: list[tuple[int, Any]] = []

    def work(worker: int) -> None:
        for step in range(30):
            key = (worker + step) % 5
            got.append((key, fresh.compile(choice(f"word {key}"))))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 240 and len(compiles) == 5
    assert len({(key, id(grammar)) for key, grammar in got}) == 5


def test_failures_are_remembered_for_a_while(
    fresh: GrammarCompiler, clock: Clock, compiles: list[GrammarSpec]
) -> None:
    bad = GrammarSpec("choice", "[1]")
    errors = []
    for now in (0.0, 59.0, 61.0):
        clock.now = now
        with pytest.raises(GrammarError) as caught:
            fresh.compile(bad)
        errors.append(caught.value)
    assert len(compiles) == 2
    assert len({id(error) for error in errors}) == 3
    assert {(error.message, error.pointer, error.code) for error in errors} == {
        (errors[0].message, "#/0", "invalid_grammar")
    }


def test_failures_do_not_pile_up(
    vocabulary: Vocabulary, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phloem.constrained.compiler._MOST_FAILURES", 10)
    compiler = GrammarCompiler(vocabulary, clock=clock)
    for number in range(40):
        clock.now += 1
        with pytest.raises(GrammarError):
            compiler.compile(GrammarSpec("choice", f"[{number}]"))
    assert len(compiler._failures) == 10
    compiler.close()


def test_the_least_recently_used_goes_first(
    vocabulary: Vocabulary, compiles: list[GrammarSpec]
) -> None:
    one = GrammarCompiler(vocabulary).compile(choice("word 0")).nbytes
    compiler = GrammarCompiler(vocabulary, cache_bytes=3 * one)
    compiles.clear()
    for key in (0, 1, 2, 0, 3, 0, 2, 1):  # 1 is out when 3 comes, 3 when 1 comes again
        compiler.compile(choice(f"word {key}"))
    assert [json.loads(spec.text)[0][-1] for spec in compiles] == ["0", "1", "2", "3", "1"]
    compiler.close()


def test_the_cache_is_bounded_by_number_and_keeps_the_newest(fresh: GrammarCompiler) -> None:
    grammars = [fresh.compile(choice(str(number))) for number in range(4)]
    cache = GrammarCache(max_bytes=1, max_entries=2)
    for number, grammar in enumerate(grammars):
        cache.put(number, grammar)
        assert len(cache) == 1 and cache.nbytes == grammar.nbytes
    cache = GrammarCache(max_bytes=2**40, max_entries=2)
    for number, grammar in enumerate(grammars):
        cache.put(number, grammar)
    assert [cache.get(number) is not None for number in range(4)] == [False, False, True, True]


def test_what_nothing_satisfies_does_not_compile(fresh: GrammarCompiler) -> None:
    for schema in (
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"enum": []},
        {"type": "string", "const": 1},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"required": ["a"], "properties": {"a": False}, "type": "object"},
        {"minLength": 3, "maxLength": 2, "type": "string"},
    ):
        with pytest.raises(GrammarError) as caught:
            fresh.compile(schema_spec(schema))
        assert caught.value.code == "invalid_grammar"


def test_what_the_engine_refuses_is_located(fresh: GrammarCompiler) -> None:
    patterns = {"patternProperties": {"a{1,300}b": {}, "b{1,300}a$": {}}}
    counted = {"properties": {key: {} for key in "abcdefgh"}, "minProperties": 4}
    counted["additionalProperties"] = False
    for schema, pointer in ((patterns, "#/patternProperties"), (counted, "#/minProperties")):
        with pytest.raises(GrammarError) as caught:
            fresh.compile(schema_spec(schema))
        assert (caught.value.pointer, caught.value.code) == (pointer, "unsupported_json_schema")
        assert "\n" not in caught.value.message and "coerce" not in caught.value.message


def test_limits_are_the_compilers_own(vocabulary: Vocabulary) -> None:
    compiler = GrammarCompiler(vocabulary, limits=Limits(choices=1, text_bytes=20))
    for spec in (choice("a", "b"), choice("a" * 30)):
        with pytest.raises(GrammarError) as caught:
            compiler.compile(spec)
        assert caught.value.code == "grammar_too_complex"
    compiler.close()


def test_a_closed_compiler_takes_nothing(vocabulary: Vocabulary) -> None:
    compiler = GrammarCompiler(vocabulary)
    compiler.close()
    with pytest.raises(RuntimeError):
        compiler.submit(choice("a"))


def test_closing_cancels_what_waits(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = GrammarCompiler(vocabulary, workers=1)
    started, go = threading.Event(), threading.Event()
    compile_choice = ChoiceEngine.compile

    def slow(engine: ChoiceEngine, spec: GrammarSpec) -> Compiled:
        started.set()
        go.wait(30)
        return compile_choice(engine, spec)

    monkeypatch.setattr(ChoiceEngine, "compile", slow)
    running, waiting = compiler.submit(choice("a")), compiler.submit(choice("b"))
    started.wait(30)
    threading.Timer(0.1, go.set).start()
    compiler.close()
    assert running.result(30).spec == choice("a")
    with pytest.raises(CancelledError):
        waiting.result(30)
