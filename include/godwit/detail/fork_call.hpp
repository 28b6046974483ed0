// fork_call: save the parent's continuation in a deque slot and call the child, in one statement.
//
// The contract (one implementation per architecture, selected below):
//   word_pair fork_call<Child>(a0, a1, slot, out)
//     * stores stack pointer, frame pointer and one more word into *slot;
//     * calls Child(a0, a1, slot, out) as an ordinary function: below the caller's frames, or, where
//       hot_words::free_stacks says so, on a stack of its own, by way of godwit_ctx_fork_on_stack;
//     * comes back either because the child returned (its two result words), or because some worker
//       resumed the saved continuation: then .status is the location of the join record, never 0.
//   Every other register counts as destroyed, so the compiler itself keeps what it needs in the frame
//   -- and only that. The stack pointer does not move inside the statement, so unwind tables stay true.
//   The function that fork_call is inlined into must contain a real call too, else it could be a
//   leaf whose red zone or unaligned stack the hidden call would break: spawn() makes one (resumed()).
// Resuming uses a return instruction, so neither an endbr64 nor a bti landing pad is needed here.
// Counterpart: src/context/switch_*.S (godwit_ctx_resume_fork). See docs/protocols/context.md.
#pragma once

#include <godwit/detail/hot.hpp>

namespace godwit::detail {

/// What a child thunk hands back to its unstolen parent.
struct word_pair {
  std::uintptr_t status;  ///< 0: the value is there. Otherwise the location of a join record
  std::uintptr_t value;   ///< the result, where it fits into a register
};

using child_fn = word_pair(std::uintptr_t, std::uintptr_t, spawn_slot*, void*) noexcept;

// baselines, chosen with CMake's GODWIT_CONTEXT
#if defined(GODWIT_CONTEXT_UCONTEXT) || defined(GODWIT_CONTEXT_SETJMP)
#define GODWIT_CONTEXT_PORTABLE 1
#elif defined(__x86_64__)

// Registers that only some processors have. Also for context::switch_to.
#if defined(__AVX512F__)
#define GODWIT_CLOBBER_VECTOR_EXT                                                                      \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", \
      "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define GODWIT_CLOBBER_VECTOR_EXT
#endif
#if defined(__APX_F__)
#define GODWIT_CLOBBER_APX                                                                                   \
  , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", \
      "r31"
#else
#define GODWIT_CLOBBER_APX
#endif

// The third word is rbx: clang may use it as a base pointer, which a clobber could not protect.
// The resume address needs no store: the call leaves it just below the saved stack pointer.
template <child_fn* Child>
[[gnu::always_inline]] inline word_pair fork_call(std::uintptr_t a0, std::uintptr_t a1, spawn_slot* slot,
                                                  void* out) {
  std::uintptr_t status;
  asm volatile(
      "movq %%rsp, (%[slot])\n\t"
      "movq %%rbp, 8(%[slot])\n\t"
      "movq %%rbx, 16(%[slot])\n\t"
      "cmpq $0, %%gs:%c[stacks]\n\t"
      "jne 1f\n\t"
      "call %P[child]\n\t"
      "jmp 2f\n"
      "1:\tleaq %P[child](%%rip), %%rax\n\t"
      "call *godwit_ctx_fork_on_stack@GOTPCREL(%%rip)\n"
      "2:"
      : "=a"(status), "+D"(a0), "+S"(a1), [slot] "+d"(slot), "+c"(out)
      : [child] "i"(Child), [stacks] "i"(offsetof(hot_words, free_stacks))
      : "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",
        "st(7)" GODWIT_CLOBBER_VECTOR_EXT GODWIT_CLOBBER_APX);
  return {status, reinterpret_cast<std::uintptr_t>(slot)};
}

#elif defined(__aarch64__)

#if defined(__ARM_FEATURE_SVE)
#define GODWIT_CLOBBER_SVE \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#else
#define GODWIT_CLOBBER_SVE
#endif

// The third word is the resume address: a call leaves it in a register here, not in memory.
template <child_fn* Child>
[[gnu::always_inline]] inline word_pair fork_call(std::uintptr_t a0, std::uintptr_t a1, spawn_slot* slot,
                                                  void* out) {
  register std::uintptr_t x0 asm("x0") = a0;
  register std::uintptr_t x1 asm("x1") = a1;
  register spawn_slot* x2 asm("x2") = slot;
  register void* x3 asm("x3") = out;
  register hot_words* x4 asm("x4") = &hot();
  asm volatile(
      "mov x9, sp\n\t"
      "adr x10, 2f\n\t"
      "stp x9, x29, [%[slot]]\n\t"
      "str x10, [%[slot], #16]\n\t"
      "ldr x11, [x4, %[stacks]]\n\t"
      "cbnz x11, 1f\n\t"
      "bl %c[child]\n\t"
      "b 2f\n"
      "1:\tadrp x9, %c[child]\n\t"
      "add x9, x9, #:lo12:%c[child]\n\t"
      "bl godwit_ctx_fork_on_stack\n"
      "2:"
      : "+r"(x0), "+r"(x1), [slot] "+r"(x2), "+r"(x3), "+r"(x4)
      : [child] "S"(Child), [stacks] "i"(offsetof(hot_words, free_stacks))
      : "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "cc", "memory", "v0", "v1",
        "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
        "v31" GODWIT_CLOBBER_SVE);
  return {x0, x1};
}

#undef GODWIT_CLOBBER_SVE

// in headers of their own, below
#elif (defined(__riscv) && __riscv_xlen == 64) || (defined(__sparc__) && defined(__arch64__))
#else
#error \
    "godwit has no context switch for this architecture yet: add fork_call here and src/context/switch_ARCH.S"
#endif

}  // namespace godwit::detail

#if defined(GODWIT_CONTEXT_PORTABLE)
#include <godwit/detail/fork_call_portable.hpp>
#elif defined(__riscv)
#include <godwit/detail/fork_call_riscv64.hpp>
#elif defined(__sparc__)
#include <godwit/detail/fork_call_sparcv9.hpp>
#endif
