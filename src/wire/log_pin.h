/*
 * What the files of the log's format share.
 */
#pragma once

/* gregs in the order of <sys/ucontext.h>: r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip efl csgsfs
 * err trapno oldmask cr2. */
enum { LOG_GREGS = 23, LOG_GREG_RSP = 15, LOG_GREG_RIP = 16, LOG_GREG_EFL = 17, LOG_GREG_CR2 = 22 };

#define LOG_PIN(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "bump LOG_VERSION")
