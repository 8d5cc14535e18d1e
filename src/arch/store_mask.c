/* Which bytes of a vector a masked store wrote. */
#include "arch/store_inside.h"

#define ELEMENTS_MAX 64u

static bool signs_of(const struct store_mask *mask, const struct mask_registers *registers,
		     uint64_t *ret)
{
	int n = mask->register_number - VECTOR_REGISTER;

	if (n < 0 || n >= (int)(sizeof(registers->vectors) / sizeof(registers->vectors[0])) ||
	    mask->count * mask->element > sizeof(registers->vectors[0]))
		return false;
	*ret = 0;
	for (unsigned int i = 0; i < mask->count; i++)
		if (registers->vectors[n][(i + 1) * mask->element - 1] & 0x80)
			*ret |= UINT64_C(1) << i;
	return true;
}

/* A bit per element that was stored. */
static bool elements_of(const struct store_mask *mask, const struct mask_registers *registers,
			uint64_t *ret)
{
	uint64_t all = mask->count >= 64 ? UINT64_MAX : (UINT64_C(1) << mask->count) - 1;
	int bits;

	if (mask->count == 0 || mask->count > ELEMENTS_MAX)
		return false;
	if (mask->kind == MASK_SIGNS)
		return signs_of(mask, registers, ret);
	*ret = registers->masks[mask->register_number] & all;
	if (mask->kind == MASK_FRONT) {
		bits = __builtin_popcountll(*ret);
		*ret = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	}
	return true;
}

void writer_mask(const struct trap *trap, struct writer *writer)
{
	const struct store_mask *mask = &writer->store.mask;
	uint64_t elements = 0, start = writer->low;

	if (mask->kind == MASK_NONE || writer->low == writer->high || !trap->masks ||
	    !elements_of(mask, trap->masks, &elements))
		return;
	writer->mask_known = true;
	writer->written = (unsigned int)__builtin_popcountll(elements) * mask->element;
	if (elements != 0) {
		writer->low = start + (uint64_t)__builtin_ctzll(elements) * mask->element;
		writer->high = start + (uint64_t)(64 - __builtin_clzll(elements)) * mask->element;
	}
	/* Elements in between may have been left out: the watched bytes among them. */
	writer->covers = false;
	for (unsigned int i = 0; i < mask->count; i++)
		if (elements >> i & 1 && start + (uint64_t)i * mask->element < trap->high &&
		    trap->low < start + (uint64_t)(i + 1) * mask->element)
			writer->covers = true;
}

/* The vector whose elements' top bits say which are stored. */
static const ZydisDecodedOperand *sign_operand(const struct decoded *d)
{
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return &d->operands[1];
	default:
		return NULL;
	}
}

static unsigned int sign_bytes(const struct decoded *d)
{
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
		return 1;
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return 8;
	default:
		return 4;
	}
}

void store_mask_take(const struct decoded *d, const ZydisDecodedOperand *to, struct store_mask *ret)
{
	const ZydisDecodedOperand *signs = sign_operand(d);
	ZydisRegister k = d->instruction.avx.mask.reg;

	if (signs && signs->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		*ret = (struct store_mask){ .kind = MASK_SIGNS,
					    .register_number = register_number(signs->reg.value),
					    .element = sign_bytes(d) };
		ret->count = signs->size / 8u / ret->element;
		return;
	}
	if (k < ZYDIS_REGISTER_K0 || k > ZYDIS_REGISTER_K7 || to->element_size < 8)
		return;
	*ret = (struct store_mask){
		.kind = d->instruction.meta.category == ZYDIS_CATEGORY_COMPRESS ? MASK_FRONT
										: MASK_BITS,
		.register_number = (int)(k - ZYDIS_REGISTER_K0),
		.element = to->element_size / 8u,
		.count = to->element_count,
	};
}
