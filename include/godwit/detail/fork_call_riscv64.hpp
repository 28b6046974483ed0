// fork_call for RISC-V 64 (LP64D). Contract: fork_call.hpp, which includes this. Counterpart:
// src/context/switch_riscv64.S.
#pragma once

#include <godwit/detail/hot.hpp>

namespace godwit::detail {

#if defined(__riscv_vector)
#define GODWIT_CLOBBER_RVV                                                                                \
  , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", \
      "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",   \
      "v30", "v31", "vl", "vtype"
#else
#define GODWIT_CLOBBER_RVV
#endif

// The third word is the resume address: a call leaves it in a register here, not in memory. s0 is the frame
// pointer where there is one, which a clobber could not protect: it goes into the slot.
template <child_fn* Child>
[[gnu::always_inline]] inline word_pair fork_call(std::uintptr_t a0, std::uintptr_t a1, spawn_slot* slot,
                                                  void* out) {
  register std::uintptr_t r0 asm("a0") = a0;
  register std::uintptr_t r1 asm("a1") = a1;
  register spawn_slot* r2 asm("a2") = slot;
  register void* r3 asm("a3") = out;
  register hot_words* r4 asm("a4") = &hot();
  asm volatile(
      "lla t0, 2f\n\t"
      "sd sp, 0(a2)\n\t"
      "sd s0, 8(a2)\n\t"
      "sd t0, 16(a2)\n\t"
      "ld t1, %[stacks](a4)\n\t"
      "bnez t1, 1f\n\t"
      "call %[child]\n\t"
      "j 2f\n"
      "1:\tlla t0, %[child]\n\t"
      "call godwit_ctx_fork_on_stack\n"
      "2:"
      : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4)
      : [child] "S"(Child), [stacks] "i"(offsetof(hot_words, free_stacks))
      : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a5", "a6", "a7", "s1", "s2", "s3", "s4", "s5", "s6",
        "s7", "s8", "s9", "s10", "s11", "memory", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7",
        "ft8", "ft9", "ft10", "ft11", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1",
        "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11" GODWIT_CLOBBER_RVV);
  return {r0, r1};
}

#undef GODWIT_CLOBBER_RVV

}  // namespace godwit::detail
