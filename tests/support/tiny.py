"""A tiny random model in a Hugging Face folder: a real tokenizer, two layers, a chat template."""

from __future__ import annotations

from pathlib import Path

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = [
    "The tissue that carries what a tree makes along its branches is called phloem.",
    '{"name": "Ada", "age": 36, "tags": ["mathematics", "engines"], "alive": false}',
    "def fibonacci(n):\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n",
    "Numbers: 0 1 2 3 4 5 6 7 8 9 10 42 2026; ünïcödé, 漢字, 😀.",
]


def write_tiny_model(folder: Path) -> Path:
    """Write tokenizer and weights to ``folder``; the same ones every time."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    size = write_tokenizer(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=size + 5,  # padded, as real checkpoints are
        hidden_size=96,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.4,
        eos_token_id=2,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path) -> int:
    """A byte-level BPE of some 400 tokens with three special ones; its size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=SPECIAL[2], chat_template=CHAT_TEMPLATE
    )
    fast.save_pretrained(folder)
    return tokenizer.get_vocab_size()
