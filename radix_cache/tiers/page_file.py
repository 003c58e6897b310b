"""One page as a file: a header that says what it should be, and the page.

A file is written once, under another name, and then renamed: readers of this or another process
see all of it or nothing. It is not synced to the disk, so a crash of the machine may leave an
empty or torn file of the right name; the checksum finds those as it finds damage of any kind.
"""

from __future__ import annotations

import os
import stat
import struct
from hashlib import sha256
from pathlib import Path

import numpy as np

from phloem.radix_cache.tiers.keys import KEY_BYTES, Key
from phloem.radix_cache.tiers.raw_pages import Payload

MAGIC = b"phloemKV"
VERSION = 1
CHECKSUM_BYTES = 32
HEADER = struct.Struct(f"<8sIQ{KEY_BYTES}s{CHECKSUM_BYTES}s")
"""Magic, version, bytes of payload, key, checksum of the payload."""


class DamagedFile(Exception):
    """The file is not the one that was written under this name."""


def file_bytes(size: int) -> int:
    """Of the file of a page of ``size`` bytes."""
    return HEADER.size + size


def write(path: Path, key: Key, payload: Payload) -> None:
    """Make the file appear, whole.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    draft = path.with_name(draft_name(path.name))
    try:
        with open(draft, "wb", buffering=0, opener=private) as file:
            write_all(file.fileno(), header(key, payload))
            write_all(file.fileno(), payload.data)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: keys and values tell what was asked."""
    return os.open(path, flags, 0o600)


def without_waiting(path: str, flags: int) -> int:
    """Open whatever is there; a pipe without a writer would else be waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def draft_name(name: str) -> str:
    """Differs between processes; in one, only one thread writes."""
    return f"{name}.{os.getpid()}.draft"


def write_all(file: int, data: bytes | memoryview) -> None:
    """A full disk may take a part of the data before it refuses the rest."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def read(path: Path, key: Key, size: int) -> Payload:
    """The page of ``size`` bytes.

    Raises:
        DamagedFile: the file is cut, changed, of another version, or another page's.
        OSError: it is not there, or cannot be read.
    """
    with open(path, "rb", buffering=0, opener=without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DamagedFile(f"{path} is no regular file")
        head = file.read(HEADER.size)
        payload = np.fromfile(file, dtype=np.uint8, count=size)
        more = file.read(1)
    if more or len(payload) != size or head != header(key, payload):
        raise DamagedFile(f"{path} is damaged")
    return payload


def header(key: Key, payload: Payload) -> bytes:
    checksum = sha256(payload.data).digest()  # processors have instructions for this one
    return HEADER.pack(MAGIC, VERSION, payload.nbytes, key, checksum)
