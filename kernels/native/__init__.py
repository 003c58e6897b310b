"""The ops in C++ for CPUs: one library with kernels for several instruction sets."""
