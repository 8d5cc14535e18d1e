#include "read/log_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ull
#define PIECES_MAX 256u /* behind so many the rest is mapped as it is */

static bool piece_map(char *base, size_t len, int fd, uint64_t from, uint64_t to)
{
	from &= ~(PAGE - 1);
	if (to > len)
		to = len;
	return mmap(base + from, to - from, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (off_t)from) !=
	       MAP_FAILED;
}

/* Where a file system knows no holes, lseek() says so: all is one piece. lseek(2) */
static bool pieces_map(char *base, size_t len, int fd)
{
	uint64_t at = 0;
	unsigned int count;

	for (count = 0; at < len; count++) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			return true;
		if (data < (off_t)at || count == PIECES_MAX)
			return piece_map(base, len, fd, at, len);
		if ((uint64_t)data >= len)
			return true;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data)
			hole = (off_t)len;
		if (!piece_map(base, len, fd, (uint64_t)data, (uint64_t)hole))
			return false;
		at = (uint64_t)hole;
	}
	return true;
}

const void *log_map(int fd, size_t len)
{
	void *base = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (base == MAP_FAILED)
		return NULL;
	(void)madvise(base, len, MADV_HUGEPAGE);
	/* A process can have only so many pieces: then one. */
	if (pieces_map(base, len, fd) || piece_map(base, len, fd, 0, len))
		return base;
	r = errno;
	(void)munmap(base, len);
	errno = r;
	return NULL;
}
