// Compiled once for each instruction set, with PHLOEM_ISA naming it.
#include "../kernels.h"

#include "attention.h"
#include "gated.h"
#include "linear.h"
#include "rope.h"
#include "rows.h"
#include "sample.h"

#define PHLOEM_JOIN2(a, b) a##b
#define PHLOEM_JOIN(a, b) PHLOEM_JOIN2(a, b)
#define PHLOEM_TEXT2(a) #a
#define PHLOEM_TEXT(a) PHLOEM_TEXT2(a)

namespace phloem {

const Kernels* PHLOEM_JOIN(kernels_, PHLOEM_ISA)() {
  static constexpr Kernels table = {
      PHLOEM_TEXT(PHLOEM_ISA),
      PHLOEM_ISA::linear,
      PHLOEM_ISA::gated_linear,
      PHLOEM_ISA::convert,
      PHLOEM_ISA::norm,
      PHLOEM_ISA::add_rows,
      PHLOEM_ISA::gate,
      PHLOEM_ISA::embed,
      PHLOEM_ISA::softcap,
      PHLOEM_ISA::rope,
      PHLOEM_ISA::attention,
      PHLOEM_ISA::merge,
      PHLOEM_ISA::mask,
      PHLOEM_ISA::sample,
      PHLOEM_ISA::peak,
  };
  return &table;
}

}  // namespace phloem
