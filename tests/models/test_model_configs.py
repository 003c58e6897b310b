"""What configs say, in both of their forms, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_checkpoints import FAMILIES, LLAMA3, SIZES, YARN, StateSource, family

from phloem.kernels.registry import load_ops
from phloem.runtime.errors import ModelError
from phloem.runtime.models import load_model, parse_config

CPU = torch.device("cpu")
LLAMA = {**SIZES, "model_type": "llama", "rms_norm_eps": 1e-5}


@pytest.mark.parametrize("rope", [LLAMA3, YARN, {"rope_type": "default", "rope_theta": 7.0}])
def test_both_forms_of_rope_fields_mean_the_same(rope: dict[str, Any]) -> None:
    theta = {"rope_theta": rope["rope_theta"]}
    scaling = {name: value for name, value in rope.items() if name != "rope_theta"}
    older = parse_config({**LLAMA, **theta, "rope_scaling": scaling})
    assert older == parse_config({**LLAMA, "rope_parameters": rope})


def test_gemma3_tells_local_and_global_rope_apart_in_both_forms() -> None:
    current = dict(family("gemma3").source.config)
    older = {
        **current,
        "rope_parameters": None,
        "rope_theta": 1000.0,
        "rope_local_base_freq": 50.0,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    }
    assert parse_config(older) == parse_config(current)
    assert parse_config(current).local_rope != parse_config(current).rope


def test_windows_follow_the_family_where_the_config_does_not_list_them() -> None:
    fields = {**family("gemma3").source.config, "layer_types": None, "num_hidden_layers": 7}
    assert parse_config(fields).windows == (6, 6, 6, 6, 6, None, 6)
    fields = {**family("gemma2").source.config, "layer_types": None}
    assert parse_config(fields).windows == (6, None, 6)
    fields = {**family("qwen2").source.config, "layer_types": None, "sliding_window": 9}
    assert parse_config(fields).windows == (None, None, None)
    fields |= {"use_sliding_window": True, "max_window_layers": 2}
    assert parse_config(fields).windows == (None, None, 9)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "nonsense"}, "nonsense"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization_config"),
        ({"num_local_experts": 8}, "num_local_experts"),
        ({"hidden_act": "relu2"}, "relu2"),
        ({"rms_norm_eps": None}, "rms_norm_eps"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["linear_attention"] * 3}, "linear_attention"),
        ({"num_attention_heads": 5}, "num_attention_heads"),
        ({"hidden_size": "24"}, "hidden_size.*'24'"),
        ({"num_key_value_heads": 0}, "num_key_value_heads"),
        ({"sliding_window": 0}, "sliding_window"),
        ({"head_dim": 7}, "odd"),
        ({"partial_rotary_factor": 2.0}, "rotates 16 dimensions of heads that have 8"),
        ({"partial_rotary_factor": -1.0}, "rotates -8 dimensions"),
        ({"rope_scaling": "linear"}, "wrong type"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"rope_scaling": {"rope_type": "linear"}}, "factor"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "twist": 1}}, "twist"),
        (
            {"rope_scaling": {"rope_type": "longrope", "short_factor": [1], "long_factor": [1]}},
            "short_factor",
        ),
    ],
)
def test_what_is_not_supported_is_named(fields: dict[str, Any], message: str) -> None:
    llama = {name: value for name, value in LLAMA.items() if fields.get(name, 0) is not None}
    given = {name: value for name, value in fields.items() if value is not None}
    with pytest.raises(ModelError, match=message):
        parse_config({**llama, **given})


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_names_a_missing_tensor(name: str) -> None:
    source = family(name).source
    tensors = dict(source.tensors)
    del tensors["model.layers.1.self_attn.o_proj.weight"]
    with pytest.raises(ModelError, match=r"model\.layers\.1\.self_attn\.o_proj\.weight"):
        load(StateSource(source.config, tensors))


def test_a_tensor_of_another_shape_is_named_with_both_shapes() -> None:
    with pytest.raises(ModelError, match=r"norm\.weight.*\[23\].*\[24\]"):
        load(changed("llama", "model.norm.weight", torch.ones(23)))


def test_a_tensor_without_a_place_is_named() -> None:
    with pytest.raises(ModelError, match=r"self_attn\.q_norm"):
        load(changed("llama", "model.layers.0.self_attn.q_norm.weight", torch.ones(8)))
    with pytest.raises(ModelError, match=r"qkv_proj\.bias"):
        load(changed("phi3", "model.layers.2.self_attn.qkv_proj.bias", torch.ones(80)))


def test_tensors_that_follow_from_the_config_are_ignored() -> None:
    load(changed("llama", "model.layers.0.self_attn.rotary_emb.inv_freq", torch.ones(4)))
    tied = family("llama-tied").source.tensors["model.embed_tokens.weight"]
    load(changed("llama-tied", "lm_head.weight", tied))


def changed(name: str, tensor: str, value: torch.Tensor) -> StateSource:
    source = family(name).source
    return StateSource(source.config, {**source.tensors, tensor: value})


def load(source: StateSource) -> None:
    load_model(source, load_ops("reference"), torch.float32, CPU)
