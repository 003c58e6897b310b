"""Regexes through the outlines-core library, compiled in a process of their own."""
