#include "arch/arch.h"

#include <string.h>

#ifdef __x86_64__
extern const struct arch arch_x86_64;
#endif

const struct arch *arch_native(void)
{
#ifdef __x86_64__
	return &arch_x86_64;
#else
#error "redhand does not know this CPU yet: see the list at the top of arch.h"
#endif
}

const char *arch_register_name(const struct arch *arch, unsigned int reg)
{
	return reg < arch->register_count ? arch->register_names[reg] : NULL;
}

int arch_register_find(const struct arch *arch, const char *name)
{
	for (unsigned int i = 0; i < arch->register_count; i++)
		if (strcmp(arch->register_names[i], name) == 0)
			return (int)i;
	return -1;
}

void arch_registers_from_saved(const struct arch *arch, const uint64_t *saved, size_t count,
			       struct registers *ret)
{
	for (unsigned int reg = 0; reg < arch->register_count; reg++) {
		int index = arch->saved_index(reg);

		if (index < 0 || (size_t)index >= count)
			continue;
		ret->value[reg] = saved[index];
		ret->known |= 1u << reg;
	}
}
