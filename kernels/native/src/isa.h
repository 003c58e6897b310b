// Which instruction sets the library has, and which of them this processor runs.
#pragma once

#include <string_view>

#include "kernels.h"

namespace phloem {

// The kernels of that name, or the best ones for "auto"; null if they are not here or do not run.
const Kernels* find_kernels(std::string_view name);

}  // namespace phloem
