"""JSON schemas in folders, such as installed packages, as JSON lines for ``constrained.py``.

    python -m structured.collect --out DIR [--instances 4] FOLDER|SUITE.jsonl=DRAFT ...

    cd benchmarks
    pip install check-jsonschema cfn-lint        # in a virtual environment of their own
    python -m structured.collect --out schemas \\
        venv/lib/python3.11/site-packages/check_jsonschema/builtin_schemas/vendor \\
        jsts/draft7.jsonl=http://json-schema.org/draft-07/schema#

A folder gives a file with every valid JSON schema below it that says something. Instances, if
wanted, are made with hypothesis-jsonschema; schemas that it cannot do, or not in time, have none.
A file in the form of the benchmark, whose schemas leave out ``$schema``, is copied with it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for

from structured.process import Process

_TELLING = {"properties", "items", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "pattern"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--instances", type=int, default=0, metavar="N", help="valid, and invalid")
    parser.add_argument("--seconds", type=float, default=10, help="for the instances of a schema")
    parser.add_argument("--limit", type=int, metavar="N", help="schemas, spread evenly")
    parser.add_argument("--name", help="of the file that is made (default: the folder's)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for source in options.sources:
        path, _, draft = source.partition("=")
        name = options.name or Path(path).stem
        cases = suite(Path(path), draft) if draft else schemas(Path(path), options)
        count = write(options.out / f"{name}.jsonl", cases)
        print(f"{name}: {count:,} schemas")


def suite(path: Path, draft: str) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            case = json.loads(line)
            if isinstance(case["schema"], dict):
                case["schema"] = {"$schema": draft, **case["schema"]}
            yield case


def schemas(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    found = list(find(folder))
    count = min(options.limit or len(found), len(found))
    command = [sys.executable, "-m", "structured.instances", str(options.instances)]
    maker = Process(command, options.seconds)
    for index in range(count):
        name, text = found[index * len(found) // count]
        made = make(maker, text) if options.instances else {"valid": [], "invalid": []}
        yield {"name": name, "schema": json.loads(text), **made}
    maker.stop()


def find(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and texts, each text once."""
    seen: set[str] = set()
    for path in sorted(folder.rglob("*.json")):
        schema = read(path)
        text = json.dumps(schema)
        if schema is not None and text not in seen:
            seen.add(text)
            yield str(path.relative_to(folder)), text


def read(path: Path) -> Any:
    """The schema in a file; None if there is none."""
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(schema, dict) or not _TELLING.intersection(schema):
            return None
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except (ValueError, SchemaError, RecursionError):
        return None
    return schema


def make(maker: Process, text: str) -> dict[str, list[Any]]:
    try:
        made: dict[str, list[Any]] = maker.ask(text.encode())
    except (EOFError, TimeoutError) as error:
        print(f"no instances: {error}", file=sys.stderr)
        return {"valid": [], "invalid": []}
    return made


def write(path: Path, cases: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for case in cases:
            print(json.dumps(case, ensure_ascii=False), file=file, flush=True)
            count += 1
    return count


if __name__ == "__main__":
    main()
