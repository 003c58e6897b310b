"""Every family against transformers' own model, in any division into steps."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_runner import PagedRunner
from schedules import assert_logits, run_random_schedule
from tiny_checkpoints import FAMILIES, SHORTEST, family

from phloem.kernels.registry import load_ops
from phloem.runtime.models import Model, load_model

CPU = torch.device("cpu")


@cache
def our_model(name: str) -> Model:
    return load_model(family(name).source, load_ops("reference"), torch.float32, CPU)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_any_schedule_gives_the_same_logits(name: str, data: st.DataObject) -> None:
    requests = run_random_schedule(our_model(name), data, SHORTEST.get(name, 1))
    for request in requests:
        assert_logits(request, family(name))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "phi3-long"])
def test_bfloat16_runs(name: str) -> None:
    model = load_model(family(name).source, load_ops("reference"), torch.bfloat16, CPU)
    tokens = list(range(3, 40))
    runner = PagedRunner(model)
    logits = runner.finish(runner.add(tokens), chunk=11)
    exact = family(name).logits(tokens)
    assert logits.dtype == torch.float32
    assert (logits - exact).abs().mean() / exact.abs().mean() < 0.05


def test_longrope_goes_by_the_context_that_is_served() -> None:
    source = family("phi3-long").source
    model = load_model(source, load_ops("reference"), torch.float32, CPU, context_length=16)
    assert model.config.context_length == 16
    runner = PagedRunner(model)
    request = runner.add(range(16))
    runner.finish(request, chunk=16)
    assert_logits(request, family("phi3-long"))


def test_geometry() -> None:
    geometry = our_model("llama").kv_geometry
    assert (geometry.num_layers, geometry.num_kv_heads, geometry.head_dim) == (3, 2, 8)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX2", reason="measured on AVX2 processors"
)
@pytest.mark.parametrize("name", ["llama", "qwen2-sliding", "gemma2", "gemma3"])
def test_logits_have_the_same_bits_alone_in_a_batch_and_in_chunks(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 97, (4, 60), generator=generator).tolist()
    runner = PagedRunner(our_model(name))
    whole = runner.finish(runner.add(tokens[0]), chunk=60)
    single = runner.finish(runner.add(tokens[0]), chunk=1)
    together = [runner.add(row) for row in tokens]
    for sizes in ((13, 60, 1, 30), (20, 0, 1, 30), (27, 0, 58, 0)):
        runner.step([(r, n) for r, n in zip(together, sizes, strict=True) if n])
    assert torch.equal(single, whole)
    assert torch.equal(torch.cat(together[0].logits), whole)
