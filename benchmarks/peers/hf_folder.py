"""The GGUF model as a Hugging Face folder, for engines that read no GGUF."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch


def hf_folder(gguf: Path, cache: Path) -> Path:
    """The model dequantised to float32, made once, with its tokenizer.

    Raises:
        ImportError: transformers needs accelerate to read GGUF.
    """
    folder = cache / f"{gguf.stem}-hf"
    if not folder.exists():
        fresh = folder.with_name(folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        convert(gguf, fresh)
        fresh.rename(folder)
    return folder


def convert(gguf: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    quantised = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # A model that knows that it comes from GGUF refuses to be saved; its weights are plain.
    config = quantised.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantised.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
