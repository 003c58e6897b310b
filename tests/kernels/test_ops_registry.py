from __future__ import annotations

import pytest

from phloem.kernels.registry import NAMES, load_ops, native_runs


@pytest.mark.parametrize("name", NAMES)
def test_names_are_those_of_the_ops(name: str) -> None:
    if name == "native" and not native_runs():
        pytest.skip("the native library was not built")
    assert load_ops(name).name == name


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"'cudnn'.*native, reference"):
        load_ops("cudnn")
