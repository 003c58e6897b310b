"""Quantised tensors are unpacked as ggml defines their blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from ggml_blocks import HALVES, UNPACK
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Kind
from gguf_writing import write_gguf
from transformers import LlamaConfig, LlamaForCausalLM

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.gguf import GGUFSource

ROWS, COLUMNS = 64, 512
DOWN = "model.layers.0.mlp.down_proj.weight"
QUERY = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=ROWS,
        intermediate_size=COLUMNS,
        num_hidden_layers=1,
        num_attention_heads=4,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config)


def random_blocks(kind: Kind, rows: int = ROWS) -> np.ndarray:
    """Random bytes, with the factors of each block made moderate numbers."""
    random = np.random.default_rng(int(kind))
    elements, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows * COLUMNS // elements, size), dtype=np.uint8)
    for at in HALVES[kind]:
        factors = random.uniform(-2, 2, len(blocks)).astype(np.float16)
        blocks[:, at : at + 2] = factors.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


@pytest.mark.parametrize("kind", UNPACK, ids=lambda kind: kind.name)
def test_any_blocks_unpack_as_defined(kind: Kind, model: LlamaForCausalLM, tmp_path: Path) -> None:
    rows = random_blocks(kind)
    path = write_gguf(tmp_path / "m.gguf", model, blocks={DOWN: (rows, kind)})
    source = GGUFSource(path)
    size = GGML_QUANT_SIZES[kind][1]
    blocks = [bytes(block) for block in rows.reshape(-1, size)]
    expected = torch.tensor([UNPACK[kind](block) for block in blocks]).reshape(ROWS, COLUMNS)
    got = source.get(DOWN)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)
    assert source.raw(DOWN)[0] == kind and np.array_equal(source.raw(DOWN)[1], rows)


def test_rows_of_quantised_query_weights_are_put_in_order(
    model: LlamaForCausalLM, tmp_path: Path
) -> None:
    source = GGUFSource(write_gguf(tmp_path / "m.gguf", model, Kind.Q8_0))
    original = model.state_dict()[QUERY]
    step = original.abs().amax() / 127
    assert (source.get(QUERY) - original).abs().max() < step


def test_bfloat16_stays_bfloat16(model: LlamaForCausalLM, tmp_path: Path) -> None:
    source = GGUFSource(write_gguf(tmp_path / "m.gguf", model, Kind.BF16))
    assert torch.equal(source.get(DOWN), model.state_dict()[DOWN].bfloat16())


def test_a_large_tensor_is_unpacked_in_chunks_that_do_not_show(
    model: LlamaForCausalLM, tmp_path: Path
) -> None:
    rows = random_blocks(Kind.Q4_1, 2048)
    path = write_gguf(tmp_path / "m.gguf", model, blocks={DOWN: (rows, Kind.Q4_1)})
    alone = write_gguf(tmp_path / "1.gguf", model, blocks={DOWN: (rows[1500:1501], Kind.Q4_1)})
    assert torch.equal(GGUFSource(path).get(DOWN)[1500], GGUFSource(alone).get(DOWN)[0])


def test_a_type_that_is_not_supported_is_named(model: LlamaForCausalLM, tmp_path: Path) -> None:
    rows = np.zeros((ROWS, COLUMNS // 256 * GGML_QUANT_SIZES[Kind.Q2_K][1]), np.uint8)
    path = write_gguf(tmp_path / "m.gguf", model, blocks={DOWN: (rows, Kind.Q2_K)})
    with pytest.raises(ModelError, match=r"blk\.0\.ffn_down\.weight has type Q2_K; supported: F32"):
        GGUFSource(path)
