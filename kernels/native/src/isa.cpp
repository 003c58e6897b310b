#include "isa.h"

namespace phloem {

namespace {

struct Candidate {
  const Kernels* (*kernels)();
  bool supported;
};

}  // namespace

const Kernels* find_kernels(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512vnni") &&
                    __builtin_cpu_supports("avx512bf16");
  const Candidate candidates[] = {{kernels_avx512_bf16, bf16},
                                  {kernels_avx512, avx512},
                                  {kernels_avx2, avx2},
                                  {kernels_portable, true}};
#else
  const Candidate candidates[] = {{kernels_portable, true}};
#endif
  for (const Candidate& c : candidates)
    if (c.supported && (name == "auto" || name == c.kernels()->name)) return c.kernels();
  return nullptr;
}

}  // namespace phloem
