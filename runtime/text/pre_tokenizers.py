"""How byte-level vocabularies in GGUF files split text before merging.

A file names its split (``tokenizer.ggml.pre``) and nothing more; the expressions are those of the
models' own ``tokenizer.json``, in the order in which they are applied. Each isolates its matches.
"""

from __future__ import annotations

from dataclasses import dataclass

from phloem.runtime.errors import ModelError

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _words(digits: str) -> str:
    """The split that GPT-4's tokenizer began; vocabularies differ in how they take digits."""
    return (
        rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
    )


def _cased_words(digits: str, contraction: str) -> str:
    """Words of capitals then small letters, the split of GPT-4o's tokenizer."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    before = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{before}{upper}*{lower}+{contraction}|{before}{upper}+{lower}*{contraction}|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    )


_DEEPSEEK_3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + _SPACES
)


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """A split.

    Attributes:
        patterns: applied one after the other to what the one before left.
        whole_words: a piece that is in the vocabulary is one token, whatever the merges say.
        adds_bos: unless the file says otherwise.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False


_BY_NAMES = {
    ("gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "gigachat"): PreTokenizer((_GPT2,)),
    (
        "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
    ): PreTokenizer((r"\p{N}", _GPT2)),
    ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"): PreTokenizer(
        (_words(r"\p{N}{1,3}"),), whole_words=True, adds_bos=True
    ),
    ("dbrx", "smaug-bpe", "chatglm-bpe"): PreTokenizer((_words(r"\p{N}{1,3}"),)),
    ("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"): PreTokenizer(
        (_words(r"\p{N}"),)
    ),
    ("tekken",): PreTokenizer(
        (_cased_words(r"\p{N}", ""),), whole_words=True, adds_bos=True
    ),
    ("gpt-4o", "llama4"): PreTokenizer((_cased_words(r"\p{N}{1,3}", f"{_CONTRACTION}?"),)),
    ("deepseek-v3", "hunyuan-dense"): PreTokenizer(
        (r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", _DEEPSEEK_3)
    ),
    ("deepseek-coder",): PreTokenizer(
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")
    ),
    ("falcon",): PreTokenizer(
        (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")
    ),
    ("default",): PreTokenizer(
        (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")
    ),
}  # fmt: skip
PRE_TOKENIZERS = {name: split for names, split in _BY_NAMES.items() for name in names}


def pre_tokenizer(name: str) -> PreTokenizer:
    """The split that a GGUF file calls ``name``.

    Raises:
        ModelError: the name is unknown: another split would tokenise wrongly without a sign.
    """
    if name not in PRE_TOKENIZERS:
        raise ModelError(
            f"the GGUF file splits text by {name!r}, which is unknown; "
            f"known: {', '.join(sorted(PRE_TOKENIZERS))}"
        )
    return PRE_TOKENIZERS[name]
