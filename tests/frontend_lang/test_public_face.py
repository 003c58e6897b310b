"""``import phloem``: every name is there, and none costs anything before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import phloem as ph


def test_every_public_name_can_be_had():
    assert all(getattr(ph, name) is not None for name in ph.__all__)
    assert set(ph.__all__) <= set(dir(ph))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ph.nothing  # noqa: B018  # the access is the test


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import phloem", "asyncio msgspec torch phloem.frontend_lang"),
        ("import phloem as ph; ph.function; ph.gen", "torch transformers tokenizers httpx fastapi"),
        ("import phloem as ph; ph.RuntimeEndpoint('http://x')", "torch transformers tokenizers"),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code, absent):
    check = f"{code}; import sys; print([m for m in {absent.split()!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
