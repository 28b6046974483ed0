// Policy lazy: where children return whose parents may have left, and how those parents go on elsewhere.
// Contract: lazy.hpp; docs/protocols/lazy.md.
//
// The stub stands in for the return address of a call that was found on the stack. When the child comes back
// there, the registers are those that the parent has at its call, and the stack pointer is the slot's.
#if defined(__x86_64__)

        .text
        .globl  godwit_lazy_begin, godwit_lazy_end
        .p2align 4
godwit_lazy_begin:

        .globl  godwit_lazy_stub, godwit_lazy_stub_by_address
        .type   godwit_lazy_stub, @function
        .cfi_startproc
        .cfi_undefined %rip                     // for backtraces the stack ends here
        .cfi_personality 0x9b, godwit_lazy_personality_at
        .cfi_lsda 0x1b, godwit_lazy_handlers
        nop                                     // "return address - 1" is inside as well
godwit_lazy_stub_by_address:
        movq    %rdx, %rsi                      // what gives away the result that rax points to
        jmp     1f
        nop
godwit_lazy_stub:
        xorl    %esi, %esi
1:      pushq   %rdx                            // the result: two words
        pushq   %rax
        movq    %rax, %rdi
        call    godwit_lazy_returned@PLT        // comes back if the parent is here: rax the spawn's
        testq   %rdx, %rdx                      // return address, rdx what it is to throw
        jnz     2f
        movq    %rax, %rcx
        popq    %rax
        popq    %rdx
        pushq   %rcx
        ret
2:      addq    $16, %rsp
        jmp     3f

        .globl  godwit_lazy_threw
        .hidden godwit_lazy_threw
godwit_lazy_threw:                              // rax: the exception. By godwit_lazy_personality
        endbr64
        movq    %rax, %rdi
        call    godwit_lazy_caught@PLT          // likewise: rdx is the error
3:      movq    %rdx, %rdi
        pushq   %rax
        jmp     godwit_lazy_throw@PLT           // as if the spawn had called it
        .cfi_endproc
        .size   godwit_lazy_stub, .-godwit_lazy_stub

        .globl  godwit_lazy_enter
        .type   godwit_lazy_enter, @function
        .p2align 4
godwit_lazy_enter:
        .cfi_startproc
        .cfi_undefined %rip
        endbr64
        popq    %rdi
        jmp     godwit_lazy_throw@PLT           // likewise
        .cfi_endproc
        .size   godwit_lazy_enter, .-godwit_lazy_enter
        nop
godwit_lazy_end:

        .section .data.rel.local, "aw", @progbits
        .p2align 3
godwit_lazy_personality_at:
        .quad   godwit_lazy_personality
        .section .gcc_except_table, "a", @progbits
godwit_lazy_handlers:
        .byte   0xff, 0xff, 1, 0                // empty: the personality knows all there is

        .section .note.GNU-stack, "", @progbits

        // IBT: yes. SHSTK: no.
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4
        .long   16
        .long   5
        .asciz  "GNU"
        .long   0xc0000002
        .long   4
        .long   1
        .long   0
#endif
