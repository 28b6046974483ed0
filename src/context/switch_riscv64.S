// Context switch for RISC-V 64, LP64D (or LP64). Contract: context.hpp.
//
// Frame of a suspended thread, from sp:             ra s0..s11 (padding) fs0..fs11    208 bytes; 112 without
//                                                   floating-point registers
// Saved continuation of a fork_call:                sp, s0 and the resume address in the slot
// Under a fork_call whose child has its own stack:  the child's stack ends in  caller's sp, ra, hot words
#if defined(__riscv) && __riscv_xlen == 64

#if defined(__riscv_float_abi_double)
#define FRAME 208
#else
#define FRAME 112
#endif

        .text

        .globl  godwit_ctx_resume_fork
        .type   godwit_ctx_resume_fork, @function
        .p2align 2
godwit_ctx_resume_fork:                 // a0 sp, a1 fp, a2 resume address, a3 status
        .cfi_startproc
        mv      sp, a0
        mv      s0, a1
        mv      a0, a3
        jr      a2
        .cfi_endproc
        .size   godwit_ctx_resume_fork, .-godwit_ctx_resume_fork

        .globl  godwit_ctx_suspend
        .type   godwit_ctx_suspend, @function
        .p2align 2
godwit_ctx_suspend:                     // a0 new stack, a1 fn, a2 arg
        .cfi_startproc
        addi    sp, sp, -FRAME
        .cfi_def_cfa_offset FRAME
        sd      ra, 0(sp)
        .cfi_offset ra, 0-FRAME
        sd      s0, 8(sp)
        .cfi_offset s0, 8-FRAME
        sd      s1, 16(sp)
        sd      s2, 24(sp)
        sd      s3, 32(sp)
        sd      s4, 40(sp)
        sd      s5, 48(sp)
        sd      s6, 56(sp)
        sd      s7, 64(sp)
        sd      s8, 72(sp)
        sd      s9, 80(sp)
        sd      s10, 88(sp)
        sd      s11, 96(sp)
#if defined(__riscv_float_abi_double)
        fsd     fs0, 112(sp)
        fsd     fs1, 120(sp)
        fsd     fs2, 128(sp)
        fsd     fs3, 136(sp)
        fsd     fs4, 144(sp)
        fsd     fs5, 152(sp)
        fsd     fs6, 160(sp)
        fsd     fs7, 168(sp)
        fsd     fs8, 176(sp)
        fsd     fs9, 184(sp)
        fsd     fs10, 192(sp)
        fsd     fs11, 200(sp)
#endif
        mv      s0, sp                  // lets unwinders find the suspended thread below fn
        .cfi_def_cfa s0, FRAME
        mv      t0, a1
        mv      a1, sp                  // fn's second argument
        mv      sp, a0
        mv      a0, a2
        jalr    t0
        ebreak                          // fn must not return
        .cfi_endproc
        .size   godwit_ctx_suspend, .-godwit_ctx_suspend

        .globl  godwit_ctx_resume_suspended
        .type   godwit_ctx_resume_suspended, @function
        .p2align 2
godwit_ctx_resume_suspended:            // a0 sp, a1 value
        .cfi_startproc
        mv      sp, a0
        mv      a0, a1
        ld      ra, 0(sp)
        ld      s0, 8(sp)
        ld      s1, 16(sp)
        ld      s2, 24(sp)
        ld      s3, 32(sp)
        ld      s4, 40(sp)
        ld      s5, 48(sp)
        ld      s6, 56(sp)
        ld      s7, 64(sp)
        ld      s8, 72(sp)
        ld      s9, 80(sp)
        ld      s10, 88(sp)
        ld      s11, 96(sp)
#if defined(__riscv_float_abi_double)
        fld     fs0, 112(sp)
        fld     fs1, 120(sp)
        fld     fs2, 128(sp)
        fld     fs3, 136(sp)
        fld     fs4, 144(sp)
        fld     fs5, 152(sp)
        fld     fs6, 160(sp)
        fld     fs7, 168(sp)
        fld     fs8, 176(sp)
        fld     fs9, 184(sp)
        fld     fs10, 192(sp)
        fld     fs11, 200(sp)
#endif
        addi    sp, sp, FRAME
        ret
        .cfi_endproc
        .size   godwit_ctx_resume_suspended, .-godwit_ctx_resume_suspended

        .globl  godwit_ctx_start
        .type   godwit_ctx_start, @function
        .p2align 2
godwit_ctx_start:                       // a0 new stack, a1 fn, a2 arg
        .cfi_startproc
        .cfi_undefined ra               // backtraces end here
        andi    sp, a0, -16
        mv      a0, a2
        li      s0, 0
        jalr    a1
        ebreak
        .cfi_endproc
        .size   godwit_ctx_start, .-godwit_ctx_start

        .globl  godwit_ctx_call_on
        .type   godwit_ctx_call_on, @function
        .p2align 2
godwit_ctx_call_on:                     // a0 stack top, a1 fn, a2 arg
        .cfi_startproc
        addi    sp, sp, -16
        .cfi_def_cfa_offset 16
        sd      ra, 8(sp)
        .cfi_offset ra, -8
        sd      s0, 0(sp)
        .cfi_offset s0, -16
        mv      s0, sp
        .cfi_def_cfa s0, 16
        mv      sp, a0
        mv      a0, a2
        jalr    a1
        mv      sp, s0
        .cfi_def_cfa sp, 16
        ld      ra, 8(sp)
        .cfi_restore ra
        ld      s0, 0(sp)
        .cfi_restore s0
        addi    sp, sp, 16
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   godwit_ctx_call_on, .-godwit_ctx_call_on

        // A new stack's top holds the address of the next unused one; while the child runs, the caller's
        // stack pointer, the return address and the hot words.
        .globl  godwit_ctx_fork_on_stack
        .type   godwit_ctx_fork_on_stack, @function
        .p2align 2
godwit_ctx_fork_on_stack:               // a0-a3 the child's arguments, a4 hot words, t0 the child
        .cfi_startproc
1:      ld      t1, 24(a4)              // hot_words::free_stacks
        ld      t2, 0(t1)
        beqz    t2, 2f
        sd      t2, 24(a4)
        sd      sp, 0(t1)
        sd      ra, 8(t1)
        sd      a4, 16(t1)
        mv      sp, t1
        .cfi_escape 0x0f, 3, 0x72, 0, 0x06      // CFA: *(sp)
        .cfi_escape 0x10, 1, 2, 0x72, 8         // ra: at sp + 8
        jalr    t0
        mv      t1, sp
        ld      t2, 0(t1)
        ld      ra, 8(t1)
        ld      a4, 16(t1)              // the same worker as above: the child found its parent here
        mv      sp, t2
        .cfi_def_cfa sp, 0
        .cfi_restore ra
        ld      t2, 24(a4)
        sd      t2, 0(t1)
        sd      t1, 24(a4)
        ret
2:      addi    sp, sp, -64             // the last one: fetch more first
        .cfi_def_cfa_offset 64
        sd      a0, 0(sp)
        sd      a1, 8(sp)
        sd      a2, 16(sp)
        sd      a3, 24(sp)
        sd      a4, 32(sp)
        sd      t0, 40(sp)
        sd      ra, 48(sp)
        .cfi_offset ra, -16
        call    godwit_more_stacks@plt
        ld      a0, 0(sp)
        ld      a1, 8(sp)
        ld      a2, 16(sp)
        ld      a3, 24(sp)
        ld      a4, 32(sp)
        ld      t0, 40(sp)
        ld      ra, 48(sp)
        .cfi_restore ra
        addi    sp, sp, 64
        .cfi_def_cfa_offset 0
        j       1b
        .cfi_endproc
        .size   godwit_ctx_fork_on_stack, .-godwit_ctx_fork_on_stack

        .globl  godwit_ctx_thread_end
        .type   godwit_ctx_thread_end, @function
        .p2align 2
        .cfi_startproc
        .cfi_undefined ra
        nop
godwit_ctx_thread_end:
        ebreak
        .cfi_endproc
        .size   godwit_ctx_thread_end, .-godwit_ctx_thread_end

        .section .note.GNU-stack, "", @progbits
#endif
