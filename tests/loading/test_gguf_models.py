"""A GGUF file gives the config and tensors of the model that it was written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf_writing import write_gguf
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    Phi3Config,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.gguf import GGUFSource
from phloem.runtime.loading.source import load_source
from phloem.runtime.store import ModelFiles

SIZE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "initializer_range": 0.3,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.25, 1.5],
    "long_factor": [2.0, 4.0, 8.0],
    "original_max_position_embeddings": 16,
    "partial_rotary_factor": 0.75,
}
CONFIGS = {
    "llama": LlamaConfig(**SIZE, tie_word_embeddings=True),
    "llama with biases and wide heads": LlamaConfig(
        **SIZE, head_dim=16, attention_bias=True, mlp_bias=True
    ),
    "llama 3": LlamaConfig(**SIZE, rope_parameters=LLAMA3_ROPE),
    "qwen2": Qwen2Config(**SIZE),
    "qwen2 yarn": Qwen2Config(
        **SIZE,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "qwen3": Qwen3Config(**SIZE, head_dim=16),
    "phi3": Phi3Config(**SIZE, sliding_window=20),
    "phi3 long": Phi3Config(**SIZE, rope_parameters=LONG_ROPE, original_max_position_embeddings=16),
    "gemma2": Gemma2Config(**SIZE, head_dim=16, sliding_window=8, query_pre_attn_scalar=16),
    "gemma3": Gemma3TextConfig(
        **SIZE | {"num_hidden_layers": 7},
        head_dim=16,
        sliding_window=8,
        query_pre_attn_scalar=16,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    ),
}


def random_model(config: Any) -> PreTrainedModel:
    """A model with no weight at its usual initial value, norms and biases included."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += torch.randn_like(parameter) * 0.2
    return model


@pytest.fixture(params=CONFIGS, ids=str)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return random_model(CONFIGS[request.param])


def logits(model: PreTrainedModel) -> torch.Tensor:
    ids = torch.arange(40).reshape(1, -1) * 7 % 64
    with torch.no_grad():
        return model(ids).logits


def test_names_and_tensors_are_those_of_the_model(model: PreTrainedModel, tmp_path: Path) -> None:
    source = GGUFSource(write_gguf(tmp_path / "m.gguf", model))
    expected = model.state_dict()
    if model.config.tie_word_embeddings:
        del expected["lm_head.weight"]
    assert source.names() == set(expected)
    exact = not model.config.model_type.startswith("gemma")  # norms were stored as 1 + w
    for name, tensor in expected.items():
        got = source.get(name)
        assert got.dtype == torch.float32 and got.shape == tensor.shape
        torch.testing.assert_close(got, tensor, rtol=0, atol=0 if exact else 2e-7)


def test_the_config_gives_a_model_with_the_same_logits(
    model: PreTrainedModel, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", model)
    source = load_source(ModelFiles("gguf", path))
    again = AutoModelForCausalLM.from_config(AutoConfig.for_model(**source.config)).eval()
    again.load_state_dict({n: source.get(n) for n in source.names()}, strict=False)
    again.tie_weights()
    torch.testing.assert_close(logits(again), logits(model), rtol=1e-4, atol=1e-4)


def test_halves_stay_halves_and_rows_come_in_order(tmp_path: Path) -> None:
    model = random_model(CONFIGS["llama"]).half()
    source = GGUFSource(write_gguf(tmp_path / "m.gguf", model, Kind.F16))
    name = "model.layers.1.self_attn.q_proj.weight"
    assert torch.equal(source.get(name), model.state_dict()[name])
    kind, rows = source.raw(name)
    assert kind == Kind.F16 and rows.shape == (48, 96)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    source = GGUFSource(write_gguf(tmp_path / "m.gguf", random_model(CONFIGS["llama"])))
    with pytest.raises(ModelError, match=r"model\.layers\.9\.mlp"):
        source.get("model.layers.9.mlp.up_proj.weight")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"block_count": None}, "lacks the metadata llama.block_count"),
        ({"attention.layer_norm_rms_epsilon": None}, "layer_norm_rms_epsilon"),
        ({"attention.head_count": [6, 6, 4]}, "one positive number for all layers"),
        ({"attention.head_count": 0}, "one positive number"),
        ({"embedding_length": "48"}, "one positive number"),
        ({"rope.scaling.type": "spiral"}, "rope scaling 'spiral'"),
        ({"rope.freq_base": "fast"}, "rope.freq_base is 'fast', no float"),
        ({"block_count": 1 << 30}, r"no tensor blk\.1073741823\.attn_norm\.weight"),
        ({"expert_count": 8}, "mixture of experts"),
    ],
)
def test_metadata_that_cannot_be_used_is_named(
    metadata: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", random_model(CONFIGS["llama"]), **metadata)
    with pytest.raises(ModelError, match=message):
        GGUFSource(path)


def test_heads_that_do_not_divide_the_rows_are_refused(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "m.gguf",
        random_model(CONFIGS["llama"]),
        **{"attention.head_count": 5, "attention.head_count_kv": 5},
    )
    with pytest.raises(ModelError, match="rows for 5 heads"):
        GGUFSource(path).get("model.layers.0.self_attn.q_proj.weight")


def test_an_architecture_without_a_reader_is_named(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", random_model(CONFIGS["llama"]))
    path.write_bytes(
        path.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0alpac")
    )
    with pytest.raises(ModelError, match=r"architecture 'alpac'; supported: llama, qwen2"):
        GGUFSource(path)


ODD_VALUES = [-1, 0, 7, 1 << 31, 0.5, True, "x", ["a"], [1, 2], [True]]


ODD_KEYS = {
    "llama": [
        "block_count", "embedding_length", "attention.head_count", "attention.key_length",
        "rope.freq_base", "rope.dimension_count", "rope.scaling.type", "rope.scaling.factor",
        "expert_count",
    ],
    "gemma3": ["attention.sliding_window", "attention.sliding_window_pattern"],
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_KEYS)
def test_metadata_of_any_type_gives_a_model_or_an_error(name: str, tmp_path: Path) -> None:
    model = random_model(CONFIGS[name])
    for key in ODD_KEYS[name]:
        for value in ODD_VALUES:
            path = write_gguf(tmp_path / "m.gguf", model, **{key: value})
            try:
                GGUFSource(path).get("model.layers.0.self_attn.q_proj.weight")
            except ModelError as error:
                assert "m.gguf" in str(error)
