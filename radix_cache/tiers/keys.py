"""What names a page's content: a hash over all that the content depends on.

The keys and values of a page depend on the model and its arithmetic (the fingerprint), on whom
they may be shown to (the namespace), and on every token up to the page's end. So a key is chained:
each page's over its parent's key and its own tokens, the first parent's over fingerprint and
namespace. Equal keys mean equal content, as far as BLAKE2b with 256 bits has no collisions; tokens
are not compared again.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from phloem.radix_cache.page_pool import Pages
from phloem.radix_cache.results import Insert
from phloem.radix_cache.runs import TOKEN_BYTES, Tokens, encode

Key = bytes
KEY_BYTES = 32
ROOT, PAGE = b"phloem root", b"phloem page"
"""Personalisations, so that no root's key is a page's."""


def root_key(fingerprint: bytes, namespace: str) -> Key:
    """The parent of the first pages of a namespace."""
    length = len(fingerprint).to_bytes(8, "little")
    content = length + fingerprint + namespace.encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=KEY_BYTES, person=ROOT).digest()


def chain(parent: Key, tokens: Tokens, page_size: int) -> Iterator[Key]:
    """The keys of the whole pages of ``tokens``, int32 [n], which follow ``parent``'s page."""
    run, page_bytes = encode(tokens), page_size * TOKEN_BYTES
    for end in range(page_bytes, len(run) + 1, page_bytes):
        page = run[end - page_bytes : end]
        parent = blake2b(parent + page, digest_size=KEY_BYTES, person=PAGE).digest()
        yield parent


class PageKeys:
    """The key of each page in a tree, by the page's number, as a listener learns of them."""

    def __init__(self, fingerprint: bytes, page_size: int) -> None:
        self._fingerprint = fingerprint
        self._page_size = page_size
        self._keys: dict[int, Key] = {}

    def beyond(self, namespace: str, tokens: Tokens, above: Pages) -> Iterator[Key]:
        """Keys of the whole pages of ``tokens`` that follow ``above``, which the tree has."""
        root = root_key(self._fingerprint, namespace)
        parent = self[int(above[-1])] if len(above) else root
        return chain(parent, tokens[len(above) * self._page_size :], self._page_size)

    def add(self, namespace: str, tokens: Tokens, insert: Insert) -> dict[int, Key]:
        """Name the pages that are new to the tree; these, in their order."""
        known = insert.known // self._page_size
        keys = self.beyond(namespace, tokens, insert.pages[:known])
        added = dict(zip(insert.pages[known:].tolist(), keys, strict=True))
        self._keys.update(added)
        return added

    def pop(self, page: int) -> Key:
        """Forget a page that leaves the tree; its key."""
        return self._keys.pop(page)

    def clear(self) -> None:
        self._keys.clear()

    def __getitem__(self, page: int) -> Key:
        return self._keys[page]

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)
