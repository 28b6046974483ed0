// Context switch for AArch64, AAPCS64. Contract: context.hpp.
//
// Frame of a suspended thread, 160 bytes from sp:   x29 x30 x19..x28 d8..d15
// Saved continuation of a fork_call:                sp, x29 and the resume address in the slot
// Resuming uses `ret xN`, which needs no bti landing pad.
#if defined(__aarch64__)

        .text

        .globl  godwit_ctx_resume_fork
        .type   godwit_ctx_resume_fork, %function
        .p2align 4
godwit_ctx_resume_fork:                 // x0 sp, x1 fp, x2 resume address, x3 status
        .cfi_startproc
        hint    #34                     // bti c
        mov     sp, x0
        mov     x29, x1
        mov     x0, x3
        ret     x2
        .cfi_endproc
        .size   godwit_ctx_resume_fork, .-godwit_ctx_resume_fork

        .globl  godwit_ctx_suspend
        .type   godwit_ctx_suspend, %function
        .p2align 4
godwit_ctx_suspend:                     // x0 new stack, x1 fn, x2 arg
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-160]!
        .cfi_def_cfa_offset 160
        .cfi_offset 29, -160
        .cfi_offset 30, -152
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x29, sp                 // lets unwinders find the suspended thread below fn
        .cfi_def_cfa 29, 160
        mov     x9, x1
        mov     x1, sp                  // fn's second argument
        mov     sp, x0
        mov     x0, x2
        blr     x9
        brk     #1                      // fn must not return
        .cfi_endproc
        .size   godwit_ctx_suspend, .-godwit_ctx_suspend

        .globl  godwit_ctx_resume_suspended
        .type   godwit_ctx_resume_suspended, %function
        .p2align 4
godwit_ctx_resume_suspended:            // x0 sp, x1 value
        .cfi_startproc
        hint    #34
        mov     sp, x0
        mov     x0, x1
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #160
        ret
        .cfi_endproc
        .size   godwit_ctx_resume_suspended, .-godwit_ctx_resume_suspended

        .globl  godwit_ctx_start
        .type   godwit_ctx_start, %function
        .p2align 4
godwit_ctx_start:                       // x0 new stack, x1 fn, x2 arg
        .cfi_startproc
        .cfi_undefined 30               // backtraces end here
        hint    #34
        and     x0, x0, #-16
        mov     sp, x0
        mov     x0, x2
        mov     x29, xzr
        blr     x1
        brk     #1
        .cfi_endproc
        .size   godwit_ctx_start, .-godwit_ctx_start

        .globl  godwit_ctx_call_on
        .type   godwit_ctx_call_on, %function
        .p2align 4
godwit_ctx_call_on:                     // x0 stack top, x1 fn, x2 arg
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        .cfi_offset 30, -8
        mov     x29, sp
        .cfi_def_cfa 29, 16
        mov     sp, x0
        mov     x0, x2
        blr     x1
        mov     sp, x29
        .cfi_def_cfa 31, 16
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   godwit_ctx_call_on, .-godwit_ctx_call_on

        // A new stack's top holds the address of the next unused one; while the child runs, the caller's
        // stack pointer, the return address and the hot words.
        .globl  godwit_ctx_fork_on_stack
        .type   godwit_ctx_fork_on_stack, %function
        .p2align 4
godwit_ctx_fork_on_stack:               // x0-x3 the child's arguments, x4 hot words, x9 the child
        .cfi_startproc
        hint    #34
1:      ldr     x10, [x4, #24]          // hot_words::free_stacks
        ldr     x11, [x10]
        cbz     x11, 2f
        str     x11, [x4, #24]
        mov     x12, sp
        stp     x12, x30, [x10]
        str     x4, [x10, #16]
        mov     sp, x10
        .cfi_escape 0x0f, 3, 0x8f, 0, 0x06      // CFA: *(sp)
        .cfi_escape 0x10, 30, 2, 0x8f, 8        // x30: at sp + 8
        blr     x9
        mov     x10, sp
        ldp     x12, x30, [x10]
        ldr     x4, [x10, #16]          // the same worker as above: the child found its parent here
        mov     sp, x12
        .cfi_def_cfa 31, 0
        .cfi_restore 30
        ldr     x11, [x4, #24]
        str     x11, [x10]
        str     x10, [x4, #24]
        ret
2:      stp     x0, x1, [sp, #-64]!     // the last one: fetch more first
        .cfi_def_cfa_offset 64
        stp     x2, x3, [sp, #16]
        stp     x4, x9, [sp, #32]
        str     x30, [sp, #48]
        .cfi_offset 30, -16
        bl      godwit_more_stacks
        ldp     x2, x3, [sp, #16]
        ldp     x4, x9, [sp, #32]
        ldr     x30, [sp, #48]
        .cfi_restore 30
        ldp     x0, x1, [sp], #64
        .cfi_def_cfa_offset 0
        b       1b
        .cfi_endproc
        .size   godwit_ctx_fork_on_stack, .-godwit_ctx_fork_on_stack

        .globl  godwit_ctx_thread_end
        .type   godwit_ctx_thread_end, %function
        .p2align 4
        .cfi_startproc
        .cfi_undefined 30
        nop
godwit_ctx_thread_end:
        hint    #34
        brk     #1
        .cfi_endproc
        .size   godwit_ctx_thread_end, .-godwit_ctx_thread_end

        .section .note.GNU-stack, "", %progbits
#endif
