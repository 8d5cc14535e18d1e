#include "agent/arch/vectors.h"

#include <cpuid.h>
#include <string.h>

/* The area that the kernel saves (Intel SDM volume 1, 13.4;
 * arch/x86/include/uapi/asm/sigcontext.h): 512 bytes as FXSAVE has them, whose end says what
 * follows; a header; then each state at a place of its own. */
#define XMM_AT 160u
#define MAGIC_AT 464u
#define SIZE_AT 480u
#define PRESENT_AT 512u
#define HIGH_HALVES_AT 576u /* of ymm0 to ymm15, on every CPU that has them */
#define MAGIC 0x46505853u

#define STATE_XMM (1u << 1)
#define STATE_YMM (1u << 2)
#define STATE_MASKS (1u << 5)
#define LEAF_STATES 0xdu

static uint32_t masks_at; /* 0: this CPU has none */

void arch_vectors_init(void)
{
	unsigned a, b, c, d;

	/* Of a state that the CPU does not have, the size is 0. */
	if (__get_cpuid_count(LEAF_STATES, 5, &a, &b, &c, &d) &&
	    a >= sizeof(((struct log_hit_vectors *)0)->masks))
		masks_at = b;
}

static uint32_t word_at(const unsigned char *area, uint32_t at)
{
	uint32_t word;

	memcpy(&word, area + at, sizeof(word));
	return word;
}

/* A register that nobody used since it was cleared is not in the area: it is 0. */
bool arch_vectors_sigsafe(const ucontext_t *context, struct log_hit_vectors *ret)
{
	const unsigned char *area = (const unsigned char *)context->uc_mcontext.fpregs;
	uint32_t present, size;
	unsigned i;

	memset(ret, 0, sizeof(*ret));
	if (!area || word_at(area, MAGIC_AT) != MAGIC)
		return false;
	present = word_at(area, PRESENT_AT);
	size = word_at(area, SIZE_AT);
	for (i = 0; present & STATE_XMM && i < LOG_HIT_VECTORS; i++)
		memcpy(ret->vectors[i], area + XMM_AT + i * 16, 16);
	for (i = 0; present & STATE_YMM && size >= HIGH_HALVES_AT + LOG_HIT_VECTORS * 16 &&
		    i < LOG_HIT_VECTORS;
	     i++)
		memcpy(ret->vectors[i] + 16, area + HIGH_HALVES_AT + i * 16, 16);
	if (present & STATE_MASKS && masks_at && size >= masks_at + sizeof(ret->masks))
		memcpy(ret->masks, area + masks_at, sizeof(ret->masks));
	return true;
}
