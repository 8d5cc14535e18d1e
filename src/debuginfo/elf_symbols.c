#include "debuginfo/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "base/vec.h"

struct symbol {
	uint64_t start;
	uint64_t end;
	const char *name; /* libelf's */
	uint8_t rank;	  /* higher is better among symbols at one address */
	uint8_t type;	  /* STT_… */
	bool code;
};

struct elf_symbols {
	VEC(struct symbol) all; /* ascending by start, then rank, then plainness of the name */
	uint64_t longest;	/* no symbol is longer: bounds the search for an enclosing one */
};

static unsigned int leading_underscores(const char *name)
{
	return (unsigned int)strspn(name, "_");
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return ORDER(x->start, y->start)
		       ?: ORDER(x->rank, y->rank)
		       ?: ORDER(leading_underscores(y->name), leading_underscores(x->name))
		       ?: ORDER(strlen(y->name), strlen(x->name)) ?: strcmp(x->name, y->name);
}

static uint8_t rank_of(const GElf_Sym *sym)
{
	uint8_t rank = 0;

	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
	case STB_WEAK: /* as public as the others; only the linker makes a difference */
		rank = 4;
		break;
	}
	if (sym->st_size > 0)
		rank += 8;
	return rank + (GELF_ST_TYPE(sym->st_info) != STT_NOTYPE);
}

/* The end of the section that a symbol without size lies in, or the symbol itself. */
static uint64_t section_end(Elf *elf, GElf_Word shndx, const GElf_Sym *sym, uint64_t address)
{
	Elf_Scn *scn = elf && shndx < SHN_LORESERVE ? elf_getscn(elf, shndx) : NULL;
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || sym->st_value < shdr.sh_addr ||
	    sym->st_value - shdr.sh_addr >= shdr.sh_size)
		return address;
	return address + (shdr.sh_size - (sym->st_value - shdr.sh_addr));
}

static void symbols_add(struct elf_symbols *symbols, struct Dwfl_Module *mod, int index)
{
	struct symbol symbol = { 0 };
	GElf_Word shndx = 0;
	GElf_Addr address = 0;
	Dwarf_Addr bias;
	Elf *elf = NULL;
	GElf_Sym sym;
	int type;

	symbol.name = dwfl_module_getsym_info(mod, index, &sym, &address, &shndx, &elf, &bias);
	if (!symbol.name || !symbol.name[0] || shndx == SHN_UNDEF)
		return;
	type = GELF_ST_TYPE(sym.st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE && type != STT_OBJECT)
		return;
	symbol.start = address;
	symbol.rank = rank_of(&sym);
	symbol.code = type != STT_OBJECT;
	symbol.type = (uint8_t)type;
	if (__builtin_add_overflow(address, sym.st_size, &symbol.end))
		return;
	if (sym.st_size == 0)
		symbol.end = section_end(elf, shndx, &sym, address);
	VEC_PUSH(&symbols->all, symbol);
}

struct elf_symbols *elf_symbols_new(struct Dwfl_Module *mod)
{
	struct elf_symbols *symbols = mem_alloc(sizeof(*symbols));
	int count = dwfl_module_getsymtab(mod);

	for (int i = 1; i < count; i++)
		symbols_add(symbols, mod, i);
	VEC_SORT(&symbols->all, by_start);
	VEC_FOREACH (&symbols->all, s)
		if (s->rank >= 8 && s->end - s->start > symbols->longest)
			symbols->longest = s->end - s->start;
	return symbols;
}

void elf_symbols_free(struct elf_symbols *symbols)
{
	if (!symbols)
		return;
	VEC_DEINIT(&symbols->all);
	mem_free(symbols);
}

/* Index after the last symbol that starts at or before the address. */
static size_t upper(const struct elf_symbols *symbols, uint64_t address)
{
	return VEC_HOLDS_FOR(&symbols->all, symbol, symbol->start <= address);
}

const char *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address,
			     uint64_t *ret_start)
{
	const struct symbol *fallback = NULL, *found = NULL;
	bool passed_sized = false;

	for (size_t i = upper(symbols, address); i-- > 0;) {
		const struct symbol *s = &symbols->all.items[i];

		if (!s->code)
			continue;
		if (s->rank >= 8) {
			if (address < s->end) {
				found = s;
				break;
			}
			passed_sized = true;
		} else if (!fallback && !passed_sized && address < s->end) {
			/* A label inside a sized function must not win over the function. */
			fallback = s;
		}
		if (address - s->start > symbols->longest)
			break;
	}
	if (!found)
		found = fallback;
	if (!found)
		return NULL;
	if (ret_start)
		*ret_start = found->start;
	return found->name;
}

const char *elf_symbols_find_data(const struct elf_symbols *symbols, uint64_t address,
				  uint64_t *ret_start)
{
	for (size_t i = upper(symbols, address); i-- > 0;) {
		const struct symbol *s = &symbols->all.items[i];

		if (!s->code && s->rank >= 8 && address < s->end) {
			*ret_start = s->start;
			return s->name;
		}
		if (address - s->start > symbols->longest)
			break;
	}
	return NULL;
}

bool elf_symbols_lookup(const struct elf_symbols *symbols, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);

	VEC_FOREACH (&symbols->all, s) {
		if (strncmp(s->name, name, len) == 0 &&
		    (s->name[len] == '\0' || s->name[len] == '@')) {
			*ret = s->start;
			return true;
		}
	}
	return false;
}

void elf_symbols_each(const struct elf_symbols *symbols,
		      void (*fn)(void *ctx, const struct elf_symbol *symbol), void *ctx)
{
	VEC_FOREACH (&symbols->all, s) {
		struct elf_symbol symbol = { .name = s->name,
					     .start = s->start,
					     .end = s->end,
					     .sized = s->rank >= 8,
					     .ifunc = s->type == STT_GNU_IFUNC,
					     .function = s->type != STT_NOTYPE,
					     .global = (s->rank & 4) != 0 };

		if (s->code)
			fn(ctx, &symbol);
	}
}
