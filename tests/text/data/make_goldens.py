"""Make ``goldens.json``: token ids of difficult texts according to llama.cpp.

Needs ``pip install llama-cpp-python`` (0.3.36 made the file at hand) and the default model:

    python tests/text/data/make_goldens.py path/to/SmolLM2-135M-Instruct.Q4_1.gguf

Besides the real vocabulary there are two small ones. The byte-level one is trained on the texts
without splitting them, so that its merges would cross any border that a split does not keep, and
is encoded under each name of a split. The SentencePiece one has byte fallback.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import gguf
import sentencepiece
from llama_cpp import Llama
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
SPLITS = [
    "gpt-2", "smollm", "starcoder", "llama-bpe", "dbrx", "qwen2", "tekken", "gpt-4o",
    "deepseek-v3", "deepseek-coder", "falcon", "default",
]  # fmt: skip
SPECIAL = ["<|im_start|>", "<|im_end|>"]
TEXTS = [
    "Hello world",
    "  leading and trailing  ",
    "a\n\n b\t\tc\r\nd \n \n\n  e",
    "12 345 6789012 1,234.56 1e10 0xDEADBEEF 1st 2nd",
    "٣٤٥ ½ ² Ⅷ ４５６",
    "I'm you're WE'LL don'T 'tis 'S's O'Neil's",
    "日本語のテキスト、テスト。2026年",
    "你好，世界！123 漢字",
    "한국어 텍스트 \u1112\u1161\u11ab",
    "😀👨‍👩‍👧‍👦🇫🇷 emoji🎉text 🏳️‍🌈 ❤️",
    "def f(x):\n    return x+1  # comment\n\n\tif x==10:\n\t\tpass\n",
    '<a href="x">link</a> {"key": [1, 2.5, null], "b": "c\\n"}',
    "naïve café résumé Ångström Straße",
    "العربية نص हिन्दी टेक्स्ट ไทย",
    "zero\u200bwidth no\u00a0break ideographic\u3000space line\u2028sep next\u0085line",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    " " * 37 + "x",
    "\n" * 9,
    "\t\t\t   \n  ",
    "...!!!??? $100.00 #tag @user C++ a->b != c<=d && e||f",
    "CamelCaseWords XMLHttpRequest iPhone McDonald HTTPServer",
    "ﬁ ligature Ǆ ß ẞ e\u0301 combining",
    "_under_score-dash",
    "'",
    "''s 'll ' s",
    "…—–“quotes”",
    "end \n",
    "<|im_start|>user\nhi<|im_end|>\n<s> x</s>",
    "\x01\x7f",
    "",
]


def main() -> None:
    smollm = Path(sys.argv[1])
    byte_level, sentences = train_byte_level(), train_sentencepiece()
    goldens = {
        "texts": TEXTS,
        "smollm2": encode(smollm),
        "byte_level": byte_level,
        "splits": {name: encode_small("gpt2", {**byte_level, "pre": name}) for name in SPLITS},
        "sentencepiece": sentences,
        "with_prefix": encode_small("llama", {**sentences, "add_space_prefix": True}),
        "without_prefix": encode_small("llama", {**sentences, "add_space_prefix": False}),
    }
    text = json.dumps(goldens, ensure_ascii=True, separators=(",", ":"))
    (HERE / "goldens.json").write_text(text + "\n")


def train_byte_level() -> dict[str, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    types = [3 if token in SPECIAL else 1 for token in tokens]
    merges = [" ".join(merge) for merge in model["merges"]]
    return {"tokens": tokens, "token_type": types, "merges": merges, "bos_token_id": 0}


def train_sentencepiece() -> dict[str, Any]:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in TEXTS for line in text.splitlines()] * 3),
        model_writer=model,
        vocab_size=600,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(processor.vocab_size())
    return {
        "tokens": [processor.id_to_piece(i) for i in ids],
        "scores": [processor.get_score(i) for i in ids],
        "token_type": [kind(processor, i) for i in ids],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
    }


def kind(processor: sentencepiece.SentencePieceProcessor, i: int) -> int:
    if processor.is_unknown(i):
        return 2
    if processor.is_control(i):
        return 3
    return 6 if processor.is_byte(i) else 1


def encode_small(model: str, vocabulary: dict[str, Any]) -> list[list[int]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model(model)
        for key, value in vocabulary.items():
            add = writer.add_array if isinstance(value, list) else add_scalar(writer, value)
            add(f"tokenizer.ggml.{key}", value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return encode(path)


def add_scalar(writer: gguf.GGUFWriter, value: Any) -> Any:
    if isinstance(value, bool):
        return writer.add_bool
    return writer.add_string if isinstance(value, str) else writer.add_uint32


def encode(path: Path) -> list[list[int]]:
    llama = Llama(str(path), vocab_only=True, verbose=False)
    texts = (text.encode() for text in TEXTS)
    return [llama.tokenize(text, add_bos=False, special=True) if text else [] for text in texts]


main()
