"""What engines need to know of a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from phloem.constrained import bitmask
from phloem.constrained.bitmask import Row


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A model's vocabulary, V tokens wide.

    Attributes:
        token_bytes: what each token adds to the text; length V, the width of the model's logits,
            which may exceed the tokenizer's. ``b""`` for special and padding ids.
        eos_ids: the tokens that end a sequence; at least one.
        special_ids: tokens that are no text, whatever their bytes.
        tokenizer_json: the tokenizer as the Hugging Face ``tokenizers`` library serialises it, for
            tokenising forced text as the model would. Empty: forced tokens are not proposed.
    """

    token_bytes: Sequence[bytes] = field(repr=False)
    eos_ids: tuple[int, ...]
    special_ids: frozenset[int] = frozenset()
    tokenizer_json: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.eos_ids:
            raise ValueError("eos_ids is empty: a constrained sequence could never end")
        for name in ("eos_ids", "special_ids"):
            for token in getattr(self, name):
                if not 0 <= token < self.size:
                    raise ValueError(f"{name} holds {token}, outside 0..{self.size - 1}")

    @property
    def size(self) -> int:
        """V."""
        return len(self.token_bytes)

    @cached_property
    def text_ids(self) -> frozenset[int]:
        """Tokens that stand for text: the only ones that a grammar may allow besides EOS."""
        barred = self.special_ids.union(self.eos_ids)
        return frozenset(
            token for token, data in enumerate(self.token_bytes) if data and token not in barred
        )

    @cached_property
    def text_mask(self) -> Row:
        """`text_ids` as a mask."""
        return bitmask.pack(self.text_ids, self.size)

    @cached_property
    def eos_mask(self) -> Row:
        """``eos_ids`` as a mask."""
        return bitmask.pack(self.eos_ids, self.size)
