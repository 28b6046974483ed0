// Context switch for x86-64, System V. Contract: context.hpp.
//
// Frame of a suspended thread, from sp upwards:   r15 r14 r13 r12 rbx rbp | return address
// Saved continuation of a fork_call:              [sp-8] return address; rbp and rbx in the slot
//
// Resuming ends in `ret`, not in an indirect jump: no landing pad is needed under indirect branch tracking,
// and one mispredicted return is nothing beside the copy of a stack. With shadow stacks a migrated return
// address cannot match, so this file does not claim SHSTK: the linker then leaves it off for the program.
// MXCSR and the x87 control word are not touched here; see docs/protocols/context.md.
#if defined(__x86_64__)

        .text

        .globl  godwit_ctx_resume_fork
        .type   godwit_ctx_resume_fork, @function
        .p2align 4
godwit_ctx_resume_fork:                 // rdi sp, rsi fp, rdx extra (rbx), rcx status
        .cfi_startproc
        endbr64
        leaq    -8(%rdi), %rsp
        movq    %rsi, %rbp
        movq    %rdx, %rbx
        movq    %rcx, %rax
        ret
        .cfi_endproc
        .size   godwit_ctx_resume_fork, .-godwit_ctx_resume_fork

        .globl  godwit_ctx_suspend
        .type   godwit_ctx_suspend, @function
        .p2align 4
godwit_ctx_suspend:                     // rdi new stack, rsi fn, rdx arg
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        movq    %rsi, %rax
        movq    %rsp, %rsi              // fn's second argument
        movq    %rsp, %rbp              // lets unwinders find the suspended thread below fn
        .cfi_def_cfa %rbp, 56
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        // A call in all but name: one that never returns would leave the processor's stack of return
        // addresses out of step with ours.
        leaq    1f(%rip), %rcx
        pushq   %rcx
        jmp     *%rax
1:      ud2                             // fn must not return
        .cfi_endproc
        .size   godwit_ctx_suspend, .-godwit_ctx_suspend

        .globl  godwit_ctx_resume_suspended
        .type   godwit_ctx_resume_suspended, @function
        .p2align 4
godwit_ctx_resume_suspended:            // rdi sp, rsi value
        .cfi_startproc
        endbr64
        movq    %rsi, %rax
        movq    %rdi, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .cfi_endproc
        .size   godwit_ctx_resume_suspended, .-godwit_ctx_resume_suspended

        // The frame of a suspended thread; the registers that the caller does not need are not written.
        .globl  godwit_ctx_switch
        .type   godwit_ctx_switch, @function
        .p2align 4
godwit_ctx_switch:                      // rdi where the own sp goes, rsi the other's, rdx lock
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        subq    $32, %rsp
        .cfi_adjust_cfa_offset 32
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        movq    $0, (%rdx)              // from here on the own thread is whoever's takes it
        xorl    %eax, %eax
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   godwit_ctx_switch, .-godwit_ctx_switch

        .globl  godwit_ctx_start
        .type   godwit_ctx_start, @function
        .p2align 4
godwit_ctx_start:                       // rdi new stack, rsi fn, rdx arg
        .cfi_startproc
        .cfi_undefined %rip             // backtraces end here
        endbr64
        andq    $-16, %rdi
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        xorl    %ebp, %ebp
        call    *%rsi
        ud2
        .cfi_endproc
        .size   godwit_ctx_start, .-godwit_ctx_start

        .globl  godwit_ctx_call_on
        .type   godwit_ctx_call_on, @function
        .p2align 4
godwit_ctx_call_on:                     // rdi stack top, rsi fn, rdx arg
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        movq    %rsp, %rbp
        .cfi_def_cfa %rbp, 16
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        call    *%rsi
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   godwit_ctx_call_on, .-godwit_ctx_call_on

        // A new stack's top holds the address of the next unused one, and, while the child runs, the caller's
        // stack pointer. The child keeps that in r12, too, which fork_call counts as destroyed: then to come
        // back waits for no load.
        .globl  godwit_ctx_fork_on_stack
        .type   godwit_ctx_fork_on_stack, @function
        .p2align 4
godwit_ctx_fork_on_stack:               // rdi, rsi, rdx, rcx: the child's arguments, rax the child
        .cfi_startproc
        endbr64
1:      movq    %gs:24, %r9             // hot_words::free_stacks
        movq    (%r9), %r10
        testq   %r10, %r10
        jz      2f
        movq    %r10, %gs:24
        movq    %rsp, (%r9)
        movq    %rsp, %r12
        .cfi_def_cfa %r12, 8
        movq    %r9, %rsp
        call    *%rax
        movq    %rsp, %r9
        movq    %r12, %rsp
        .cfi_def_cfa %rsp, 8
        movq    %gs:24, %r10            // the same worker as above: the child found its parent here
        movq    %r10, (%r9)
        movq    %r9, %gs:24
        ret
2:      pushq   %rax                    // the last one: fetch more first
        .cfi_adjust_cfa_offset 8
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        pushq   %rcx
        .cfi_adjust_cfa_offset 8
        call    godwit_more_stacks@PLT
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        popq    %rax
        .cfi_adjust_cfa_offset -8
        jmp     1b
        .cfi_endproc
        .size   godwit_ctx_fork_on_stack, .-godwit_ctx_fork_on_stack

        // One byte in front, so that "return address - 1" is inside as well.
        .globl  godwit_ctx_thread_end
        .type   godwit_ctx_thread_end, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined %rip
        nop
godwit_ctx_thread_end:
        endbr64
        ud2
        .cfi_endproc
        .size   godwit_ctx_thread_end, .-godwit_ctx_thread_end

        .section .note.GNU-stack, "", @progbits

        // IBT: yes. SHSTK: no.
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4                       // name size
        .long   16                      // descriptor size
        .long   5                       // NT_GNU_PROPERTY_TYPE_0
        .asciz  "GNU"
        .long   0xc0000002              // GNU_PROPERTY_X86_FEATURE_1_AND
        .long   4
        .long   1                       // GNU_PROPERTY_X86_FEATURE_1_IBT
        .long   0
#endif
