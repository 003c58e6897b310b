"""The raw bytes that each token of a vocabulary stands for.

Two spellings exist. Byte-level vocabularies (GPT-2's) write each byte as one printable character;
SentencePiece ones write text as it is, a space as U+2581, and single bytes as ``<0xNN>``.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import cache

from tokenizers import Tokenizer as FastTokenizer

from phloem.runtime.errors import ModelError

SPACE = "\u2581"
MAX_TOKENS = 1 << 22
"""More than ten times the largest vocabularies; ids beyond are damage."""

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Spelling(Enum):
    BYTE_LEVEL = "byte_level"
    SENTENCEPIECE = "sentencepiece"


@cache
def byte_alphabet() -> dict[str, int]:
    """The character that byte-level vocabularies write for each byte, and the byte.

    Printable Latin-1 bytes stand for themselves; the others, in order, for U+0100 onwards.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + i): byte for i, byte in enumerate(others)
    }


def piece_bytes(piece: str, spelling: Spelling) -> bytes:
    """The bytes of one vocabulary entry."""
    if spelling is Spelling.BYTE_LEVEL:
        alphabet = byte_alphabet()
        try:
            return bytes(map(alphabet.__getitem__, piece))
        except KeyError:  # an added token, spelled as it is
            return piece.encode()
    if match := _BYTE_TOKEN.fullmatch(piece):
        return bytes([int(match[1], 16)])
    return piece.replace(SPACE, " ").encode()


def spelling_of(fast: FastTokenizer) -> Spelling:
    """How the vocabulary of ``fast`` is spelled, from its decoder.

    Raises:
        ModelError: it is neither byte-level nor SentencePiece.
    """
    decoder = json.loads(fast.decoder.__getstate__()) if fast.decoder is not None else {}
    kinds = {step["type"] for step in decoder.get("decoders", [decoder]) if "type" in step}
    if "ByteLevel" in kinds:
        return Spelling.BYTE_LEVEL
    if kinds & {"ByteFallback", "Metaspace"}:
        return Spelling.SENTENCEPIECE
    raise ModelError(
        f"a tokenizer that decodes by {', '.join(sorted(kinds)) or 'nothing'} is not supported; "
        "it must be byte-level or SentencePiece"
    )


def drops_leading_space(fast: FastTokenizer) -> bool:
    """Whether decoding drops the space that encoding put before the text."""
    space = fast.token_to_id(SPACE)
    return space is not None and fast.decode([space]) == ""


def token_table(fast: FastTokenizer) -> list[bytes]:
    """Bytes by token id; b"" for ids without a token. Added tokens are spelled as they are.

    Raises:
        ModelError: see ``spelling_of``; or a token id is out of all proportion.
    """
    spelling = spelling_of(fast)
    vocabulary = fast.get_vocab()
    size = max(vocabulary.values(), default=-1) + 1
    if size > MAX_TOKENS:
        raise ModelError(f"the vocabulary has a token id of {size - 1}, at most {MAX_TOKENS - 1}")
    table = [b""] * size
    for piece, token_id in vocabulary.items():
        table[token_id] = piece_bytes(piece, spelling)
    for token_id, added in fast.get_added_tokens_decoder().items():
        table[token_id] = added.content.encode()
    return table
