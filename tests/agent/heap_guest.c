/*
 * `heap_guest MODE`: what a program may expect of its heap. It prints what it sees; the driver runs
 * it with and without guards and compares. Addresses and usable sizes may differ, so they are not
 * printed.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int bad;

static void expect(int good, const char *what)
{
	if (!good) {
		printf("not so: %s\n", what);
		bad = 1;
	}
}

static void use(void *block, size_t size, size_t align, const char *what)
{
	expect(block != NULL, what);
	expect((uintptr_t)block % align == 0, what);
	expect(malloc_usable_size(block) >= size, what);
	memset(block, 0x77, malloc_usable_size(block));
}

static void mode_entry_points(void)
{
	size_t align, size;
	void *block;

	for (size = 0; size < 70000; size = size * 5 / 3 + 1) {
		unsigned char *zeroed = calloc(1, size);
		size_t i;

		for (i = 0; i < size; i++)
			expect(zeroed[i] == 0, "calloc gives zeros");
		use(zeroed, size, 16, "calloc");
		free(zeroed);
		block = malloc(size);
		use(block, size, 16, "malloc");
		free(block);
		block = valloc(size);
		use(block, size, 4096, "valloc");
		free(block);
		block = pvalloc(size);
		use(block, size, 4096, "pvalloc");
		free(block);
		for (align = 8; align <= (1u << 21); align *= 4) {
			block = memalign(align, size);
			use(block, size, align, "memalign");
			block = realloc(block, size + 100);
			use(block, size + 100, 16, "realloc of memalign");
			free(block);
			expect(!posix_memalign(&block, align, size), "posix_memalign");
			use(block, size, align, "posix_memalign");
			free(block);
			block = aligned_alloc(align, size);
			use(block, size, align, "aligned_alloc");
			free(block);
		}
	}
	block = realloc(NULL, 10);
	use(block, 10, 16, "realloc of NULL");
	expect(realloc(block, 0) == NULL, "realloc to nothing");
	expect(realloc(malloc(0), 0) == NULL, "realloc of nothing to nothing");
	block = reallocarray(NULL, 3, 7);
	use(block, 21, 16, "reallocarray");
	free(block);
	free(NULL);
	expect(malloc_usable_size(NULL) == 0, "usable size of NULL");
}

static void mode_refusals(void)
{
	volatile size_t huge = SIZE_MAX, half = SIZE_MAX / 2;
	void *block = (void *)1, *kept = malloc(50);

	memset(kept, 5, 50);
	errno = 0;
	expect(!malloc(huge) && errno == ENOMEM, "malloc of too much");
	errno = 0;
	expect(!malloc(half) && errno == ENOMEM, "malloc of half of too much");
	errno = 0;
	expect(!calloc(half, 3) && errno == ENOMEM, "calloc that overflows");
	errno = 0;
	expect(!realloc(kept, half) && errno == ENOMEM, "realloc of too much");
	expect(((char *)kept)[49] == 5, "realloc that failed keeps the block");
	errno = 0;
	expect(!reallocarray(kept, half, 3) && errno == ENOMEM, "reallocarray that overflows");
	errno = 7;
	expect(posix_memalign(&block, 3, 10) == EINVAL && errno == 7 && block == (void *)1,
	       "posix_memalign with a wrong alignment");
	expect(posix_memalign(&block, 64, half) == ENOMEM && block == (void *)1,
	       "posix_memalign of too much");
	errno = 7;
	free(kept);
	expect(errno == 7, "free keeps errno");
}

/* Contents survive every way of resizing; the sum is the same for any sound allocator. */
static void mode_storm(void)
{
	static struct {
		unsigned char *bytes;
		size_t size;
		unsigned char seed;
	} slots[500];
	unsigned state = 12345;
	uint64_t sum = 0;
	int round;

	for (round = 0; round < 60000; round++) {
		unsigned random = state = state * 1103515245u + 12345u;
		unsigned at = (random >> 8) % 500, how = (random >> 20) % 10;
		size_t size = (random >> 4) % (how == 9 ? 200000 : 600), i;

		for (i = 0; i < slots[at].size; i++)
			if (slots[at].bytes[i] != (unsigned char)(slots[at].seed + i))
				expect(0, "a block keeps what is in it");
		if (how < 3) {
			free(slots[at].bytes);
			slots[at].bytes = how ? malloc(size) : calloc(size, 1);
		} else if (how == 3) {
			free(slots[at].bytes);
			slots[at].bytes = memalign(64, size);
		} else {
			size_t kept = slots[at].size < size ? slots[at].size : size;

			slots[at].bytes = realloc(slots[at].bytes, size + 1);
			for (i = 0; i < kept; i++)
				sum = sum * 31 + slots[at].bytes[i];
		}
		slots[at].size = size;
		slots[at].seed = (unsigned char)random;
		for (i = 0; i < size; i++)
			slots[at].bytes[i] = (unsigned char)(slots[at].seed + i);
	}
	printf("%llx\n", (unsigned long long)sum);
}

static void *worker(void *number)
{
	uint64_t *sums = number;
	char *blocks[100] = { 0 };
	unsigned i;

	for (i = 0; i < 30000; i++) {
		unsigned at = i * 7919u % 100;

		blocks[at] = realloc(blocks[at], i % 300 + 1);
		blocks[at][i % 300] = (char)i;
		*sums += (unsigned char)blocks[at][i % 300];
		if (i % 3 == 0) {
			free(blocks[at]);
			blocks[at] = NULL;
		}
	}
	for (i = 0; i < 100; i++)
		free(blocks[i]);
	return NULL;
}

static void mode_threads(void)
{
	uint64_t sums[6] = { 0 };
	pthread_t threads[6];
	int round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 6; i++)
			pthread_create(&threads[i], NULL, worker, &sums[i]);
		for (i = 0; i < 6; i++)
			pthread_join(threads[i], NULL);
	}
	for (i = 0; i < 6; i++)
		printf("%llu\n", (unsigned long long)sums[i]);
}

/* A handler that allocates, in the middle of whatever. glibc's own malloc does not allow it, so it
 * happens only while the program is not in it, as far as a flag can tell. */
static volatile sig_atomic_t inside, handled;
static void *volatile handed;

static void on_alarm(int signo)
{
	(void)signo;
	if (inside)
		return;
	free(handed);
	handed = malloc(77);
	memset(handed, 1, 77);
	handled++;
}

static void mode_signals(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	int i;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 300000 || handled < 20; i++) {
		void *block;

		inside = 1;
		block = malloc(i % 500);
		inside = 0;
		inside = 1;
		free(block);
		inside = 0;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	free(handed);
	puts("done");
}

/* Children of fork, of a bare clone that libc does not know of, and of vfork. */
static void mode_children(void)
{
	void *blocks[50], *freed[50];
	int i, status, kind;

	for (i = 0; i < 50; i++) {
		blocks[i] = memset(malloc(i * 11), i, i * 11);
		freed[i] = malloc(40);
	}
	for (i = 0; i < 50; i++)
		free(freed[i]);
	fflush(stdout);
	for (kind = 0; kind < 2; kind++) {
		pid_t child = kind ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();

		if (!child) {
			for (i = 0; i < 50; i++) {
				blocks[i] = realloc(blocks[i], i * 23 + 1);
				expect(i == 0 || ((char *)blocks[i])[i * 11 - 1] == (char)i,
				       "a child's block keeps what is in it");
				free(blocks[i]);
				free(malloc(100));
			}
			_exit(bad);
		}
		waitpid(child, &status, 0);
		printf("%d\n", status);
		fflush(stdout);
	}
	if (!vfork())
		_exit(0);
	wait(&status);
	for (i = 0; i < 50; i++)
		free(blocks[i]);
	expect(malloc_trim(0) >= 0, "malloc_trim");
}

/* Memory comes and goes while somebody looks through all of it. */
static volatile int unmapping = 1;

static void *unmapper(void *unused)
{
	const size_t bytes = 4u << 20;

	(void)unused;
	while (unmapping) {
		char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		if (at == MAP_FAILED)
			continue;
		memset(at, 1, bytes);
		mprotect(at + bytes / 2, bytes / 4, PROT_NONE);
		munmap(at, bytes);
	}
	return NULL;
}

static void mode_unmapping(void)
{
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, unmapper, NULL);
	for (i = 0; i < 100; i++)
		free(malloc(100));
	unmapping = 0;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("done");
}

/* A limit that quarantine would break if it did not give back. */
/* Small blocks that fit into a limit of 60 MB (set from outside), but not with guards around all of
 * them, and a part of them again and again. */
static void mode_limited(void)
{
	enum { COUNT = 800000, AGAIN = 50000 };
	void **kept = malloc(COUNT * sizeof(*kept));
	size_t i, round;

	for (i = 0; i < COUNT; i++) {
		kept[i] = malloc(24);
		if (!kept[i]) {
			printf("no memory after %zu\n", i);
			exit(3);
		}
		memset(kept[i], 1, 24);
	}
	for (round = 0; round < 4; round++) {
		for (i = 0; i < AGAIN; i++)
			free(kept[i]);
		for (i = 0; i < AGAIN; i++)
			kept[i] = calloc(1, 24);
	}
	printf("%d\n", *(char *)kept[COUNT - 1] + *(char *)kept[0]);
}

static void mode_little_memory(void)
{
	struct rlimit limit = { 0, 0 };
	size_t used = 0, i;
	FILE *statm = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!statm || fscanf(statm, "%ld", &pages) != 1)
		exit(2);
	fclose(statm);
	limit.rlim_cur = limit.rlim_max = (rlim_t)pages * 4096 + (48u << 20);
	setrlimit(RLIMIT_AS, &limit);
	for (i = 0; i < 400; i++) {
		char *block = malloc(1 << 20);

		expect(block != NULL, "memory that was freed can be had again");
		if (!block)
			return;
		memset(block, 1, 1 << 20);
		free(block);
		used += 1 << 20;
	}
	printf("%zu\n", used);
}

#define HOT_BLOCKS 300000

/* One context that makes many blocks, of which one in `defect` is written to behind its end, where
 * libc has nothing: without guards nothing happens. */
static void hot(int defect)
{
	char *kept[16] = { 0 };
	int i;

	for (i = 0; i < HOT_BLOCKS; i++) {
		char *block = malloc(20);

		memset(block, i, 20);
		if (defect && i % defect == defect - 1)
			block[20] = 0; /* what no guard has: others would be in one of 64 */
		free(kept[i % 16]);
		kept[i % 16] = block;
	}
	for (i = 0; i < 16; i++)
		free(kept[i]);
}

static void mode_hot(void)
{
	hot(0);
}

static void mode_hot_defect(void)
{
	hot(1000);
}

/* The other one makes few, after all those, each of which is written to behind its end. */
static void mode_rare_defect(void)
{
	int i;

	hot(0);
	for (i = 0; i < 3; i++) {
		char *block = malloc(36);

		memset(block, i, 37);
		free(block);
	}
}

/* One of the many is freed twice. */
static void mode_hot_twice(void)
{
	char *blocks[2] = { 0 };
	int i;

	for (i = 0; i < HOT_BLOCKS; i++) {
		free(blocks[i % 2]);
		blocks[i % 2] = malloc(24);
	}
	free(blocks[0]);
	free(blocks[1]);
	free(blocks[0]);
}

/* Of many freed neighbours, all of which are still pointed to, the tenth is read. */
static void mode_freed_among_freed(void)
{
	struct node {
		struct node *next;
		char rest[32];
	} *volatile nodes[20];
	int i;

	for (i = 0; i < 20; i++)
		nodes[i] = calloc(1, i == 10 ? sizeof(struct node) + 1 : sizeof(struct node));
	for (i = 0; i < 20; i++)
		free((void *)nodes[i]);
	nodes[0]->rest[0] = nodes[10]->next->rest[0];
}

static void on_signal_stack(int signo)
{
	signal(signo, SIG_DFL);
	raise(signo);
}

/* A wild pointer, and handlers that run in a block: the kernel writes registers there. */
static void mode_signal_stack(void)
{
	stack_t stack = { .ss_sp = calloc(1, 65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = on_signal_stack, .sa_flags = SA_ONSTACK };
	char *volatile *home = malloc(77);

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	*home = (char *)0x2073692073696874;
	**home = 1;
}

/* A field of a freed block is freed: under poison it is no pointer any more. */
static void mode_freed_field(void)
{
	char **fields = malloc(4 * sizeof(*fields));
	char *volatile *again = fields;

	fields[3] = malloc(24);
	free(fields);
	free(again[3]);
}

/* What new blocks hold: of each kind, how many bytes are not zero. */
static void mode_unset(void)
{
	unsigned char *kinds[] = { malloc(61), calloc(1, 61), aligned_alloc(64, 64),
				   malloc(70000) };
	unsigned i, k;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned set = 0;

		for (k = 0; k < 61; k++)
			set += kinds[i][k] != 0;
		printf("%u ", set);
		free(kinds[i]);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "freed-among-freed", mode_freed_among_freed },
		      { "signal-stack", mode_signal_stack },
		      { "entry-points", mode_entry_points },
		      { "refusals", mode_refusals },
		      { "storm", mode_storm },
		      { "threads", mode_threads },
		      { "signals", mode_signals },
		      { "children", mode_children },
		      { "unmapping", mode_unmapping },
		      { "hot", mode_hot },
		      { "hot-defect", mode_hot_defect },
		      { "rare-defect", mode_rare_defect },
		      { "hot-twice", mode_hot_twice },
		      { "freed-field", mode_freed_field },
		      { "unset", mode_unset },
		      { "limited", mode_limited },
		      { "little-memory", mode_little_memory } };
	unsigned i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && !strcmp(argv[1], modes[i].name))
			modes[i].run();
	return bad;
}
