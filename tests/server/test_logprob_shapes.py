"""Offsets and token texts for any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phloem.runtime.protocol import TokenLogprob
from phloem.runtime.server.chat_logprobs import chat_logprobs
from phloem.runtime.server.completion_logprobs import CompletionLogprobWriter, completion_token
from phloem.runtime.text.tokenizer import Tokenizer

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def entries(ids: list[int]) -> list[TokenLogprob]:
    return [TokenLogprob(token_id=i, logprob=-1.0, top=((i, -1.0),)) for i in ids]


@given(texts, texts)
def test_offsets_point_at_the_tokens(tokenizer: Tokenizer, prompt: str, output: str) -> None:
    writer = CompletionLogprobWriter(tokenizer, skip_special_tokens=True)
    written = writer.prompt(entries(tokenizer.encode(prompt)), prompt)
    written.extend(writer.output(entries(tokenizer.encode(output))))
    text = prompt + output
    assert written.text_offset == sorted(written.text_offset)
    for token, offset in zip(written.tokens, written.text_offset, strict=True):
        if token.startswith("bytes:"):
            raw = bytes.fromhex(token.removeprefix("bytes:").replace("\\x", ""))
            assert any(raw in text[offset:end].encode() for end in range(offset, len(text) + 1))
        else:
            assert text.startswith(token, offset)


@given(texts)
def test_chat_bytes_join_to_the_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, parse_special=False)
    scores = chat_logprobs(entries(ids), tokenizer)
    assert b"".join(bytes(each.bytes) for each in scores.content).decode() == text


def test_minus_infinity_is_a_number(tokenizer: Tokenizer) -> None:
    impossible = TokenLogprob(token_id=40, logprob=float("-inf"), top=((41, float("-inf")),))
    writer = CompletionLogprobWriter(tokenizer, skip_special_tokens=True)
    written = writer.output([impossible])
    assert written.token_logprobs == [-9999.0]
    assert set(written.top_logprobs[0].values()) == {-9999.0}
    assert chat_logprobs([impossible], tokenizer).content[0].logprob == -9999.0


def test_tokens_that_are_no_text_show_their_bytes() -> None:
    assert completion_token("é".encode()) == "é"
    assert completion_token(b"\xc3") == "bytes:\\xc3"
