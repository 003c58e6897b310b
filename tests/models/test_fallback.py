"""Architectures without a definition here: right through transformers, or refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from schedules import assert_logits, run_random_schedule
from tiny_checkpoints import SIZES, Checkpoint, StateSource, random_checkpoint

from phloem.kernels.registry import load_ops
from phloem.runtime.errors import ModelError
from phloem.runtime.models import Model, load_model
from phloem.runtime.models.fallback.proof import check_windows

RUN: dict[str, dict[str, Any]] = {
    "olmo2": {},
    "stablelm": {"hidden_size": 48, "partial_rotary_factor": 0.5},
    "granite": {"logits_scaling": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.5},
    "gpt_neox": {"rotary_pct": 0.5},
    "gpt2": {"n_positions": 64},
    "opt": {"word_embed_proj_dim": 24, "ffn_dim": 40},
    "starcoder2": {"sliding_window": 6},
    "cohere": {"logit_scale": 0.3},
    "cohere2": {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "mixtral": {"num_local_experts": 4},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "bloom": ({"n_head": 6}, "0 of its 3 layers"),
    "mamba": ({}, "0 of its 3 layers"),
    "lfm2": ({"layer_types": ["conv", "full_attention", "conv"]}, "1 of its 3 layers"),
    "deepseek_v2": (
        {
            "kv_lora_rank": 8,
            "q_lora_rank": None,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4,
            "v_head_dim": 6,
        },
        "differ in size",
    ),
    "gpt_oss": ({"num_local_experts": 4}, "logits change"),
    "diffllama": ({}, "in spans"),
    "olmo": (
        {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 100.0}},
        "dynamic",
    ),
}


@cache
def checkpoint(kind: str) -> Checkpoint:
    fields = {**SIZES, "model_type": kind, **(RUN.get(kind) or REFUSED.get(kind, ({},))[0])}
    fields["num_hidden_layers"] = len(fields.get("layer_types", "123"))
    return random_checkpoint(fields)


def load(source: StateSource, dtype: torch.dtype = torch.float32) -> Model:
    return load_model(source, load_ops("reference"), dtype, torch.device("cpu"))


@cache
def our_model(kind: str) -> Model:
    return load(checkpoint(kind).source)


@pytest.mark.parametrize("kind", RUN)
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_any_schedule_gives_the_same_logits(kind: str, data: st.DataObject) -> None:
    for request in run_random_schedule(our_model(kind), data):
        assert_logits(request, checkpoint(kind))


@pytest.mark.parametrize("kind", REFUSED)
def test_what_paged_attention_cannot_run_is_refused(kind: str) -> None:
    with pytest.raises(ModelError, match=REFUSED[kind][1]) as caught:
        load(checkpoint(kind).source)
    assert type(checkpoint(kind).module).__name__ in str(caught.value)


def test_a_window_that_only_the_mask_knows_is_refused() -> None:
    """The probe is too short to notice a window of thousands of tokens."""
    config = SimpleNamespace(sliding_window=4000)
    check_windows(config, [4000, 4000])
    with pytest.raises(ModelError, match=r"layer 1.*window of None"):
        check_windows(config, [4000, None])
    config.layer_types = ["sliding_attention", "full_attention"]
    check_windows(config, [4000, None])
    with pytest.raises(ModelError, match=r"layer 1.*window of 4000"):
        check_windows(config, [4000, 4000])
    config.layer_types = ["sliding_attention", "chunked_attention"]
    with pytest.raises(ModelError, match="chunked_attention"):
        check_windows(config, [4000, None])


def test_bfloat16_and_the_shape() -> None:
    model = load(checkpoint("olmo2").source, torch.bfloat16)
    assert model.dtype == torch.bfloat16
    assert model.config.architecture == "Olmo2ForCausalLM"
    assert (model.config.vocab_size, model.config.context_length) == (97, 64)
    geometry = model.kv_geometry
    assert (geometry.num_layers, geometry.num_kv_heads) == (3, 2)


def test_checkpoints_are_read_under_the_names_that_files_have(tmp_path: Path) -> None:
    """Files hold Mixtral's experts one by one, transformers' module stacks them."""
    whole = checkpoint("mixtral")
    whole.module.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert tensors.keys() != whole.source.tensors.keys()
    load(StateSource(whole.source.config, tensors))


def test_tensors_must_fit() -> None:
    source = checkpoint("olmo2").source
    norm = "model.norm.weight"
    others = {name: value for name, value in source.tensors.items() if name != norm}
    with pytest.raises(ModelError, match=r"missing_keys.*model\.norm\.weight"):
        load(StateSource(source.config, others))
    with pytest.raises(ModelError, match=r"mismatched_keys.*model\.norm\.weight"):
        load(StateSource(source.config, {**others, norm: torch.ones(23)}))
    with pytest.raises(ModelError, match=r"unexpected_keys.*surplus"):
        load(StateSource(source.config, {**source.tensors, "surplus": torch.ones(1)}))


@pytest.mark.parametrize("kind", ["nonsense", None, "t5", "bert"])
def test_what_is_no_causal_model_is_refused(kind: str | None) -> None:
    with pytest.raises(ModelError):
        load(StateSource({"model_type": kind}, {}))
