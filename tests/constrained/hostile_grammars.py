"""Grammars meant to hang, to fill memory or to overflow a stack; run as a program of its own.

Prints one JSON line for each: its name, and ``ok`` or the code of the refusal.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from collections.abc import Callable
from typing import Any

from constrained_tools import MODEL_WIDTH, Bench, schema_spec, tiny_tokenizer

from phloem.constrained import (
    GrammarCompiler,
    GrammarError,
    GrammarLimit,
    GrammarSpec,
    check,
    read_vocabulary,
)

CPU_SECONDS = 100
ADDRESS_SPACE = 6 * 2**30
STEPS = 25


def chain(link: Callable[[int], Any], length: int) -> GrammarSpec:
    """A schema whose definitions refer to each other in a row."""
    links = {f"a{number}": link(number) for number in range(length)}
    return schema_spec({"$ref": "#/$defs/a0", "$defs": {**links, f"a{length}": {"type": "null"}}})


def ref(number: int) -> dict[str, str]:
    return {"$ref": f"#/$defs/a{number}"}


def rules(link: Callable[[int], str], length: int) -> GrammarSpec:
    """An EBNF whose rules refer to each other in a row."""
    lines = [f"r{number} ::= {link(number)}" for number in range(length)]
    return GrammarSpec("ebnf", "\n".join(["root ::= r0", *lines, f'r{length} ::= "b"']))


def overlapping(number: int) -> dict[str, Any]:
    return {"properties": {"a": {"type": "string"}, f"b{number}": True}, "type": "object"}


HOSTILE: dict[str, Callable[[], GrammarSpec]] = {
    "long enum": lambda: schema_spec({"enum": [f"value number {n}" for n in range(9_000)]}),
    "many required": lambda: schema_spec({"required": [f"p{n}" for n in range(2_000)]}),
    "overlapping anyOf": lambda: schema_spec({"anyOf": [overlapping(n) for n in range(300)]}),
    "product of allOf": lambda: schema_spec(
        {"allOf": [{"anyOf": [overlapping(3 * n + m) for m in range(3)]} for n in range(10)]}
    ),
    "deep schema": lambda: GrammarSpec("json_schema", '{"items":' * 9_000 + "{}" + "}" * 9_000),
    "deep text": lambda: GrammarSpec("json_schema", "[" * 200_000),
    "open strings": lambda: GrammarSpec("json_schema", '{"a' * 60_000),
    "chain of properties": lambda: chain(lambda n: {"properties": {"x": ref(n + 1)}}, 2_000),
    "chain of refs": lambda: chain(lambda n: ref(n + 1), 6_000),
    "chain of allOf": lambda: chain(lambda n: {"allOf": [ref(n + 1)]}, 2_500),
    "doubling allOf": lambda: chain(lambda n: {"allOf": [ref(n + 1), ref(n + 1)]}, 60),
    "doubling anyOf": lambda: chain(lambda n: {"anyOf": [ref(n + 1), {"items": ref(n + 1)}]}, 200),
    "many items": lambda: schema_spec({"type": "array", "minItems": 10**5, "maxItems": 10**9}),
    "long string": lambda: schema_spec({"type": "string", "minLength": 10**6}),
    "longer string": lambda: schema_spec({"type": "string", "maxLength": 10**12}),
    "int64 constant": lambda: schema_spec({"const": -(2**63)}),
    "int64 bound": lambda: schema_spec({"type": "integer", "maximum": -(2**63) + 1}),
    "vast bound": lambda: schema_spec({"type": "number", "minimum": -1e300, "maximum": 1e300}),
    "tiny bound": lambda: schema_spec({"type": "number", "minimum": 5e-324}),
    "tiny constant": lambda: schema_spec({"const": 5e-324}),
    "prime divisor": lambda: schema_spec({"multipleOf": 4_000_037}),
    "coprime divisors": lambda: schema_spec({"allOf": [{"multipleOf": n} for n in (997, 991)]}),
    "fine divisor": lambda: schema_spec({"multipleOf": 1e-300, "anyOf": [{"multipleOf": 3}]}),
    "met patterns": lambda: schema_spec({"allOf": [{"pattern": f"a.{{{n}}}b"} for n in range(24)]}),
    "bounded words": lambda: schema_spec({"pattern": r"^(\S+\s+){0,99}\S+$", "maxLength": 5_000}),
    "many pattern keys": lambda: schema_spec(
        {"patternProperties": {f"^x{n}_": {} for n in range(99)}}
    ),
    "squared stars": lambda: GrammarSpec("regex", "(.*a){40}"),
    "cubed counts": lambda: GrammarSpec("regex", "((a{1,100}){1,100}){1,100}"),
    "doubling states": lambda: GrammarSpec("regex", "(a|b)*a(a|b){18}c"),
    "optional run": lambda: GrammarSpec("regex", "a?" * 1_300 + "a" * 1_300),
    "long regex": lambda: GrammarSpec("regex", "a" * 4_096),
    "deep regex": lambda: GrammarSpec("regex", "(" * 2_000 + ")" * 2_000),
    "wide classes": lambda: GrammarSpec("regex", r"(\p{L}{1,100}){1,100}"),
    "vast count": lambda: GrammarSpec("regex", "a{" + "9" * 4_000 + "}"),
    "many rules": lambda: GrammarSpec("ebnf", "root ::= " + " | ".join(['"word"'] * 9_000)),
    "chain of rules": lambda: rules(lambda n: f'"a" r{n + 1}', 5_000),
    "chain of open rules": lambda: rules(lambda n: f'"a" r{n + 1} | "(" r0 ")"', 3_000),
    "doubling rules": lambda: rules(lambda n: f"r{n + 1} r{n + 1}", 500),
    "doubling open rules": lambda: rules(lambda n: f'r{n + 1} r{n + 1} | "(" r0 ")"', 60),
    "ambiguous rules": lambda: GrammarSpec("ebnf", 'root ::= e\ne ::= e e e | e e | "a" | ""'),
    "cubed rules": lambda: GrammarSpec(
        "ebnf", 'root ::= ((r{1,1000}){1,1000}){1,1000}\nr ::= "(" r ")" | "x"'
    ),
    "many choices": lambda: GrammarSpec("choice", json.dumps([f"c{n}" for n in range(20_000)])),
    "long choices": lambda: GrammarSpec("choice", json.dumps(["a" * 99_999, "a" * 99_998 + "b"])),
    "nested choices": lambda: GrammarSpec("choice", json.dumps(["a" * n for n in range(1, 700)])),
    "one key twice": lambda: GrammarSpec("json_schema", "{" + '"k":1,' * 40_000 + '"k":1}'),
    "long integer": lambda: GrammarSpec("json_schema", '{"minLength":' + "9" * 9_000 + "}"),
    "long number": lambda: GrammarSpec("json_schema", '{"multipleOf":' + "9" * 300 + "}"),
    "too long": lambda: GrammarSpec("json_schema", "[" * 50_000_000),
}  # fmt: skip


def verdict(bench: Bench, spec: GrammarSpec) -> str:
    """Admit, compile and walk a little."""
    try:
        check(spec)
        matcher = bench.compiler.compile(spec).matcher()
    except GrammarError as error:
        return error.code
    rng = random.Random(0)
    try:
        for _ in range(STEPS):
            allowed = bench.allowed(matcher)
            if not allowed:
                break
            matcher.accept(rng.choice(allowed))
            matcher.forced_tokens(16)
    except GrammarLimit:
        return "limit"
    return "ok"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    tokenizer = tiny_tokenizer()
    vocabulary = read_vocabulary(tokenizer.to_str(), MODEL_WIDTH, (2, 0))
    bench = Bench(GrammarCompiler(vocabulary), vocabulary)
    for name, spec in HOSTILE.items():
        sys.stdout.write(json.dumps([name, verdict(bench, spec())]) + "\n")
        sys.stdout.flush()
    bench.compiler.close()


if __name__ == "__main__":
    main()
