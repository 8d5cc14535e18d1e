#include "model/snapshot.h"

#include <string.h>

#include "base/auto.h"

/* How many bytes from `address` on this piece has; 0 when it does not hold the address. */
static size_t piece_available(const struct piece *piece, taddr address)
{
	/* A lying record may give a piece that wraps around the address space. */
	if (!piece->bytes || address < piece->address || address - piece->address >= piece->len)
		return 0;
	return piece->len - (size_t)(address - piece->address);
}

static const struct piece *piece_at(const struct snapshot *snapshot, taddr address)
{
	if (piece_available(&snapshot->stack, address) > 0)
		return &snapshot->stack;
	for (size_t i = 0; i < snapshot->piece_count; i++)
		if (piece_available(&snapshot->pieces[i], address) > 0)
			return &snapshot->pieces[i];
	return NULL;
}

bool snapshot_read(const struct snapshot *snapshot, taddr address, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len > 0) {
		const struct piece *piece = piece_at(snapshot, address);
		size_t n;

		if (!piece)
			return false;
		n = piece_available(piece, address);
		if (n > len)
			n = len;
		memcpy(to, piece->bytes + (address - piece->address), n);
		to += n;
		address += n;
		len -= n;
	}
	return true;
}

const struct mapping *snapshot_mapping(const struct snapshot *snapshot, taddr address)
{
	/* A few hundred entries, and the record may be unsorted: a plain walk is quick enough and
	 * cannot be misled. */
	for (size_t i = 0; i < snapshot->mapping_count; i++)
		if (address >= snapshot->mappings[i].start && address < snapshot->mappings[i].end)
			return &snapshot->mappings[i];
	return NULL;
}

bool mapping_is_shared_memory(const struct mapping *mapping)
{
	static const char *const begins[] = { "/memfd:", "/dev/zero", "/SYSV" };

	for (size_t i = 0; mapping->path && i < ARRAY_SIZE(begins); i++)
		if (strncmp(mapping->path, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}
