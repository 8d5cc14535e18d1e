#include "agent/alloc/tcache.h"

#include <link.h>
#include <string.h>

#include "agent/core/log.h"
#include "agent/core/real.h"
#include "agent/watch/watch.h"

#define ENOUGH 16u     /* of either kind, all of them as foreseen */
#define PATIENCE 4096u /* calls until then */
#define REACH (128u << 10)

struct tcache tcache;

static struct {
	uint32_t busy;	       /* atomic: one thread at a time; others go past it */
	uint64_t tls, tls_end; /* libc's own variables of a thread, from fs */
	uint64_t offset;       /* the pointer among them; 0: not found yet */
	uint32_t calls, takes, gives;
} seen;

/* For whoever reads the log. */
static void tell(enum log_trust trust)
{
	agent.libc_cache = trust;
	if (log_map.header)
		log_map.header->libc_cache = trust;
}

/* The shapes that are known, by the size of the cache: bins, each with a count and an address. */
static const struct shape {
	uint16_t bins;
	int16_t step;
} shapes[] = {
	{ 64, 1 },  /* glibc 2.30 to 2.41: blocks are counted */
	{ 76, -1 }, /* glibc 2.42, 2.43: places are; the last twelve are bins of large blocks */
};

static bool is_tuned(char **envp)
{
	for (; *envp; envp++)
		if (strstr(*envp, "GLIBC_TUNABLES=") == *envp && strstr(*envp, "tcache"))
			return true;
	return false;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t code = (uint64_t)real.malloc - info->dlpi_addr;
	const ElfW(Phdr) *tls = NULL, *ph;
	bool ours = false;

	(void)data;
	if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof(info->dlpi_tls_data))
		return 0;
	for (ph = info->dlpi_phdr; ph < info->dlpi_phdr + info->dlpi_phnum; ph++) {
		ours |= ph->p_type == PT_LOAD && code - ph->p_vaddr < ph->p_memsz;
		if (ph->p_type == PT_TLS)
			tls = ph;
	}
	if (!ours)
		return 0;
	if (tls && info->dlpi_tls_data) {
		seen.tls = (uint64_t)info->dlpi_tls_data - arch_fs_base();
		seen.tls_end = seen.tls + tls->p_memsz / 8 * 8;
	}
	return 1;
}

void tcache_init(void)
{
	tcache.offset = ARCH_THREAD_SPARE + offsetof(struct thread_words, nothing);
	if (!real.glibc_malloc || watch_state.area || is_tuned(agent.environment))
		return;
	(void)dl_iterate_phdr(find_libc, NULL);
	tcache.watching = seen.tls && seen.tls % 8 == 0;
	if (tcache.watching)
		tell(LOG_TRUST_WATCHED);
}

static void give_up(void)
{
	tcache.watching = 0;
	if (agent.libc_cache != LOG_TRUST_USED) /* by a thread that was faster */
		tell(LOG_TRUST_LEFT);
}

/* The shape of what lies there, if it can be a cache: by the word before it, its chunk's size. */
static const struct shape *shape_of(uint64_t head)
{
	const struct shape *shape;

	for (shape = shapes; shape < shapes + sizeof(shapes) / sizeof(shapes[0]); shape++)
		if ((head & ~7ull) ==
		    (shape->bins * (sizeof(uint16_t) + sizeof(uint64_t *)) + 8 + 15) / 16 * 16)
			return shape;
	return NULL;
}

/* A thread has its cache from its first malloc on, so it is the first block of its heap. */
static void find_pointer(const void *block)
{
	const struct shape *shape;
	uint64_t at, to;

	for (at = seen.tls; at != seen.tls_end && !seen.offset; at += 8) {
		to = arch_fs_word(at);
		if (to % 16 || (uint64_t)block - to >= REACH)
			continue;
		shape = shape_of(((const uint64_t *)to)[-1]);
		if (!shape)
			continue;
		tcache.first = (uint16_t)(shape->bins * sizeof(uint16_t));
		tcache.step = shape->step;
		seen.offset = at;
	}
}

/* Before and after a call that is looked at. False: it is not. */
static bool look_begin(void)
{
	if (__atomic_exchange_n(&seen.busy, 1, __ATOMIC_ACQUIRE))
		return false;
	if (++seen.calls > PATIENCE)
		give_up();
	return true;
}

static void look_end(void)
{
	__atomic_store_n(&seen.busy, 0, __ATOMIC_RELEASE);
}

static void settle(bool as_foreseen, uint32_t *count)
{
	if (!as_foreseen) {
		give_up();
		return;
	}
	++*count;
	if (seen.takes < ENOUGH || seen.gives < ENOUGH)
		return;
	give_up();
	__atomic_store_n(&tcache.offset, seen.offset, __ATOMIC_RELEASE);
	tell(LOG_TRUST_USED);
}

static void *malloc_looked_at(size_t size)
{
	struct tcache_bins *bins = seen.offset ? tcache_own(seen.offset) : NULL;
	uint64_t bin = tcache_bin(size), *block, *next;
	uint16_t count;
	void *ptr;

	if (!bins || size > TCACHE_LARGEST || !tcache_next(bins, bin)) {
		ptr = real.malloc(size);
		if (ptr && !seen.offset)
			find_pointer(ptr);
		return ptr;
	}
	block = tcache_next(bins, bin);
	count = bins->count[bin];
	next = (uint64_t *)tcache_mixed(block, block[0]);
	ptr = real.malloc(size);
	settle(ptr == block && bins == tcache_own(seen.offset) &&
		       *tcache_first(bins, bin) == next &&
		       bins->count[bin] == (uint16_t)(count - tcache.step) && block[1] == 0,
	       &seen.takes);
	return ptr;
}

void *tcache_malloc_watched(size_t size)
{
	void *ptr;

	if (!look_begin())
		return real.malloc(size);
	ptr = malloc_looked_at(size);
	look_end();
	return ptr;
}

/* The key is learned from the first one. Older libcs have a thread's own there. */
static bool is_key(uint64_t word, const struct tcache_bins *bins)
{
	if (!tcache.key && word != (uint64_t)bins)
		tcache.key = word;
	return word && word == tcache.key;
}

static void free_looked_at(void *ptr)
{
	struct tcache_bins *bins = seen.offset ? tcache_own(seen.offset) : NULL;
	uint64_t *block = ptr, *first, bin;
	uint16_t count;

	bin = bins ? tcache_bin_of(block[-1]) : TCACHE_BINS;
	if (bin >= TCACHE_BINS || tcache_is_full(bins->count[bin]) ||
	    (tcache.key && block[1] == tcache.key)) {
		real.free(ptr);
		return;
	}
	first = *tcache_first(bins, bin);
	count = bins->count[bin];
	real.free(ptr);
	settle(bins == tcache_own(seen.offset) && *tcache_first(bins, bin) == block &&
		       bins->count[bin] == (uint16_t)(count + tcache.step) &&
		       is_key(block[1], bins) && block[0] == tcache_mixed(block, (uint64_t)first),
	       &seen.gives);
}

void tcache_free_watched(void *ptr)
{
	if (!look_begin()) {
		real.free(ptr);
		return;
	}
	free_looked_at(ptr);
	look_end();
}
