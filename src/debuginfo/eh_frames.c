#include "debuginfo/eh_frames.h"

#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include "base/vec.h"

/* Encodings of pointers (LSB, Exception Frames). */
#define ENCODED_OMIT 0xff
#define ENCODED_INDIRECT 0x80
#define ENCODED_PCREL 0x10

static const unsigned char ident[EI_NIDENT] = { ELFMAG0,    ELFMAG1,	 ELFMAG2,   ELFMAG3,
						ELFCLASS64, ELFDATA2LSB, EV_CURRENT };

struct eh_frames {
	VEC(struct eh_frame) all; /* ascending by low */
};

/* Bytes and where in the file's address space they lie. */
struct cursor {
	const uint8_t *at, *end;
	uint64_t vaddr;
};

static bool take(struct cursor *c, void *to, size_t len)
{
	if ((size_t)(c->end - c->at) < len)
		return false;
	memcpy(to, c->at, len);
	c->at += len;
	c->vaddr += len;
	return true;
}

static bool take_uleb(struct cursor *c, uint64_t *ret)
{
	unsigned int shift = 0;
	uint8_t byte;

	*ret = 0;
	do {
		if (shift > 63 || !take(c, &byte, 1))
			return false;
		*ret |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return true;
}

/* Only what compilers for this CPU use: absolute or relative to itself. */
static bool take_encoded(struct cursor *c, uint8_t encoding, uint64_t *ret)
{
	uint64_t base = (encoding & 0x70) == ENCODED_PCREL ? c->vaddr : 0;
	uint32_t word = 0;
	uint16_t half = 0;
	bool taken = false;

	if ((encoding & 0x70) != 0 && (encoding & 0x70) != ENCODED_PCREL)
		return false;
	switch (encoding & 0x0f) {
	case 0x00: /* a whole address */
	case 0x04:
	case 0x0c:
		taken = take(c, ret, 8);
		break;
	case 0x01:
		taken = take_uleb(c, ret);
		break;
	case 0x02:
		taken = take(c, &half, 2);
		*ret = half;
		break;
	case 0x03:
	case 0x0b:
		taken = take(c, &word, 4);
		*ret = encoding & 0x08 ? (uint64_t)(int64_t)(int32_t)word : word;
		break;
	default:
		break;
	}
	if (taken && *ret != 0)
		*ret += base;
	return taken;
}

struct augmentation {
	bool sized; /* "z": data of a known length */
	uint8_t code, lsda;
};

static bool read_augmentation(const Dwarf_CIE *cie, struct augmentation *ret)
{
	struct cursor c = { .at = cie->augmentation_data,
			    .end = cie->augmentation_data + cie->augmentation_data_size };
	const char *letter = cie->augmentation;
	uint8_t encoding;
	uint64_t skipped;

	*ret = (struct augmentation){ .lsda = ENCODED_OMIT };
	if (*letter == '\0')
		return true;
	if (*letter++ != 'z')
		return false;
	ret->sized = true;
	for (; *letter != '\0'; letter++)
		switch (*letter) {
		case 'R':
			if (!take(&c, &ret->code, 1))
				return false;
			break;
		case 'L':
			if (!take(&c, &ret->lsda, 1))
				return false;
			break;
		case 'P':
			if (!take(&c, &encoding, 1) || !take_encoded(&c, encoding & 0x0f, &skipped))
				return false;
			break;
		case 'S':
		case 'B':
			break;
		default:
			return false;
		}
	return true;
}

static void add_fde(struct eh_frames *frames, const Elf_Data *data, uint64_t section,
		    const Dwarf_CFI_Entry *entry)
{
	const uint8_t *bytes = data->d_buf;
	struct augmentation augmentation;
	struct eh_frame frame = { 0 };
	struct cursor c;
	Dwarf_CFI_Entry cie;
	Dwarf_Off after;
	uint64_t len;

	if (dwarf_next_cfi(ident, (Elf_Data *)data, true, entry->fde.CIE_pointer, &after, &cie) !=
		    0 ||
	    !dwarf_cfi_cie_p(&cie) || !read_augmentation(&cie.cie, &augmentation))
		return;
	c = (struct cursor){ .at = entry->fde.start, .end = entry->fde.end };
	c.vaddr = section + (uint64_t)(c.at - bytes);
	if (!take_encoded(&c, augmentation.code, &frame.low) ||
	    !take_encoded(&c, augmentation.code & 0x0f, &len) || frame.low == 0 ||
	    __builtin_add_overflow(frame.low, len, &frame.high))
		return;
	if (augmentation.sized && augmentation.lsda != ENCODED_OMIT &&
	    (!take_uleb(&c, &len) || !take_encoded(&c, augmentation.lsda, &frame.lsda)))
		return;
	VEC_PUSH(&frames->all, frame);
}

struct eh_frames *eh_frames_new(Elf_Data *data, uint64_t section)
{
	struct eh_frames *frames = mem_alloc(sizeof(*frames));
	Dwarf_Off at = 0, next;
	Dwarf_CFI_Entry entry;
	int r;

	while (data && (r = dwarf_next_cfi(ident, data, true, at, &next, &entry)) >= 0) {
		if (next <= at || r == 1)
			break;
		if (!dwarf_cfi_cie_p(&entry))
			add_fde(frames, data, section, &entry);
		at = next;
	}
	VEC_SORT_BY(&frames->all, low);
	return frames;
}

void eh_frames_free(struct eh_frames *frames)
{
	if (!frames)
		return;
	VEC_DEINIT(&frames->all);
	mem_free(frames);
}

bool eh_frames_find(const struct eh_frames *frames, uint64_t vaddr, struct eh_frame *ret)
{
	size_t count = VEC_HOLDS_FOR(&frames->all, frame, frame->low <= vaddr);

	if (count == 0 || vaddr >= frames->all.items[count - 1].high)
		return false;
	*ret = frames->all.items[count - 1];
	return true;
}

void eh_frames_gap(const struct eh_frames *frames, uint64_t vaddr, uint64_t *ret_low,
		   uint64_t *ret_high)
{
	size_t count = VEC_HOLDS_FOR(&frames->all, frame, frame->low <= vaddr);

	*ret_low = count > 0 ? frames->all.items[count - 1].high : 0;
	*ret_high = count < frames->all.count ? frames->all.items[count].low : UINT64_MAX;
}

/* The table as gcc and clang write it (Itanium C++ ABI, exception handling tables): two encodings
 * that may be left out, then call sites of four numbers each. */
static bool read_landings(struct cursor *c, const struct eh_frame *frame,
			  void (*fn)(void *ctx, uint64_t vaddr), void *ctx)
{
	uint64_t base = frame->low, len, skipped, start, span, landing;
	const uint8_t *end;
	uint8_t encoding;

	if (!take(c, &encoding, 1) ||
	    (encoding != ENCODED_OMIT && !take_encoded(c, encoding, &base)))
		return false;
	if (!take(c, &encoding, 1) || (encoding != ENCODED_OMIT && !take_uleb(c, &skipped)))
		return false;
	if (!take(c, &encoding, 1) || !take_uleb(c, &len) || len > (uint64_t)(c->end - c->at))
		return false;
	end = c->at + len;
	while (c->at < end) {
		if (!take_encoded(c, encoding, &start) || !take_encoded(c, encoding, &span) ||
		    !take_encoded(c, encoding, &landing) || !take_uleb(c, &skipped))
			return false;
		if (landing != 0)
			fn(ctx, base + landing);
	}
	return true;
}

bool eh_frame_landings(const struct eh_frame *frame, const uint8_t *lsda, size_t len,
		       void (*fn)(void *ctx, uint64_t vaddr), void *ctx)
{
	struct cursor c = { .at = lsda, .end = lsda + len, .vaddr = frame->lsda };

	return len > 0 && read_landings(&c, frame, fn, ctx);
}
