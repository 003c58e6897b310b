"""Tokenizers of odd forms."""

from __future__ import annotations

import json

import pytest
from constrained_tools import MODEL_WIDTH, Bench, mask_of, tiny_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from phloem.constrained import GrammarCompiler, GrammarSpec, Vocabulary, read_vocabulary
from phloem.constrained.bitmask import unpack


def bench_of(vocabulary: Vocabulary) -> Bench:
    return Bench(GrammarCompiler(vocabulary), vocabulary)


def test_the_vocabulary_is_as_wide_as_the_model(vocabulary: Vocabulary) -> None:
    tokenizer = tiny_tokenizer()
    assert vocabulary.size == MODEL_WIDTH > tokenizer.get_vocab_size()
    assert vocabulary.special_ids >= {0, 1, 2, MODEL_WIDTH - 1}
    assert vocabulary.token_bytes[0] == vocabulary.token_bytes[MODEL_WIDTH - 1] == b""
    assert vocabulary.token_bytes[tokenizer.token_to_id("Ġ")] == b" "
    # all but the special ones and the byte 0xff, which is in no text
    assert len(vocabulary.text_ids) == tokenizer.get_vocab_size() - 4


def test_ids_out_of_range_and_no_eos_are_refused() -> None:
    with pytest.raises(ValueError, match="eos_ids holds 3"):
        Vocabulary([b"a", b"b", b""], (3,))
    with pytest.raises(ValueError, match="special_ids holds -1"):
        Vocabulary([b"a", b"b", b""], (2,), frozenset({-1}))
    with pytest.raises(ValueError, match="never end"):
        Vocabulary([b"a"], ())


def test_a_vocabulary_that_contradicts_its_tokenizer_is_refused(vocabulary: Vocabulary) -> None:
    data = list(vocabulary.token_bytes)
    data[300] += b"?"
    wrong = Vocabulary(data, vocabulary.eos_ids, vocabulary.special_ids, vocabulary.tokenizer_json)
    compiler = GrammarCompiler(wrong)
    with pytest.raises(ValueError, match="token 300"):
        compiler.compile(GrammarSpec("json_object"))
    compiler.close()


def test_tokens_named_special_are_no_text(vocabulary: Vocabulary) -> None:
    """Even those that the tokenizer itself takes for ordinary ones."""
    digit = tiny_tokenizer().token_to_id("1")
    narrowed = Vocabulary(
        vocabulary.token_bytes,
        vocabulary.eos_ids,
        vocabulary.special_ids | {digit},
        vocabulary.tokenizer_json,
    )
    bench = bench_of(narrowed)
    for kind, text in (("regex", "[0-9]"), ("choice", '["1", "2"]')):
        matcher = bench.grammar(kind, text).matcher()
        assert digit not in unpack(mask_of(matcher, narrowed.size))
        assert matcher.validate([digit]) == 0


def test_a_tokenizer_known_by_its_bytes_alone(vocabulary: Vocabulary) -> None:
    """Forced text is cut into the longest tokens."""
    bare = Vocabulary(vocabulary.token_bytes, vocabulary.eos_ids, vocabulary.special_ids)
    bench, full = bench_of(bare), bench_of(vocabulary)
    schema = json.dumps({"const": {"value": "hello world"}})
    for kind, text in (("json_schema", schema), ("choice", '["hello world"]')):
        matcher = bench.grammar(kind, text).matcher()
        target = '{"value": "hello world"}' if kind == "json_schema" else "hello world"
        for token in full.encode(target):
            assert bench.allowed(matcher)
            matcher.accept(token)
        assert matcher.stopped
    forced = bench.grammar("choice", '["hello world"]').matcher().forced_tokens(9)
    assert bench.decode(forced) == b"hello world"


def test_a_tokenizer_that_cannot_be_read_falls_back_to_its_bytes(vocabulary: Vocabulary) -> None:
    odd = Vocabulary(
        vocabulary.token_bytes, vocabulary.eos_ids, vocabulary.special_ids, '{"model": {}}'
    )
    matcher = bench_of(odd).grammar("regex", "abc").matcher()
    assert matcher.accept_many(bench_of(vocabulary).encode("abc")) > 0
    with pytest.raises(ValueError):
        read_vocabulary('{"model": {}}', 10, (0,))


@pytest.fixture
def sentencepiece_like() -> Vocabulary:
    """BPE with byte fallback and ``▁`` for spaces, as Llama 2 has it."""
    pieces = ["<unk>", "<s>", "</s>"]
    pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += ["▁", "a", "b", "c", '"', "{", "}", ":", "▁a", "ab", "▁ab"]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: index for index, piece in enumerate(pieces)},
            merges=[("▁", "a"), ("a", "b"), ("▁a", "b")],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return read_vocabulary(tokenizer.to_str(), len(pieces) + 7, (2,))


def test_byte_fallback_and_marked_spaces(sentencepiece_like: Vocabulary) -> None:
    vocabulary = sentencepiece_like
    assert b" ab" in vocabulary.token_bytes and b"\n" in vocabulary.token_bytes
    bench = bench_of(vocabulary)
    for kind, text in (
        ("choice", '["ab c", "é"]'),
        ("regex", "ab c|é"),
        ("json_schema", '{"enum": ["ab c", "é"]}'),
    ):
        matcher = bench.grammar(kind, text).matcher()
        written = b""
        while not matcher.accepting:
            token = min(bench.allowed(matcher), key=lambda token: vocabulary.token_bytes[token])
            matcher.accept(token)
            written += vocabulary.token_bytes[token]
        assert written.decode().strip('"') == "ab c"


def test_a_wordpiece_tokenizer_is_read(vocabulary: Vocabulary) -> None:
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 1, "a": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    known = Vocabulary([b"", b"", b"a"], (1,), frozenset({0, 1}), tokenizer.to_str())
    matcher = bench_of(known).grammar("regex", "aa").matcher()
    matcher.accept_many([2, 2])
    assert matcher.stopped
