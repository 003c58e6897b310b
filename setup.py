"""Map the top-level folders to packages below ``phloem``; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("runtime", "radix_cache", "constrained", "frontend_lang", "kernels")


def mapped(folder: str) -> list[str]:
    """Names of the packages in ``folder``, as seen from ``phloem``."""
    inner = find_packages(folder)
    return [f"phloem.{folder}", *(f"phloem.{folder}.{name}" for name in inner)]


setup(
    packages=[*find_packages(include=["phloem*"]), *(p for f in FOLDERS for p in mapped(f))],
    package_dir={"phloem": "phloem", **{f"phloem.{folder}": folder for folder in FOLDERS}},
    package_data={"phloem": ["py.typed"]},
)
