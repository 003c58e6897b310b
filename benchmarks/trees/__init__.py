"""Prefix caches with one interface, for ``radix_tree.py``."""
