"""Write small GGUF files as llama.cpp's converter would, from tiny random transformers models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from torch import Tensor
from transformers import PreTrainedModel

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "phi3": gguf.MODEL_ARCH.PHI3,
    "gemma2": gguf.MODEL_ARCH.GEMMA2,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
}
Blocks = np.ndarray[Any, np.dtype[np.uint8]]


def write_vocabulary(
    path: Path,
    model: str,
    vocabulary: Mapping[str, Any],
    architecture: str = "llama",
    **more: Any,
) -> Path:
    """A file with a tokenizer and no tensors; keys without a dot are below ``tokenizer.ggml``."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_tokenizer_model(model)
    for key, value in {**vocabulary, **more}.items():
        if value is not None:
            _add(writer, key if "." in key else f"tokenizer.ggml.{key}", value)
    return _write(writer, path)


def write_gguf(
    path: Path,
    model: PreTrainedModel,
    kind: Kind = Kind.F32,
    blocks: Mapping[str, tuple[Blocks, Kind]] | None = None,
    **metadata: Any,
) -> Path:
    """``model`` as GGUF; matrices as ``kind``, except those given as stored ``blocks``.

    ``metadata`` adds to or, as None, takes from what the config gives.
    """
    config = model.config
    arch = ARCHITECTURES[config.model_type]
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    for key, value in (_metadata(config) | metadata).items():
        if value is not None:
            _add(writer, f"{gguf.MODEL_ARCH_NAMES[arch]}.{key}", value)
    for name, tensor in _tensors(model).items():
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if blocks is not None and name in blocks:
            rows, block_kind = blocks[name]
            writer.add_tensor(stored, rows, raw_dtype=block_kind)
        else:
            _add_tensor(writer, stored, tensor, kind)
    return _write(writer, path)


def _metadata(config: Any) -> dict[str, Any]:
    head_dim = getattr(config, "head_dim", None)
    rope = config.rope_parameters
    local = rope.get("sliding_attention", {}) if "full_attention" in rope else {}
    rope = rope.get("full_attention", rope)
    kind = rope["rope_type"]
    return {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.key_length": head_dim,
        "attention.sliding_window": getattr(config, "sliding_window", None),
        "attn_logit_softcapping": getattr(config, "attn_logit_softcapping", None),
        "final_logit_softcapping": getattr(config, "final_logit_softcapping", None),
        "rope.freq_base": rope["rope_theta"],
        "rope.freq_base_swa": local.get("rope_theta"),
        "rope.dimension_count": _rotated(config, rope),
        "rope.scaling.type": kind if kind in ("linear", "yarn", "longrope") else None,
        "rope.scaling.factor": rope.get("factor"),
        "rope.scaling.original_context_length": rope.get("original_max_position_embeddings"),
        "rope.scaling.attn_factor": rope.get("attention_factor") if kind == "longrope" else None,
    }


def _rotated(config: Any, rope: Mapping[str, Any]) -> int:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(head_dim * rope.get("partial_rotary_factor", 1.0))


def _tensors(model: PreTrainedModel) -> dict[str, Tensor]:
    """HF name -> tensor in llama.cpp's layout."""
    config = model.config
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if config.tie_word_embeddings:
        del tensors["lm_head.weight"]
    for name, tensor in tensors.items():
        if config.model_type == "llama" and ".self_attn.q_proj." in name:
            tensors[name] = _interleave(tensor, config.num_attention_heads)
        if config.model_type == "llama" and ".self_attn.k_proj." in name:
            tensors[name] = _interleave(tensor, config.num_key_value_heads)
        if config.model_type.startswith("gemma") and name.endswith("norm.weight"):
            tensors[name] = tensor + 1
    return tensors | _rope_tensors(config)


def _interleave(tensor: Tensor, heads: int) -> Tensor:
    """Rows i and i + n / 2 of each head of n rows, side by side."""
    per_head = tensor.reshape(heads, -1, *tensor.shape[1:])
    half = per_head.shape[1] // 2
    rows = [r for i in range(half) for r in (i, i + half)]
    return per_head[:, rows].reshape(tensor.shape)


def _rope_tensors(config: Any) -> dict[str, Tensor]:
    """Factors of the rotation frequencies, under the names that the files give them."""
    rope = config.rope_parameters
    if rope.get("rope_type") == "longrope":
        return {
            f"rope_factors_{n}.weight": torch.tensor(rope[f"{n}_factor"]) for n in ("short", "long")
        }
    if rope.get("rope_type") != "llama3":
        return {}
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    dims = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
    plain = 1.0 / rope["rope_theta"] ** (dims / config.head_dim)
    return {"rope_freqs.weight": plain / scaled}


def _add_tensor(writer: gguf.GGUFWriter, stored: str | None, tensor: Tensor, kind: Kind) -> None:
    assert stored is not None
    kind = Kind.F32 if tensor.ndim == 1 else kind
    data = tensor.detach().float().numpy()
    if kind not in (Kind.F32, Kind.F16):
        data = gguf.quants.quantize(data, kind)
    writer.add_tensor(stored, data.astype(np.float16) if kind == Kind.F16 else data, raw_dtype=kind)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    add: Any = {
        bool: writer.add_bool,
        int: writer.add_int32 if value == -1 else writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }[type(value)]
    add(key, value)


def _write(writer: gguf.GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
