"""Phloem: structured generation and prefix caching for language models."""
