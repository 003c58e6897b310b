"""A real tokenizer small enough to build in a blink, padded to a width that fills no last word."""

from __future__ import annotations

import pytest
from constrained_tools import MODEL_WIDTH, Bench, tiny_tokenizer

from phloem.constrained import GrammarCompiler, Vocabulary, read_vocabulary


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    tokenizer = tiny_tokenizer()
    eos = (tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>"))
    return read_vocabulary(tokenizer.to_str(), MODEL_WIDTH, eos)


@pytest.fixture(scope="session")
def compiler(vocabulary: Vocabulary):
    compiler = GrammarCompiler(vocabulary)
    yield compiler
    compiler.close()


@pytest.fixture(scope="session")
def bench(compiler: GrammarCompiler, vocabulary: Vocabulary) -> Bench:
    return Bench(compiler, vocabulary)
