from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phloem.runtime.scheduling.ordered import Ordered

keys = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30)


@given(keys, st.randoms(use_true_random=False))
def test_is_in_order_whatever_is_added_and_removed(
    added: list[tuple[int, int]], random: object
) -> None:
    ordered: Ordered[int] = Ordered()
    for item, key in enumerate(added):
        ordered.add(item, *key)
    gone = {item for item in range(len(added)) if random.random() < 0.5}  # type: ignore[attr-defined]
    for item in gone:
        ordered.remove(item)
    left = sorted((key, item) for item, key in enumerate(added) if item not in gone)
    assert list(ordered) == [item for _, item in left]
    assert len(ordered) == len(left)
    for item in range(len(added)):
        assert (item in ordered) == (item not in gone)
    for bound in range(4):
        within = [item for key, item in left if key[0] <= bound]
        assert ordered.until(bound, 3) == within[:3]
