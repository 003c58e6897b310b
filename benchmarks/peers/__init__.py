"""Engines that ``cpu_peers.py`` compares, each in a process of its own.

A module here named after an engine holds its adapter, ``load(settings) -> Peer``. It imports that
engine's package and nothing else of the project, so that it runs in a foreign virtual environment.
"""
