"""Engines that ``constrained.py`` compares on JSON schemas, each in processes of its own.

A module here named after an engine holds its adapter, ``load(tokens) -> Engine``. It imports that
engine's package and nothing else of the project (Phloem's own apart), so that it runs in a foreign
virtual environment, which needs ``tokenizers`` and ``numpy`` besides.
"""
