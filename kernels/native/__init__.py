"""The ops in C++ for CPUs: one library, kernels for several instruction sets, chosen at run time."""
