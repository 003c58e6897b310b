"""What a user may call a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from phloem.runtime.errors import ModelError
from phloem.runtime.store import ModelFiles, pull, resolve


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def test_folders_and_files_are_used_in_place(tmp_path: Path) -> None:
    folder = make(tmp_path / "hf", "config.json", "model.safetensors", "extra.gguf")
    assert resolve(str(folder)) == ModelFiles("safetensors", folder)
    one = make(tmp_path / "one", "m.gguf")
    assert resolve(str(one)) == ModelFiles("gguf", one / "m.gguf")
    assert pull(str(one / "m.gguf")) == ModelFiles("gguf", one / "m.gguf")


def test_the_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make(tmp_path, "m.gguf")
    assert resolve("~/m.gguf").path == tmp_path / "m.gguf"


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        (["a.gguf", "b.gguf"], "", "several GGUF files, give one of them: a.gguf, b.gguf"),
        (["pytorch_model.bin"], "", "pickled weights only"),
        (["readme.md"], "", "neither safetensors nor GGUF"),
        (["model.safetensors"], "model.safetensors", "give its folder"),
        (["model.onnx"], "model.onnx", "not a .gguf file"),
    ],
)
def test_paths_that_hold_no_model_are_explained(
    names: list[str], given: str, message: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "model", *names)
    with pytest.raises(ModelError, match=message):
        resolve(str(folder / given))


@pytest.mark.parametrize(
    "name", ["", "nothing", "a/b/c", "missing.gguf", "dir/missing.gguf", "/no/where", "a b/c",
             "x\0y", "x" * 5000, "org/name:file.bin", "../up", "é/ü"],
)  # fmt: skip
def test_unknown_names_list_the_known_ones(name: str) -> None:
    with pytest.raises(ModelError, match="Known names: smollm2-135m-instruct"):
        resolve(name)


def test_a_misspelled_name_is_corrected() -> None:
    with pytest.raises(ModelError, match=r"did you mean smollm2-135m-instruct\?"):
        resolve("smollm2-135-instruct")


class Hub:
    """Stands for the hub library: records what is asked for, answers with a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[Any, ...]] = []

    def snapshot_download(self, repo: str, **options: Any) -> str:
        self.asked.append((repo, options["revision"], options["allow_patterns"]))
        return str(self.folder)

    def hf_hub_download(self, repo: str, file: str, **options: Any) -> str:
        self.asked.append((repo, options["revision"], file))
        return str(self.folder / file)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path / "snapshot")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hub.hf_hub_download)
    return hub


def test_a_hub_id_fetches_the_files_needed(hub: Hub) -> None:
    make(hub.folder, "config.json", "model.safetensors")
    assert resolve("org/name") == ModelFiles("safetensors", hub.folder)
    repo, revision, patterns = hub.asked[0]
    assert (repo, revision) == ("org/name", None)
    assert {"*.json", "*.safetensors", "*.jinja"} <= set(patterns)
    assert not any("bin" in pattern or "gguf" in pattern for pattern in patterns)


def test_a_hub_id_may_name_revision_and_file(hub: Hub) -> None:
    make(hub.folder, "m-Q4.gguf", "model.safetensors")
    resolve("org/name@refs/pr/1")
    assert resolve("org/name@v1.0:m-Q4.gguf").path == hub.folder / "m-Q4.gguf"
    assert [asked[:2] for asked in hub.asked] == [("org/name", "refs/pr/1"), ("org/name", "v1.0")]


def test_a_repository_of_ggufs_tells_how_to_choose(hub: Hub) -> None:
    make(hub.folder, "config.json")
    with pytest.raises(ModelError, match=r"write org/name:file\.gguf"):
        resolve("org/name")


def test_a_hub_out_of_reach_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(ModelError, match="could not fetch org/name from the hub: no network"):
        resolve("org/name")
