"""From a configuration to a running core: model, memory, scheduler, grammars."""

from __future__ import annotations

import logging
import math
import os
import random
from dataclasses import dataclass

import psutil
import torch

from phloem.constrained import GrammarCompiler, Vocabulary
from phloem.kernels.native.kv import MOST_HEAD, MOST_QUERIES
from phloem.kernels.ops import Ops
from phloem.kernels.registry import load_ops, native_runs
from phloem.radix_cache import KVPool
from phloem.runtime.cache_setup import make_kv_events, make_memory
from phloem.runtime.config import EngineConfig
from phloem.runtime.engine import EngineCore
from phloem.runtime.errors import ModelError
from phloem.runtime.executor import Executor
from phloem.runtime.generation import Generation
from phloem.runtime.intake import Intake
from phloem.runtime.loading.quantize import QuantizedSource
from phloem.runtime.loading.source import WeightSource, load_source
from phloem.runtime.models import Model, load_model
from phloem.runtime.models.families import is_known, parse_config
from phloem.runtime.protocol import ModelInfo
from phloem.runtime.scheduling.deadlines import Deadlines
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
    files, device = resolve(config.model), choose_device(config)
    source = load_source(files)
    name = choose_ops(config, source, device)
    dtype = choose_dtype(config, name, device)
    ops = make_ops(config, name, dtype)
    if config.quantization != "none":
        source = QuantizedSource(source, config.quantization)
    model = load_model(source, ops, dtype, device, config.context_length)
    return LoadedModel(str(files.path), model, ops, load_tokenizer(files))


def assemble(loaded: LoadedModel, config: EngineConfig) -> LoadedEngine:
    """Memory, scheduler and grammars around a loaded model."""
    model, tokenizer = loaded.model, loaded.tokenizer
    kv = make_kv_pool(config, model, loaded.ops)
    info = describe(config, loaded, kv)
    grammars = make_grammars(config, vocabulary(tokenizer, model.config.vocab_size))
    memory = make_memory(config, loaded.path, loaded.ops, kv)
    core = EngineCore(
        Intake(tokenizer, grammars, info, random.Random(config.random_seed)),
        Scheduler(memory, limits(config, kv)),
        Executor(model, loaded.ops, kv),
        Generation(info.eos_token_ids, config.jump_forward),
        Deadlines(config.queue_timeout),
        make_kv_events(config, memory),
        check_invariants=config.check_invariants,
    )
    return LoadedEngine(core, info, tokenizer)


def choose_device(config: EngineConfig) -> torch.device:
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ModelError("device: cuda was asked for, but torch sees no CUDA device")
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(config.device)


def choose_ops(config: EngineConfig, source: WeightSource, device: torch.device) -> str:
    """Native ops for models that are defined here, on CPUs; plain torch for the others.

    Raises:
        ModelError: native ops, or what only they do, were asked for and cannot be had.
    """
    obstacle = native_obstacle(config, source, device)
    if obstacle is None:
        return "reference" if config.ops == "reference" else "native"
    if config.ops == "native":
        raise ModelError(f"ops: native ops cannot run here: {obstacle}")
    if device.type == "cpu":
        logger.warning("running on plain torch, several times slower than native ops: %s", obstacle)
    return "reference"


def native_obstacle(config: EngineConfig, source: WeightSource, device: torch.device) -> str | None:
    """Why native ops cannot run this, or None."""
    if device.type != "cpu":
        return f"the device is {device}"
    if not native_runs():
        return "they were not built when the package was installed (is there a C++ compiler?)"
    if not is_known(source.config):
        return f"the architecture {source.config.get('model_type')!r} runs through transformers"
    model = parse_config(source.config)
    if model.head_dim > MOST_HEAD:
        return f"its heads have more than {MOST_HEAD} dimensions"
    if model.num_heads > MOST_QUERIES * model.num_kv_heads:
        return f"more than {MOST_QUERIES} of its query heads share a KV head"
    for option in ("dtype", "kv_dtype"):
        if getattr(config, option) == "float16":
            return f"there are none for {option} float16"
    return None


def make_ops(config: EngineConfig, name: str, dtype: torch.dtype) -> Ops:
    """The ops; torch keeps to one thread beside those of the native ops."""
    if name == "native":
        torch.set_num_threads(1)
    else:
        for option in ("quantization", "cpu_activations", "kv_dtype"):
            if getattr(config, option) in ("int8", "int4", "w8a8"):
                raise ModelError(f"{option}: {getattr(config, option)} needs native ops")
        if config.threads is not None:
            torch.set_num_threads(config.threads)
    exact = {"auto": dtype == torch.float32, "int8": False, "float32": True}
    return load_ops(name, threads=config.threads, exact=exact[config.cpu_activations])


def choose_dtype(config: EngineConfig, ops: str, device: torch.device) -> torch.dtype:
    """bfloat16 where it is multiplied natively, and for native ops, which widen it as they read."""
    if config.dtype != "auto":
        dtype: torch.dtype = getattr(torch, config.dtype)
        return dtype
    native = ops == "native" or device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if native else torch.float32


def make_kv_pool(config: EngineConfig, model: Model, ops: Ops) -> KVPool:
    device, shape = model.device, model.kv_geometry
    dtype = model.dtype if config.kv_dtype == "auto" else getattr(torch, config.kv_dtype)
    try:
        sides = ops.page_sides(config.page_size, shape.num_kv_heads, shape.head_dim, dtype)
    except ValueError as error:
        raise ModelError(str(error)) from None
    page_bytes = shape.num_layers * sum(math.prod(s.shape) * s.dtype.itemsize for s in sides)
    token_bytes = page_bytes // config.page_size
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
        sides=[(side.shape, side.dtype) for side in sides],
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


def make_grammars(config: EngineConfig, vocabulary: Vocabulary) -> GrammarCompiler:
    try:
        return GrammarCompiler(vocabulary, backend=config.grammar_backend)
    except ImportError as error:
        raise ModelError(f"grammar_backend: {error}") from None


def vocabulary(tokenizer: Tokenizer, size: int) -> Vocabulary:
    return Vocabulary(
        token_bytes=tokenizer.token_bytes_table(size),
        eos_ids=tokenizer.eos_token_ids,
        special_ids=tokenizer.special_ids,
        tokenizer_json=tokenizer.to_json(),
    )


def limits(config: EngineConfig, kv: KVPool) -> Limits:
    default = GPU_STEP_TOKENS if kv.device.type == "cuda" else CPU_STEP_TOKENS
    return Limits(
        step_tokens=config.step_tokens or default,
        max_running=config.max_running,
        policy=config.schedule_policy,
        max_wait=config.max_wait,
    )
