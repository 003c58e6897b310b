"""Load the tokenizer of a model."""

from __future__ import annotations

from phloem.runtime.loading.gguf_file import read_gguf
from phloem.runtime.store import ModelFiles
from phloem.runtime.text.folder import folder_tokenizer
from phloem.runtime.text.gguf_vocabulary import gguf_tokenizer
from phloem.runtime.text.tokenizer import Tokenizer


def load_tokenizer(files: ModelFiles) -> Tokenizer:
    """The tokenizer of ``files``.

    Raises:
        ModelError: there is none, it is damaged, or it is of a kind that is not supported.
    """
    if files.kind == "gguf":
        return gguf_tokenizer(read_gguf(files.path))
    return folder_tokenizer(files.path)
