"""From a configuration to a running core: model, memory, scheduler, grammars."""

from __future__ import annotations

import logging
import os
import random
from dataclasses import dataclass

import psutil
import torch

from phloem.constrained import GrammarCompiler, Vocabulary
from phloem.kernels.ops import Ops
from phloem.kernels.registry import load_ops
from phloem.radix_cache import KVPool, PagePool, RadixCache
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine import EngineCore
from phloem.runtime.errors import ModelError
from phloem.runtime.executor import Executor
from phloem.runtime.generation import Generation
from phloem.runtime.intake import Intake
from phloem.runtime.loading.source import load_source
from phloem.runtime.models import Model, load_model
from phloem.runtime.protocol import ModelInfo
from phloem.runtime.scheduling.memory import SequenceMemory
from phloem.runtime.scheduling.scheduler import Limits, Scheduler
from phloem.runtime.store import resolve
from phloem.runtime.text import Tokenizer, load_tokenizer

logger = logging.getLogger(__name__)

CPU_STEP_TOKENS = 512
GPU_STEP_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model with what belongs to it; several engines may run on one."""

    path: str
    model: Model
    ops: Ops
    tokenizer: Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """A core, and what its clients need to know of it."""

    core: EngineCore
    info: ModelInfo
    tokenizer: Tokenizer


def build(config: EngineConfig) -> LoadedEngine:
    """Load the model and assemble the engine.

    Raises:
        ModelError: the model cannot be found, read or run, or memory does not suffice.
    """
    return assemble(load(config), config)


def load(config: EngineConfig) -> LoadedModel:
    """Find the model and read its weights and tokenizer."""
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    files = resolve(config.model)
    device = choose_device(config)
    ops = load_ops(config.ops)
    model = load_model(
        load_source(files), ops, choose_dtype(config, device), device, config.context_length
    )
    return LoadedModel(str(files.path), model, ops, load_tokenizer(files))


def assemble(loaded: LoadedModel, config: EngineConfig) -> LoadedEngine:
    """Memory, scheduler and grammars around a loaded model."""
    model, tokenizer = loaded.model, loaded.tokenizer
    kv = make_kv_pool(config, model)
    info = describe(config, loaded, kv)
    grammars = GrammarCompiler(vocabulary(tokenizer, model.config.vocab_size))
    core = EngineCore(
        Intake(tokenizer, grammars, info, random.Random(config.random_seed)),
        make_scheduler(config, kv),
        Executor(model, loaded.ops, kv),
        Generation(info.eos_token_ids, config.jump_forward),
        check_invariants=config.check_invariants,
    )
    return LoadedEngine(core, info, tokenizer)


def choose_device(config: EngineConfig) -> torch.device:
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ModelError("device: cuda was asked for, but torch sees no CUDA device")
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(config.device)


def choose_dtype(config: EngineConfig, device: torch.device) -> torch.dtype:
    """bfloat16 where the hardware multiplies it natively, float32 elsewhere."""
    if config.dtype != "auto":
        dtype: torch.dtype = getattr(torch, config.dtype)
        return dtype
    native = device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if native else torch.float32


def make_kv_pool(config: EngineConfig, model: Model) -> KVPool:
    device, shape = model.device, model.kv_geometry
    token_bytes = shape.bytes_per_token(model.dtype.itemsize)
    tokens = config.kv_tokens or int(free_memory(device) * config.kv_fraction) // token_bytes
    pages = tokens // config.page_size
    if pages < 2:
        raise ModelError(
            f"memory for {tokens} tokens of KV cache ({token_bytes} bytes each) is less than "
            f"two pages of {config.page_size} tokens; raise kv_tokens or kv_fraction"
        )
    return KVPool(
        num_layers=shape.num_layers,
        num_pages=pages,
        page_size=config.page_size,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        dtype=model.dtype,
        device=device,
    )


def free_memory(device: torch.device) -> int:
    """Bytes that could be used now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(psutil.virtual_memory().available)


def describe(config: EngineConfig, loaded: LoadedModel, kv: KVPool) -> ModelInfo:
    model = loaded.model
    longest = model.config.context_length
    if config.context_length is not None and config.context_length > longest:
        raise ModelError(
            f"context_length {config.context_length} is more than the model's {longest}"
        )
    return ModelInfo(
        name=config.served_model_name or os.path.basename(config.model.rstrip("/")),
        path=loaded.path,
        architecture=model.config.architecture,
        context_length=config.context_length or longest,
        # One page of a full pool is needed to copy a shared, half-filled page.
        max_request_tokens=(kv.num_pages - 1) * config.page_size,
        vocab_size=model.config.vocab_size,
        eos_token_ids=loaded.tokenizer.eos_token_ids,
        dtype=str(model.dtype).removeprefix("torch."),
        device=str(kv.device),
    )


def vocabulary(tokenizer: Tokenizer, size: int) -> Vocabulary:
    return Vocabulary(
        token_bytes=tokenizer.token_bytes_table(size),
        eos_ids=tokenizer.eos_token_ids,
        special_ids=tokenizer.special_ids,
        tokenizer_json=tokenizer.to_json(),
    )


def make_scheduler(config: EngineConfig, kv: KVPool) -> Scheduler:
    pool = PagePool(kv.num_pages, config.page_size)
    tree = RadixCache(pool) if config.prefix_cache else None
    default = GPU_STEP_TOKENS if kv.device.type == "cuda" else CPU_STEP_TOKENS
    limits = Limits(
        step_tokens=config.step_tokens or default,
        max_running=config.max_running,
        policy=config.schedule_policy,
        max_wait=config.max_wait,
    )
    return Scheduler(SequenceMemory(pool, tree), limits)
