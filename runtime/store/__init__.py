"""Names, paths and hub ids to local model files."""

from phloem.runtime.store.catalogue import CATALOGUE, DEFAULT_MODEL, CatalogueModel
from phloem.runtime.store.files import ModelFiles
from phloem.runtime.store.resolve import pull, resolve

__all__ = ["CATALOGUE", "DEFAULT_MODEL", "CatalogueModel", "ModelFiles", "pull", "resolve"]
