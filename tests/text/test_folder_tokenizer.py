"""Tokenizers of Hugging Face folders, in the forms that such folders take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from text_samples import goldens
from tiny import CHAT_TEMPLATE, write_tokenizer
from tokenizers import decoders, models, normalizers
from transformers import AutoTokenizer, LlamaTokenizer

from phloem.runtime.errors import ModelError
from phloem.runtime.store import ModelFiles
from phloem.runtime.text import Tokenizer, load_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path)
    return tmp_path


def load(folder: Path) -> Tokenizer:
    return load_tokenizer(ModelFiles("safetensors", folder))


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def change(path: Path, **changes: Any) -> None:
    write(path, {**json.loads(path.read_text()), **changes})


def test_it_encodes_and_renders_as_transformers_does(folder: Path) -> None:
    ours, theirs = load(folder), AutoTokenizer.from_pretrained(folder)
    for text in goldens()["texts"]:
        assert ours.encode(text) == theirs.encode(text)
    messages = [{"role": "user", "content": "Hi"}]
    assert ours.apply_chat_template(messages) == theirs.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    assert ours.eos_token_ids == (theirs.eos_token_id,) and ours.bos_token_id is None


def test_all_ends_are_collected(folder: Path) -> None:
    write(folder / "config.json", {"eos_token_id": 7})
    assert load(folder).eos_token_ids == (7, 2)
    write(folder / "generation_config.json", {"eos_token_id": [0, 2]})
    assert load(folder).eos_token_ids == (0, 2)
    write(folder / "generation_config.json", {"eos_token_id": None})
    assert load(folder).eos_token_ids == (7, 2)


def test_special_tokens_may_be_objects(folder: Path) -> None:
    change(folder / "tokenizer_config.json", bos_token={"content": "<|im_start|>"}, unk_token=None)
    assert load(folder).bos_token_id == 1


def test_chat_templates_come_from_where_folders_keep_them(folder: Path) -> None:
    assert load(folder).chat_template == CHAT_TEMPLATE
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    config = folder / "tokenizer_config.json"
    change(config, chat_template=None)
    assert load(folder).chat_template is None
    write(folder / "chat_template.json", {"chat_template": "from json"})
    assert load(folder).chat_template == "from json"
    named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    change(config, chat_template=named)
    assert load(folder).chat_template == "d"
    assert load(folder).apply_chat_template([], tools=[{}]) == "t"
    (folder / "chat_template.jinja").write_text("from jinja")
    assert load(folder).chat_template == "from jinja"


def test_truncation_and_padding_of_training_are_off(folder: Path) -> None:
    fast = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.enable_truncation(2)
    fast.enable_padding(length=8)
    fast.save(str(folder / "tokenizer.json"))
    assert len(load(folder).encode("one two three four five six seven")) > 8
    assert len(load(folder).encode("a")) == 1


def test_a_folder_with_vocabulary_and_merges_only(folder: Path) -> None:
    fast = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = load(folder).encode("Numbers: 12 fibonacci")
    fast.model.save(str(folder))
    (folder / "tokenizer.json").unlink()
    change(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    assert load(folder).encode("Numbers: 12 fibonacci") == expected


def test_a_sentencepiece_folder_of_transformers(tmp_path: Path) -> None:
    small = goldens()["sentencepiece"]
    vocabulary = {token: i for i, token in enumerate(small["tokens"])}
    LlamaTokenizer(vocab=vocabulary, merges=[]).save_pretrained(tmp_path)
    tokenizer = load(tmp_path)
    assert tokenizer.drops_leading_space
    ids = tokenizer.encode("he said 漢\x00", add_special_tokens=False)
    assert tokenizer.decode(ids) == "he said 漢\x00"
    assert b"".join(map(tokenizer.token_bytes, ids)) == " he said 漢\x00".encode()


@pytest.mark.parametrize("damage", ["missing", "not json", "another thing"])
def test_a_folder_without_a_usable_tokenizer_is_named(damage: str, folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text({"missing": "", "not json": "{", "another thing": "{}"}[damage])
    if damage == "missing":
        for file in folder.iterdir():
            file.unlink()
    with pytest.raises(ModelError, match="has no tokenizer that can be read"):
        load(folder)


def test_other_spellings_of_tokens_are_refused(tmp_path: Path) -> None:
    fast = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    fast.normalizer = normalizers.Lowercase()
    fast.decoder = decoders.WordPiece()
    fast.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match="decodes by WordPiece is not supported"):
        load(tmp_path)


def test_a_token_id_out_of_proportion_is_refused(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"]["zz"] = 4_000_000_000
    write(path, content)
    with pytest.raises(ModelError, match="token id of 4000000000"):
        load(folder)
