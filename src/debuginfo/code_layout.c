#include "debuginfo/code_layout.h"

#include <dwarf.h>
#include <stdlib.h>

#include <elfutils/libdwfl.h>

#include "debuginfo/module.h"

/* More entries than any file has. */
#define TABLE_MAX (16u << 20)

void code_layout_deinit(struct code_layout *layout)
{
	VEC_DEINIT(&layout->ranges);
	VEC_DEINIT(&layout->starts);
}

void code_layout_sort(struct code_layout *layout)
{
	size_t kept = 0;

	if (layout->starts.count == 0)
		return;
	numbers_sort(layout->starts.items, layout->starts.count);
	for (size_t i = 0; i < layout->starts.count; i++)
		if (kept == 0 || layout->starts.items[i] != layout->starts.items[kept - 1])
			layout->starts.items[kept++] = layout->starts.items[i];
	layout->starts.count = kept;
}

/* No more than the file holds: a damaged one may say anything. */
static void add_range(struct code_layout *layout, Elf *elf, uint64_t low, uint64_t offset,
		      uint64_t bytes)
{
	struct code_range range = { .low = low };
	size_t size = 0;

	if (!elf_rawfile(elf, &size) || offset >= size)
		return;
	if (bytes > size - offset)
		bytes = size - offset;
	if (bytes > 0 && !__builtin_add_overflow(low, bytes, &range.high))
		VEC_PUSH(&layout->ranges, range);
}

static void add_sections(Elf *elf, struct code_layout *layout)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn)) != NULL)
		if (gelf_getshdr(scn, &shdr) && (shdr.sh_flags & SHF_EXECINSTR) &&
		    (shdr.sh_flags & SHF_ALLOC) && shdr.sh_type != SHT_NOBITS)
			add_range(layout, elf, shdr.sh_addr, shdr.sh_offset, shdr.sh_size);
}

static void add_segments(Elf *elf, struct code_layout *layout)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_LOAD &&
		    (phdr.p_flags & PF_X))
			add_range(layout, elf, phdr.p_vaddr, phdr.p_offset, phdr.p_filesz);
	}
}

/* Ranges of a damaged file may overlap: no byte is to be read twice. */
static void tidy_ranges(struct code_layout *layout)
{
	size_t kept = 0;

	if (layout->ranges.count == 0)
		return;
	VEC_SORT_BY(&layout->ranges, low);
	for (size_t i = 0; i < layout->ranges.count; i++) {
		struct code_range range = layout->ranges.items[i];

		if (kept > 0 && range.low < layout->ranges.items[kept - 1].high)
			range.low = layout->ranges.items[kept - 1].high;
		if (range.low < range.high)
			layout->ranges.items[kept++] = range;
	}
	layout->ranges.count = kept;
}

static void add_symbols(Dwfl_Module *mod, uint64_t bias, struct code_layout *layout)
{
	int count = dwfl_module_getsymtab(mod);

	for (int i = 1; i < count; i++) {
		GElf_Addr address;
		GElf_Word shndx;
		GElf_Sym sym;

		if (!dwfl_module_getsym_info(mod, i, &sym, &address, &shndx, NULL, NULL) ||
		    shndx == SHN_UNDEF)
			continue;
		if (GELF_ST_TYPE(sym.st_info) == STT_FUNC ||
		    GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC)
			VEC_PUSH(&layout->starts, address - bias);
	}
}

/* The table of .eh_frame_hdr (LSB, "Exception Frames"): stripped programs have it as well. Only in
 * the form that linkers write: offsets of four bytes from the table's own header. */
static void add_unwind_starts(struct module *module, uint64_t at, struct code_layout *layout)
{
	struct {
		uint8_t version, frame_encoding, count_encoding, table_encoding;
		int32_t frame;
		uint32_t count;
	} head;
	AUTO(mem_freep) int32_t *table = NULL;

	if (!module_read(module, at, &head, sizeof(head)) || head.version != 1 ||
	    head.frame_encoding != (DW_EH_PE_pcrel | DW_EH_PE_sdata4) ||
	    head.count_encoding != DW_EH_PE_udata4 ||
	    head.table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || head.count == 0 ||
	    head.count > TABLE_MAX)
		return;
	table = mem_alloc((size_t)head.count * 8);
	if (!module_read(module, at + sizeof(head), table, (size_t)head.count * 8))
		return;
	for (size_t i = 0; i < head.count; i++)
		VEC_PUSH(&layout->starts, at + (uint64_t)(int64_t)table[2 * i]);
}

void code_layout_of_module(struct module *module, struct code_layout *ret)
{
	uint64_t bias;
	GElf_Addr elf_bias;
	Dwfl_Module *mod = module_dwfl(module, &bias);
	Elf *elf = dwfl_module_getelf(mod, &elf_bias);
	size_t count;

	if (!elf)
		return;
	add_sections(elf, ret);
	if (ret->ranges.count == 0)
		add_segments(elf, ret);
	tidy_ranges(ret);
	add_symbols(mod, bias, ret);
	if (elf_getphdrnum(elf, &count) != 0)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_GNU_EH_FRAME)
			add_unwind_starts(module, phdr.p_vaddr, ret);
	}
	code_layout_sort(ret);
}
