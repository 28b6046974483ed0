// fork_call for SPARC V9. Contract: fork_call.hpp, which includes this. Counterpart:
// src/context/switch_sparcv9.S, where the frames are drawn.
#pragma once

#include <godwit/detail/hot.hpp>

namespace godwit::detail {

// The slot holds the unbiased stack pointer S, the frame pointer and the resume address. Nothing is flushed
// here: that the windows of the parent's callers are in memory is the business of whoever makes the slot
// public (context::flush_windows).
//
// The call is made from 176 bytes below S: the parent's own window, should it be written to memory while the
// child runs, goes there, and so do the child's arguments, where it keeps them in memory. Both then belong to
// the child's bytes [.., S) and not to the parent's, which may be elsewhere by then. Unwinders do not mind:
// they go by %fp. What the parent needs of its window, %i7, is written into the window's place at S; the rest
// counts as destroyed.
template <child_fn* Child>
[[gnu::always_inline]] inline word_pair fork_call(std::uintptr_t a0, std::uintptr_t a1, spawn_slot* slot,
                                                  void* out) {
  hot_words* const hot_page = &hot();
  register std::uintptr_t o0 asm("o0") = a0;
  register std::uintptr_t o1 asm("o1") = a1;
  register spawn_slot* o2 asm("o2") = slot;
  register void* o3 asm("o3") = out;
  register hot_words* o4 asm("o4") = hot_page;
  asm volatile(
      "rd %%pc, %%g4\n"
      "5:\tadd %%sp, 2047, %%g1\n\t"
      "stx %%g1, [%%o2]\n\t"
      "stx %%fp, [%%o2+8]\n\t"
      "add %%g4, 4+2f-5b, %%g1\n\t"
      "stx %%g1, [%%o2+16]\n\t"
      "ldx [%%o4+%[stacks]], %%g1\n\t"
      "stx %%i7, [%%sp+2047+120]\n\t"
      "brnz,pn %%g1, 1f\n\t"
      " sub %%sp, 176, %%sp\n\t"
      "call %[child]\n\t"
      " nop\n\t"
      "ba,pt %%xcc, 2f\n\t"
      " add %%sp, 176, %%sp\n"
      "1:\tcall godwit_ctx_fork_on_stack\n\t"
      " add %%g4, 4+3f-5b, %%g5\n\t"
      "ba,pt %%xcc, 2f\n\t"
      " add %%sp, 176, %%sp\n"
      "3:\tmov %%o7, %%g1\n\t"  // the child's address, in reach of %g4
      "call %[child]\n\t"
      " mov %%g1, %%o7\n"
      "2:"
      : "+r"(o0), "+r"(o1), "+r"(o2), "+r"(o3), "+r"(o4)
      : [child] "i"(Child), [stacks] "i"(offsetof(hot_words, free_stacks))
      : "g1", "g2", "g3", "g4", "g5", "o5", "o7", "l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "i0", "i1",
        "i2", "i3", "i4", "i5", "icc", "fcc0", "fcc1", "fcc2", "fcc3", "memory", "f0", "f1", "f2", "f3", "f4",
        "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19",
        "f20", "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31", "f32", "f34",
        "f36", "f38", "f40", "f42", "f44", "f46", "f48", "f50", "f52", "f54", "f56", "f58", "f60", "f62");
  return {o0, o1};
}

}  // namespace godwit::detail
