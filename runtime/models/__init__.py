"""Model definitions on ``phloem.kernels`` ops."""
