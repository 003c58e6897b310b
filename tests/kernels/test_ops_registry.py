from __future__ import annotations

import pytest

from phloem.kernels.registry import IMPLEMENTATIONS, load_ops


@pytest.mark.parametrize("name", sorted(IMPLEMENTATIONS))
def test_names_are_those_of_the_ops(name: str) -> None:
    assert load_ops(name).name == name


def test_auto_is_one_of_them() -> None:
    assert load_ops("auto").name in IMPLEMENTATIONS


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"'cudnn'.*reference"):
        load_ops("cudnn")
