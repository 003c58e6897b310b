import numpy as np
import psutil
import pytest
import torch

from phloem.radix_cache import KVPool

SHAPE = {"num_layers": 2, "num_pages": 4, "page_size": 8}


def make(heads: int = 3, dim: int = 5, **changes: int) -> KVPool:
    sizes = {**SHAPE, **changes}
    side = (sizes["page_size"], heads, dim), torch.float32
    return KVPool(**sizes, sides=[side, side])


def numbered() -> KVPool:
    """Page p of layer l is full of 10 l + p in K, and of its negative in V."""
    kv = make()
    values = torch.tensor([[10.0 * layer + page for page in range(5)] for layer in range(2)])
    k, v = kv.sides
    k[:] = values[:, :, None, None, None]
    v[:] = -k
    return kv


def test_a_layer_is_a_view_with_the_scratch_page() -> None:
    kv = make()
    k, v = kv.layer(1)
    assert k.shape == v.shape == (5, 8, 3, 5)
    k.fill_(1.0)
    v.fill_(2.0)
    assert bool((kv.sides[0][1] == 1.0).all())
    assert bool((kv.sides[1][1] == 2.0).all())


def test_bytes_per_page() -> None:
    kv = make()
    assert kv.bytes_per_page * (kv.num_pages + 1) == sum(side.nbytes for side in kv.sides)


@pytest.mark.parametrize("as_type", [list, tuple, np.array])
def test_copies_reach_all_layers(as_type: type) -> None:
    kv = numbered()
    kv.copy_pages(as_type([0, 1]), as_type([2, 3]))
    k, v = kv.sides
    assert k[:, :, 0, 0, 0].tolist() == [[0, 1, 0, 1, 4], [10, 11, 10, 11, 14]]
    assert torch.equal(v, -k)


def test_a_page_may_be_source_and_target() -> None:
    kv = numbered()
    kv.copy_pages([0, 1, 2], [1, 2, 0])
    assert kv.sides[0][0, :, 0, 0, 0].tolist() == [2, 0, 1, 3, 4]


def test_copying_nothing_changes_nothing() -> None:
    kv = numbered()
    before = kv.sides[0].clone()
    kv.copy_pages([], [])
    assert torch.equal(kv.sides[0], before)


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        ([0], [1, 2], "2 targets for 1 sources"),
        ([0, 1], [2, 2], "named twice"),
        ([-1], [0], "src"),
        ([0], [4], "dst"),
    ],
)
def test_bad_copies_are_refused(src: list[int], dst: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make().copy_pages(src, dst)


@pytest.mark.parametrize("field", SHAPE)
def test_a_size_must_be_positive(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        make(**{field: 0})


def test_a_page_must_have_a_shape() -> None:
    with pytest.raises(ValueError, match="sides"):
        make(heads=0)


def test_more_memory_than_an_address_space_is_refused() -> None:
    with pytest.raises(MemoryError, match="num_pages"):
        make(num_pages=2**31 - 2, dim=2**24)


def test_memory_is_not_touched_before_use() -> None:
    before = psutil.Process().memory_info().rss
    kv = make(num_pages=2**14, dim=2**8)
    assert sum(side.nbytes for side in kv.sides) > 2**29
    assert psutil.Process().memory_info().rss - before < 2**26
