from hypothesis import given
from hypothesis import strategies as st

from phloem.runtime.scheduling.buffer import IntBuffer

ints = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=50)


@given(ints, st.lists(ints, max_size=8))
def test_behaves_like_a_list(start: list[int], more: list[list[int]]) -> None:
    buffer, model = IntBuffer(start), list(start)
    for values in more:
        buffer.extend(values)
        model.extend(values)
        assert buffer.view().tolist() == model
        assert len(buffer) == len(model)
        buffer.truncate(len(model) // 2)
        del model[len(model) // 2 :]
        assert buffer.view().tolist() == model


def test_a_copy_of_the_values_is_kept() -> None:
    first = IntBuffer([1, 2, 3])
    second = IntBuffer(first.view())
    first.view()[0] = 9
    assert second.view().tolist() == [1, 2, 3]
