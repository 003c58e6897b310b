import numpy as np

from phloem.radix_cache.tiers import HostStore


def page(value: int) -> np.ndarray:
    return np.full(10, value, dtype=np.uint8)


def filled(limit: int, *names: bytes) -> HostStore:
    store = HostStore(limit)
    for name in names:
        store.put(name, page(name[0]))
    return store


def test_the_least_recently_used_falls_out() -> None:
    store = filled(20, b"a", b"b")
    assert store.get(b"a") is not None
    [(fallen, payload)] = store.put(b"c", page(0))
    assert fallen == b"b"
    assert (payload == page(ord("b"))).all()
    assert store.get(b"b") is None
    assert store.used == 20


def test_putting_again_is_a_use() -> None:
    store = filled(20, b"a", b"b")
    assert store.put(b"a", page(0)) == []
    assert [key for key, _ in store.put(b"c", page(0))] == [b"b"]


def test_a_page_larger_than_the_store_falls_out_at_once() -> None:
    store = HostStore(9)
    assert [key for key, _ in store.put(b"a", page(0))] == [b"a"]
    assert store.used == 0


def test_items_come_with_the_latest_used_first() -> None:
    store = filled(30, b"a", b"b", b"c")
    store.get(b"a")
    assert [key for key, _ in store.items()] == [b"a", b"c", b"b"]


def test_clear() -> None:
    store = filled(30, b"a")
    store.clear()
    assert store.used == 0
    assert b"a" not in store
