"""Text to tokens and back: tokenizers, chat templates, detokenising, stop matching."""

from phloem.runtime.text.detokenizer import Detokenizer
from phloem.runtime.text.load import load_tokenizer
from phloem.runtime.text.roles import Affixes, RoleAffixes, role_affixes
from phloem.runtime.text.stop import StopMatcher, StopResult
from phloem.runtime.text.tokenizer import Tokenizer

__all__ = [
    "Affixes",
    "Detokenizer",
    "RoleAffixes",
    "StopMatcher",
    "StopResult",
    "Tokenizer",
    "load_tokenizer",
    "role_affixes",
]
