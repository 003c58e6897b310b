"""The real scheduler, memory and radix tree over a cost model, driven by traces."""
