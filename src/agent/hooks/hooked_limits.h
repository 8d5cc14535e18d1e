/*
 * Numbers that stub.c, hooked.c, builtin_malloc.c and their assembly share.
 */
#pragma once

#define HOOKED_VECTOR_BYTES 2816 /* XSAVE area of SSE, AVX and AVX-512 */
/* enum plan_own: these return nothing, and so do all from the second on. */
#define HOOKED_OWN_FREE 1
#define HOOKED_OWN_GIVE 20
#define HOOKED_TAILS 256
#define HOOKED_TAIL_BYTES 64 /* of code, each */
