// The machine's limits, for those who measure how near the kernels come to them.
#pragma once

#include "kernels.h"
#include "pool.h"

namespace phloem {

// Bytes a second that all threads together read from a buffer much larger than the caches.
double read_bandwidth(Pool& pool);

// Multiply-adds of 8-bit integers a second, of all threads together, without touching memory.
double int8_peak(Pool& pool, const Kernels& kernels);

}  // namespace phloem
