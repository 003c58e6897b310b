"""The default model's file is read as transformers reads it, and makes a working model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from text_samples import load
from transformers import AutoConfig, LlamaForCausalLM

from phloem.runtime.loading.gguf import GGUFSource

pytestmark = pytest.mark.slow


def test_the_config_is_the_one_that_transformers_reads(default_model: Path) -> None:
    config = AutoConfig.from_pretrained(default_model.parent, gguf_file=default_model.name)
    theirs = config.to_dict()
    for key, value in GGUFSource(default_model).config.items():
        if key != "architectures":  # transformers leaves them out
            assert theirs[key] == value, key


def test_the_weights_make_a_model_that_continues_a_text(default_model: Path) -> None:
    source = GGUFSource(default_model)
    model = LlamaForCausalLM(AutoConfig.for_model(**source.config)).eval()
    weights = {name: source.get(name) for name in source.names()}
    assert model.load_state_dict(weights, strict=False).missing_keys == ["lm_head.weight"]
    model.tie_weights()
    tokenizer = load(default_model)
    ids = tokenizer.encode("The capital of France is")
    with torch.no_grad():
        best = model(torch.tensor([ids])).logits[0, -1].argmax()
    assert tokenizer.decode([int(best)]) == " Paris"
