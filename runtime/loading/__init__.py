"""Weights and configs of local model files, under Hugging Face names."""
