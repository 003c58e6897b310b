"""Files that are damaged, cut short or of another kind are refused, each with its reason."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from phloem.runtime.errors import ModelError
from phloem.runtime.loading.gguf_file import read_gguf


def write_sample(path: Path) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 7)
    writer.add_float32("llama.rope.freq_base", 0.5)
    writer.add_bool("flag", True)
    writer.add_array("words", ["a", "", "ü😀"])
    writer.add_array("numbers", [1, -2, 3])
    writer.add_int8("small", -5)
    writer.add_uint64("large", 1 << 40)
    writer.add_tensor("weight", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    writer.add_tensor("bias", np.ones(3, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_sample(tmp_path_factory.mktemp("gguf") / "sample.gguf").read_bytes()


def load(folder: Path, content: bytes) -> None:
    path = folder / "changed.gguf"
    path.write_bytes(content)
    read_gguf(path)


def test_metadata_and_tensors_are_read(sample: bytes, tmp_path: Path) -> None:
    file = read_gguf(write_sample(tmp_path / "m.gguf"))
    assert file.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 7,
        "llama.rope.freq_base": 0.5,
        "flag": True,
        "words": ["a", "", "ü😀"],
        "numbers": [1, -2, 3],
        "small": -5,
        "large": 1 << 40,
    }
    assert file.tensors["weight"].shape == (2, 3, 4)
    rows = file.rows("weight").view(np.float32)
    assert np.array_equal(rows, np.arange(24).reshape(2, 3, 4))
    assert np.array_equal(file.rows("bias").view(np.float16), np.ones(3))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", "cannot be read"),
        (b"GG", "begin with the letters GGUF"),
        (b"GGML" + bytes(60), "begin with the letters GGUF"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(60), "version 1; only version 3"),
        (b"GGUF" + struct.pack("<I", 2) + bytes(60), "version 2; only version 3"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(60), "big-endian"),
        (b"GGUF" + struct.pack("<I", 3), "truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "truncated"),
        # one key "a" that is an array of 2^61 floats
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 6, 1 << 61), "truncated"),
        # one key "a" that is an array of arrays, then one of an unknown type
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 9, 1), "a has the unknown value"),
        (b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"a", 99), "a has the unknown value type 99"),
        (b"GGUF" + struct.pack("<IQQQcIQ", 3, 0, 1, 1, b"\xff", 8, 0), "not UTF-8"),
    ],
)
def test_other_files_are_refused_with_the_reason(head: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        load(tmp_path, head)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read_gguf(tmp_path / "none.gguf")


def test_a_file_cut_anywhere_is_refused(sample: bytes, tmp_path: Path) -> None:
    # the last tensor is three halves, padded to the alignment of 32
    for length in range(0, len(sample) - 26, 3):
        with pytest.raises(ModelError):
            load(tmp_path, sample[:length])


def test_the_tensor_that_lies_beyond_the_end_is_named(sample: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tensor bias ends at byte"):
        load(tmp_path, sample[:-31])


@pytest.mark.parametrize("repeated", [b"words", b"weight"])
def test_names_that_appear_twice_are_refused(
    repeated: bytes, sample: bytes, tmp_path: Path
) -> None:
    others = {b"words": b"small", b"weight": b"bias"}
    with pytest.raises(ModelError, match="appears twice"):
        content = sample.replace(named(others[repeated]), named(repeated))
        load(tmp_path, content)


def named(name: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_bytes_give_a_file_or_an_error(
    data: st.DataObject, sample: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, len(content) - 1))
        content[at] = data.draw(st.sampled_from([0, 1, 9, 0x7F, 0xFF]))
    folder = tmp_path_factory.getbasetemp()
    try:
        load(folder, bytes(content))
    except ModelError as error:
        assert "changed.gguf" in str(error)
