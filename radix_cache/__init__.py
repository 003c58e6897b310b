"""Radix tree over tokens, page allocator and KV pool; stands alone."""
