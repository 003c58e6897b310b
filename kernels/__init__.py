"""One set of ops with several implementations; ``ops.py`` names and documents each op."""
