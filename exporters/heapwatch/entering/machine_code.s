# The machine code of machine_code.py. Its test assembles this file and compares:
#   as machine_code.s -o code.o && objcopy -O binary -j .text code.o code.bin
.intel_syntax noprefix
# A table: a mark, the address of the requests, and the functions.
.quad 0
.quad 0
is_initialized: .quad 0
ensure: .quad 0
run_string: .quad 0
release: .quad 0
start_thread: .quad 0

# rbx: a frame, as `frame` makes it. Vector registers are saved but for what no called function changes.
call_function:
    mov eax, 0xe7
    xor edx, edx
    xsave64 [rbx+128]
call_again:
    mov rdi, [rbx+8]
    mov rsi, [rbx+16]
    mov rdx, [rbx+24]
    mov rcx, [rbx+32]
    mov r8, [rbx+40]
    mov r9, [rbx+48]
    xor eax, eax
    call [rbx]
    mov [rbx+56], rax
    mov eax, 39
gate:                     # getpid: here a tracer sees that the result is there
    syscall
restore:
    mov eax, 0xe7
    xor edx, edx
    xrstor64 [rbx+128]
    mov rsp, [rbx+64]
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rbp
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rbx
    pop rax
    popfq
    ret 128               # back, and over the red zone, in one instruction: a signal may come at any time

map_memory:               # mmap
    mov eax, 9
    mov r10, rcx
    syscall
    ret

# int queued(request): called by the interpreter.
queued:
    mov qword ptr [rdi+8], 0
# int begin(request): start a thread for it if one is wanted, and this is the process that it is for.
begin:
    push rbx
    mov rbx, rdi
    mov eax, 39
    syscall
    cmp rax, [rbx+24]
    jne 1f
    xor eax, eax
    xchg [rbx], rax
    test rax, rax
    jz 1f
    mov qword ptr [rbx+16], 1
    lea rdi, [rip+run]
    mov rsi, rbx
    call [rip+start_thread]
    cmp rax, -1
    jne 1f
    mov qword ptr [rbx+16], 0
1:  xor eax, eax
    pop rbx
    ret

# void run(request): the new thread, which runs the text unless the interpreter has ended.
run:
    push rbx
    push r12
    push rax
    mov rbx, rdi
    call [rip+is_initialized]
    test eax, eax
    jz 2f
    call [rip+ensure]
    mov r12d, eax
    lea rdi, [rbx+64]
    call [rip+run_string]
    mov edi, r12d
    call [rip+release]
2:  mov qword ptr [rbx+16], 0
    pop rax
    pop r12
    pop rbx
    ret
