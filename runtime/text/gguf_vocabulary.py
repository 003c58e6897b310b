"""Build a tokenizer from the metadata of a GGUF file."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.models import BPE

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.gguf_file import Default, GGUFFile, Value
from phloem.runtime.text.pre_tokenizers import pre_tokenizer
from phloem.runtime.text.token_bytes import SPACE
from phloem.runtime.text.tokenizer import Tokenizer, TokenizerConfig

log = logging.getLogger(__name__)

END_OF_TURN = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>"}
"""Tokens that end a turn; not every file says so of them."""

TEMPLATE_TOKENS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
"""Chat template variable -> metadata key."""

KEEPS_SPACE_AFTER = {"<unk>", "<s>", "<|endoftext|>"}
"""The special tokens of Phi-3 that do not swallow the white space after them."""


class TokenType(IntEnum):
    """Values of ``tokenizer.ggml.token_type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of a file, with the type and score of each."""

    file: GGUFFile
    tokens: list[str]
    types: list[int]
    scores: list[float]

    def get(self, key: str, kind: type[Value], default: Default) -> Value | Default:
        """Value of ``tokenizer.ggml.<key>``."""
        return self.file.get(f"tokenizer.ggml.{key}", kind, default)

    def id_of(self, key: str) -> int | None:
        """The token id under ``key``; None if there is none or it is no token's."""
        token_id = self.get(key, int, None)
        return token_id if token_id is not None and 0 <= token_id < len(self.tokens) else None

    def merges(self) -> list[tuple[str, str]]:
        """Listed merges: two pieces with a space between; the first may begin with a space."""
        rules = self.file.get_list("tokenizer.ggml.merges", str) or []
        return [(rule[:at], rule[at + 1 :]) for rule in rules for at in (rule.find(" ", 1),)]

    def of_type(self, *kinds: TokenType) -> list[str]:
        return [t for t, kind in zip(self.tokens, self.types, strict=True) if kind in kinds]


def gguf_tokenizer(file: GGUFFile) -> Tokenizer:
    """The tokenizer that ``file`` describes.

    Raises:
        ModelError: the file has no tokenizer, an inconsistent one, or one of an unknown kind.
    """
    vocabulary = _vocabulary(file)
    model = vocabulary.get("model", str, "")
    if model == "gpt2":
        fast, adds_bos = _byte_level(vocabulary)
    elif model == "llama":
        fast, adds_bos = _sentencepiece(vocabulary), True
    else:
        raise ModelError(f"{file.path} has tokenizer {model!r}; supported: gpt2, llama")
    _add_tokens(fast, vocabulary)
    _add_template(fast, vocabulary, adds_bos)
    return Tokenizer(fast, _config(vocabulary))


def _vocabulary(file: GGUFFile) -> Vocabulary:
    tokens = file.get_list("tokenizer.ggml.tokens", str)
    if not tokens:
        raise ModelError(f"{file.path} has no vocabulary (tokenizer.ggml.tokens)")
    tokens = [token or f"[EMPTY_{i}]" for i, token in enumerate(tokens)]
    types = file.get_list("tokenizer.ggml.token_type", int) or [1] * len(tokens)
    scores = file.get_list("tokenizer.ggml.scores", float) or [0.0] * len(tokens)
    if not len(set(tokens)) == len(tokens) == len(types) == len(scores):
        raise ModelError(
            f"{file.path} has {len(tokens)} tokens ({len(set(tokens))} different), "
            f"{len(types)} token types and {len(scores)} scores; the numbers must be equal"
        )
    types = [
        TokenType.CONTROL if token in END_OF_TURN else kind
        for token, kind in zip(tokens, types, strict=True)
    ]
    return Vocabulary(file, tokens, types, scores)


def _byte_level(vocabulary: Vocabulary) -> tuple[FastTokenizer, bool]:
    """A GPT-2 style tokenizer, and whether it adds BOS unless the file says otherwise."""
    name = vocabulary.get("pre", str, None)
    if name is None:
        log.warning("%s does not say how it splits text", vocabulary.file.path)
    split = pre_tokenizer(name or "default")
    fast = FastTokenizer(_bpe(vocabulary, vocabulary.merges(), ignore_merges=split.whole_words))
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(p), "isolated") for p in split.patterns),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    fast.decoder = decoders.ByteLevel()
    return fast, split.adds_bos


def _sentencepiece(vocabulary: Vocabulary) -> FastTokenizer:
    """A SentencePiece BPE tokenizer, with bytes for what the vocabulary lacks."""
    merges = vocabulary.merges() or _merges_by_score(vocabulary)
    unknown = vocabulary.id_of("unknown_token_id")
    fast = FastTokenizer(
        _bpe(
            vocabulary,
            merges,
            unk_token=None if unknown is None else vocabulary.tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    prefix = vocabulary.get("add_space_prefix", bool, True)
    spaces = normalizers.Replace(" ", SPACE)
    fast.normalizer = (
        normalizers.Sequence([normalizers.Prepend(SPACE), spaces]) if prefix else spaces
    )
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    fast.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    return fast


def _merges_by_score(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """Every way to make an ordinary token out of two, best token first.

    SentencePiece merges the pair whose union scores highest; files list only the scores.
    """
    parts = set(vocabulary.of_type(TokenType.NORMAL, TokenType.UNUSED))
    ranked = sorted(
        (
            (score, token)
            for score, token in zip(vocabulary.scores, vocabulary.tokens, strict=True)
            if token in parts
        ),
        key=lambda item: -item[0],
    )
    return [
        (token[:i], token[i:])
        for _, token in ranked
        for i in range(1, len(token))
        if token[:i] in parts and token[i:] in parts
    ]


def _bpe(vocabulary: Vocabulary, merges: list[tuple[str, str]], **options: Any) -> BPE:
    ids = {token: i for i, token in enumerate(vocabulary.tokens)}
    try:
        return BPE(ids, merges, **options)
    except Exception as error:  # the library raises Exception itself
        raise ModelError(f"{vocabulary.file.path} has inconsistent merges: {error}") from error


def _add_tokens(fast: FastTokenizer, vocabulary: Vocabulary) -> None:
    """Tokens to be found in text before anything else; control tokens are special too."""
    phi3 = vocabulary.file.get("general.architecture", str, "") == "phi3"
    strips = phi3 and vocabulary.get("model", str, "") == "llama"
    special = vocabulary.of_type(TokenType.CONTROL, TokenType.UNKNOWN)
    fast.add_special_tokens(
        [
            AddedToken(token, normalized=False, rstrip=strips and token not in KEEPS_SPACE_AFTER)
            for token in special
        ]
    )
    fast.add_tokens(
        [AddedToken(t, normalized=False) for t in vocabulary.of_type(TokenType.USER_DEFINED)]
    )


def _add_template(fast: FastTokenizer, vocabulary: Vocabulary, adds_bos: bool) -> None:
    """BOS before and EOS after a text, as far as the file wants them."""
    around: dict[str, int] = {}
    sequence = ["$A:0"]
    bos, eos = vocabulary.id_of("bos_token_id"), vocabulary.id_of("eos_token_id")
    if bos is not None and vocabulary.get("add_bos_token", bool, adds_bos):
        around[vocabulary.tokens[bos]] = bos
        sequence.insert(0, f"{vocabulary.tokens[bos]}:0")
    if eos is not None and vocabulary.get("add_eos_token", bool, False):
        around[vocabulary.tokens[eos]] = eos
        sequence.append(f"{vocabulary.tokens[eos]}:0")
    if around:
        fast.post_processor = processors.TemplateProcessing(
            single=sequence, pair=[*sequence, "$B:1"], special_tokens=list(around.items())
        )


def _config(vocabulary: Vocabulary) -> TokenizerConfig:
    ids = {name: vocabulary.id_of(key) for name, key in TEMPLATE_TOKENS.items()}
    return TokenizerConfig(
        eos_token_ids=_eos_ids(vocabulary),
        bos_token_id=ids["bos_token"],
        chat_templates=_chat_templates(vocabulary.file),
        template_variables={name: vocabulary.tokens[i] for name, i in ids.items() if i is not None},
    )


def _eos_ids(vocabulary: Vocabulary) -> tuple[int, ...]:
    """What the file names as ends, and a recognised end of turn if it names none."""
    named = [vocabulary.id_of(f"{end}_token_id") for end in ("eos", "eot", "eom")]
    ids = [i for i in named if i is not None]
    if vocabulary.id_of("eot_token_id") is None:
        ids += [i for i, token in enumerate(vocabulary.tokens) if token in END_OF_TURN]
    return tuple(dict.fromkeys(ids))


def _chat_templates(file: GGUFFile) -> dict[str, str]:
    """The default template and those of other names, such as ``tool_use``."""
    key = "tokenizer.chat_template"
    names = [name for name in file.metadata if name == key or name.startswith(f"{key}.")]
    return {name.removeprefix(key)[1:] or "default": file.get(name, str, "") for name in names}
