"""The folder's tests need the library."""

from __future__ import annotations

import pytest

from phloem.kernels.registry import native_runs


@pytest.fixture(autouse=True)
def _built() -> None:
    if not native_runs():
        pytest.skip("the native library was not built")
