// Trampolines to the C library's own functions: see real.hpp. x86-64.
        .text
        .hidden godwit_pthread_resolve

// Before it is known: by way of resolve, with the arguments of whatever is called kept.
resolve_first:                          // r11: where the address will be
        pushq   %rbp
        movq    %rsp, %rbp
        pushq   %rax
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        pushq   %r11
        andq    $-16, %rsp
        movq    %r11, %rdi
        call    godwit_pthread_resolve
        leaq    -64(%rbp), %rsp
        popq    %r11
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        popq    %rax
        popq    %rbp
        jmp     *(%r11)

// See thread.hpp. The frame is one that can be unwound: pthread_exit may be called in a handler on an
// alternate stack.
        .globl  godwit_pthread_call_on
        .hidden godwit_pthread_call_on
        .type   godwit_pthread_call_on, @function
        .p2align 4
godwit_pthread_call_on:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rdi
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        call    *%rsi
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   godwit_pthread_call_on, . - godwit_pthread_call_on

#define F(name)                          \
        .globl  __wrap_##name;           \
        .hidden __wrap_##name;           \
        .type   __wrap_##name, @function; \
        .p2align 4;                      \
__wrap_##name:                           \
        endbr64;                         \
        leaq    godwit_real_##name(%rip), %r11; \
        cmpq    $0, (%r11);              \
        je      resolve_first;           \
        jmp     *(%r11);                 \
        .size   __wrap_##name, . - __wrap_##name; \
        .pushsection .bss;               \
        .globl  godwit_real_##name;      \
        .hidden godwit_real_##name;      \
        .p2align 3;                      \
godwit_real_##name:                      \
        .zero   8;                       \
        .popsection;
#include "functions.def"

        .section .note.GNU-stack, "", @progbits
