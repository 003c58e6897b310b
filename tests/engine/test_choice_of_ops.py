"""Which ops an engine runs on, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from harness import make_core, request, run
from tiny import write_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from phloem.kernels.registry import native_runs
from phloem.runtime.bootstrap import load, make_kv_pool
from phloem.runtime.config import EngineConfig
from phloem.runtime.errors import ModelError

needs_native = pytest.mark.skipif(not native_runs(), reason="the native library was not built")

SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.WARNING)
from phloem.runtime.bootstrap import load
from phloem.runtime.config import EngineConfig
print(load(EngineConfig(model=sys.argv[1], dtype="float32")).ops.name)
"""


@needs_native
def test_native_ops_are_the_default_on_a_cpu(tiny_model: Path) -> None:
    assert load(EngineConfig(model=str(tiny_model))).ops.name == "native"


@needs_native
def test_native_and_reference_agree(tiny_model: Path) -> None:
    prompt, found = list(range(20, 60)), []
    for ops in ("native", "reference"):
        loaded = load(EngineConfig(model=str(tiny_model), ops=ops, dtype="float32"))
        each = request(prompt, max_new_tokens=20)
        found.append(run(make_core(loaded), [each])[each.rid][0].token_ids)
    assert found[0] == found[1]


def test_without_the_library_the_reference_runs_and_says_so(tiny_model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tiny_model)],
        env={**os.environ, "PHLOEM_LIBRARY": "/nowhere/libphloem.so"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "reference"
    assert "plain torch" in done.stderr
    assert "compiler" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ops": "native", "dtype": "float16"}, "ops: .* dtype float16"),
        ({"ops": "native", "kv_dtype": "float16"}, "ops: .* kv_dtype float16"),
        ({"ops": "reference", "quantization": "int8"}, "quantization: int8 needs native ops"),
        ({"ops": "reference", "quantization": "w8a8"}, "quantization: w8a8 needs native ops"),
        ({"ops": "reference", "cpu_activations": "int8"}, "cpu_activations: int8"),
        ({"ops": "reference", "kv_dtype": "int8"}, "kv_dtype: int8 needs native ops"),
    ],
)
def test_what_ops_cannot_do_is_refused(
    tiny_model: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        load(EngineConfig(model=str(tiny_model), **options))  # type: ignore[arg-type]


@needs_native
@pytest.mark.parametrize(("heads", "size"), [(1, 260), (65, 4)])
def test_heads_beyond_native_ops_run_on_the_reference(
    tmp_path: Path, heads: int, size: int
) -> None:
    write_tokenizer(tmp_path)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=4 * heads,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=1,
        head_dim=size,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    assert load(EngineConfig(model=str(tmp_path), dtype="float32")).ops.name == "reference"


@pytest.mark.parametrize("threads", [0, 1025])
def test_threads_have_limits(threads: int) -> None:
    with pytest.raises(msgspec.ValidationError, match="threads"):
        msgspec.convert({"threads": threads}, EngineConfig)


@needs_native
def test_a_smaller_kv_type_takes_less_memory(tiny_model: Path) -> None:
    sizes = []
    for dtype in ("float32", "bfloat16", "int8"):
        config = EngineConfig(model=str(tiny_model), kv_dtype=dtype, kv_tokens=256)  # type: ignore[arg-type]
        loaded = load(config)
        sizes.append(make_kv_pool(config, loaded.model, loaded.ops).bytes_per_page)
    assert sizes[0] == 2 * sizes[1] > 2 * sizes[2]
