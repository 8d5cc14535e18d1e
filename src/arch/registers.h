#pragma once

/*
 * Numbers of registers beyond those of arch.h: vector register N is VECTOR_REGISTER + N (xmm, ymm
 * and zmm alike), which no struct registers holds.
 */
#define NO_REGISTER (-1)
#define VECTOR_REGISTER 64

#define INSTRUCTION_TEXT 96 /* bytes of an instruction in words, with its NUL */
