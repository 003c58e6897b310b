"""Build a tokenizer from a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as FastTokenizer

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.json_file import read_json
from phloem.runtime.text.tokenizer import Tokenizer, TokenizerConfig

Json = dict[str, Any]


def folder_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of ``folder``, from ``tokenizer.json`` if it is there.

    Raises:
        ModelError: the folder has no tokenizer, or one that cannot be read.
    """
    fast = _fast(folder)
    settings = _optional(folder / "tokenizer_config.json")
    texts = _special_texts(folder, settings)
    bos = texts.get("bos_token")
    return Tokenizer(
        fast,
        TokenizerConfig(
            eos_token_ids=_eos_ids(folder, fast, texts.get("eos_token")),
            bos_token_id=None if bos is None else fast.token_to_id(bos),
            chat_templates=_chat_templates(folder, settings),
            template_variables=texts,
        ),
    )


def _fast(folder: Path) -> FastTokenizer:
    path = folder / "tokenizer.json"
    try:
        fast = FastTokenizer.from_file(str(path)) if path.is_file() else _converted(folder)
    except Exception as error:  # both libraries raise Exception itself
        raise ModelError(f"{folder} has no tokenizer that can be read: {error}") from error
    fast.no_truncation()
    fast.no_padding()
    return fast


def _converted(folder: Path) -> FastTokenizer:
    """From the older files, through transformers, whose import takes seconds."""
    from transformers import AutoTokenizer

    slow = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    fast: FastTokenizer = slow.backend_tokenizer
    return fast


def _optional(path: Path) -> Json:
    return read_json(path) if path.is_file() else {}


def _special_texts(folder: Path, settings: Json) -> dict[str, str]:
    """Text of ``bos_token`` and the like: a string or an object with ``content``."""
    texts: dict[str, str] = {}
    for source in (_optional(folder / "special_tokens_map.json"), settings):
        for name, value in source.items():
            text = value.get("content") if isinstance(value, dict) else value
            if name.endswith("_token") and isinstance(text, str):
                texts[name] = text
    return texts


def _eos_ids(folder: Path, fast: FastTokenizer, eos_token: str | None) -> tuple[int, ...]:
    """Those of the generation config, else of the model's config, and the tokenizer's own."""
    generation = _optional(folder / "generation_config.json")
    listed = generation.get("eos_token_id")
    if listed is None:
        listed = _optional(folder / "config.json").get("eos_token_id")
    ids = listed if isinstance(listed, list) else [listed]
    ids = [*ids, None if eos_token is None else fast.token_to_id(eos_token)]
    return tuple(dict.fromkeys(i for i in ids if isinstance(i, int)))


def _chat_templates(folder: Path, settings: Json) -> dict[str, str]:
    """From ``chat_template.jinja``, which wins, or the older places."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return {"default": file.read_text(encoding="utf-8", errors="replace")}
    stated = settings.get("chat_template")
    if stated is None:
        stated = _optional(folder / "chat_template.json").get("chat_template")
    if isinstance(stated, str):
        return {"default": stated}
    named = stated if isinstance(stated, list) else []
    return {t["name"]: t["template"] for t in named if t.keys() >= {"name", "template"}}
