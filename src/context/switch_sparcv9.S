! Context switch for SPARC V9, 64-bit System V ABI. Contract: context.hpp. docs/protocols/context.md, "SPARC
! V9".
!
! A function's %l and %i registers are its window. Windows of callers stay in the CPU until they are pushed
! out, each into the 128 bytes at its own stack pointer; %sp and %fp are 2047 less than the addresses they
! mean (below: addresses). A minimal frame:
!
!   sp: | window: %l0..%l7 %i0..%i5 %fp(112) %i7(120) | room for 6 arguments of callees (128..175) | fp
!
! So a thread is in memory when its windows have been flushed. Every function here that leaves a stack
! flushes: afterwards no window of the stack it left is in the CPU, and none can be written there later, when
! the stack may be somebody else's; and the next `restore` takes the caller's window from the new stack. The
! kernel may write the current window to %sp at any instruction: so registers are loaded first and %sp is set
! last. %g7 is the thread pointer, and stays.
!
! Frame of a suspended thread, 176 bytes from sp:
!     the frame of godwit_ctx_suspend, of whose window %fp and %i7 count
! Saved continuation of a fork_call at address S:
!     S, %fp and the resume address in the slot, %i7 at S + 120; S - 176 .. S is the child's: the caller's
!     window, the child's arguments
! Under a fork_call whose child has its own stack:
!     a frame of godwit_ctx_fork_on_stack at the top of that stack
!
! GODWIT_SPARC_FLUSH_TRAP: the trap that V8 knows instead of the instruction flushw, for comparison.
#if defined(__sparc__) && defined(__arch64__)

#define BIAS 2047
#define FRAME 176
#if defined(GODWIT_SPARC_FLUSH_TRAP)
#define FLUSH ta 3
#else
#define FLUSH flushw
#endif
#define AFTER_SAVE .cfi_window_save; .cfi_register 15, 31; .cfi_def_cfa_register 30

        .register %g2, #scratch
        .register %g3, #scratch

        .text

        .globl  godwit_ctx_resume_fork
        .type   godwit_ctx_resume_fork, #function
        .align  32
godwit_ctx_resume_fork:                 ! %o0 sp, %o1 fp, %o2 resume address, %o3 status
        .cfi_startproc
        FLUSH
        ldx     [%o0 + 120], %i7        ! the caller's window becomes the thread's
        mov     %o1, %fp
        sub     %o0, BIAS, %sp
        jmp     %o2
         mov    %o3, %o0
        .cfi_endproc
        .size   godwit_ctx_resume_fork, .-godwit_ctx_resume_fork

        .globl  godwit_ctx_suspend
        .type   godwit_ctx_suspend, #function
        .align  32
godwit_ctx_suspend:                     ! %o0 new stack, %o1 fn, %o2 arg
        .cfi_startproc
        save    %sp, -FRAME, %sp
        AFTER_SAVE
        FLUSH
        stx     %fp, [%sp + BIAS + 112]
        stx     %i7, [%sp + BIAS + 120]
        add     %sp, BIAS, %o1          ! fn's second argument
        mov     %i2, %o0
        and     %i0, -16, %i0
        sub     %i0, BIAS + FRAME, %sp  ! from here on this window belongs to fn's stack
        call    %i1
         nop
        illtrap 1                       ! fn must not return
        .cfi_endproc
        .size   godwit_ctx_suspend, .-godwit_ctx_suspend

        .globl  godwit_ctx_resume_suspended
        .type   godwit_ctx_resume_suspended, #function
        .align  32
godwit_ctx_resume_suspended:            ! %o0 sp, %o1 value
        .cfi_startproc
        FLUSH
        ldx     [%o0 + 112], %fp        ! the caller's window becomes godwit_ctx_suspend's
        ldx     [%o0 + 120], %i7
        mov     %o1, %i0
        sub     %o0, BIAS, %sp
        ret
         restore
        .cfi_endproc
        .size   godwit_ctx_resume_suspended, .-godwit_ctx_resume_suspended

        .globl  godwit_ctx_start
        .type   godwit_ctx_start, #function
        .align  32
godwit_ctx_start:                       ! %o0 new stack, %o1 fn, %o2 arg
        .cfi_startproc
        .cfi_undefined 15               ! backtraces end here
        FLUSH
        mov     %o1, %g1
        and     %o0, -16, %g4
        mov     %o2, %o0
        clr     %i7
        clr     %fp
        sub     %g4, BIAS + FRAME, %sp
        call    %g1
         nop
        illtrap 1
        .cfi_endproc
        .size   godwit_ctx_start, .-godwit_ctx_start

        .globl  godwit_ctx_call_on
        .type   godwit_ctx_call_on, #function
        .align  32
godwit_ctx_call_on:                     ! %o0 stack top, %o1 fn, %o2 arg
        .cfi_startproc
        save    %sp, -FRAME, %sp
        AFTER_SAVE
        sub     %i0, BIAS + FRAME, %sp
        call    %i1
         mov    %i2, %o0
        ret
         restore
        .cfi_endproc
        .size   godwit_ctx_call_on, .-godwit_ctx_call_on

        ! A new stack's top holds the address of the next unused one; while the child runs, this function's
        ! frame lies below.
        .globl  godwit_ctx_fork_on_stack
        .type   godwit_ctx_fork_on_stack, #function
        .align  32
godwit_ctx_fork_on_stack:               ! %o0-%o3 the child's arguments, %o4 hot words, %g5 the child
        .cfi_startproc
        save    %sp, -FRAME, %sp
        AFTER_SAVE
        mov     %g5, %l2
1:      ldx     [%i4 + 24], %l0         ! hot_words::free_stacks
        ldx     [%l0], %l1
        brz,pn  %l1, 2f
         mov    %i0, %o0
        stx     %l1, [%i4 + 24]
        mov     %i1, %o1
        mov     %i2, %o2
        mov     %i3, %o3
        sub     %l0, BIAS + FRAME, %sp
        call    %l2
         nop
        ldx     [%i4 + 24], %l1         ! the same worker as above: the child found its parent here
        stx     %l1, [%l0]
        stx     %l0, [%i4 + 24]
        mov     %o0, %i0
        ret
         restore %o1, 0, %o1
2:      call    godwit_more_stacks      ! the last one: fetch more first
         nop
        ba,pt   %xcc, 1b
         nop
        .cfi_endproc
        .size   godwit_ctx_fork_on_stack, .-godwit_ctx_fork_on_stack

        .globl  godwit_ctx_thread_end
        .type   godwit_ctx_thread_end, #function
        .align  8
        .cfi_startproc
        .cfi_undefined 15
        nop
godwit_ctx_thread_end:
        illtrap 1
        .cfi_endproc
        .size   godwit_ctx_thread_end, .-godwit_ctx_thread_end

        .section .note.GNU-stack, "", @progbits
#endif
