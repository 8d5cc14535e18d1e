/*
 * Functions of every shape that hooks must not harm. `hooked MODE` prints what each computes; the
 * driver compares with a run without hooks, and with what the agent saw: a function called as an
 * allocator "returns an object" whose address is any number, of a size that is any argument.
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#define HOOKED extern "C" __attribute__((noinline, noclone, used))
#define ROUNDS 125000
#define THREADS 8

static volatile unsigned long sink;

/* The end of an object that a function "returned": only ended ones are in the agent's history. */
HOOKED void gone(unsigned long object)
{
	sink += object;
}

/* ---- a pool, from many threads --------------------------------------------------------------- */

struct object {
	object *next;
	char rest[40];
};

static __thread object *spare;
static __thread object store[64];
static __thread unsigned stored;

HOOKED void *pool_get(size_t size)
{
	object *got = spare;

	if (got) {
		spare = got->next;
		return got;
	}
	if (stored < 64)
		return &store[stored++];
	return malloc(size);
}

HOOKED void pool_put(void *ptr)
{
	object *back = (object *)ptr;

	back->next = spare;
	spare = back;
}

static void *worker(void *argument)
{
	unsigned long sum = (unsigned long)argument;

	for (unsigned i = 0; i < ROUNDS; i++) {
		char *a = (char *)pool_get(48);

		a[8] = (char)i;
		sum = sum * 31 + (unsigned char)a[8];
		pool_put(a);
	}
	return (void *)sum;
}

static void mode_threads()
{
	pthread_t threads[THREADS];
	unsigned long sum = 0;

	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], nullptr, worker, (void *)i);
	for (unsigned i = 0; i < THREADS; i++) {
		void *part;

		pthread_join(threads[i], &part);
		sum ^= (unsigned long)part;
	}
	printf("threads %lx\n", sum);
}

/* ---- ways to leave a function ---------------------------------------------------------------- */

static jmp_buf place;

__attribute__((noinline)) static void throws(unsigned i)
{
	if (i % 3 == 0)
		throw std::runtime_error("three");
	sink += i;
}

/* An exception passes through it, or is caught in it and it returns after all. */
HOOKED unsigned long through(unsigned long i, unsigned long size)
{
	struct cleanup {
		~cleanup() { sink++; }
	} cleanup;

	if (i % 5 == 0) {
		try {
			throws((unsigned)i * 3);
		} catch (const std::exception &) {
			return 0x100000 + i * 64;
		}
	}
	throws((unsigned)i);
	sink += size;
	return 0x100000 + i * 64;
}

static void mode_throw()
{
	unsigned caught = 0;
	unsigned long sum = 0;

	for (unsigned long i = 1; i <= 1000; i++) {
		try {
			unsigned long got = through(i, 1000 + i);

			sum += got;
			gone(got);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	printf("throw %u %lx\n", caught, sum);
}

HOOKED unsigned long jumps(unsigned long i)
{
	if (i % 2)
		longjmp(place, (int)i);
	return 0x200000 + i * 64;
}

static void mode_longjmp()
{
	volatile unsigned back = 0;
	volatile unsigned long sum = 0;

	for (volatile unsigned long i = 1; i <= 1000; i++) {
		if (setjmp(place)) {
			back++;
		} else {
			sum += jumps(i);
			gone(0x200000 + i * 64);
		}
	}
	printf("longjmp %u %lx\n", back, sum);
}

HOOKED unsigned long deep(unsigned long n)
{
	unsigned long below = n > 1 ? deep(n - 1) : 0;

	sink += below;
	return 0x300000 + n * 64;
}

static void mode_recursion()
{
	for (unsigned i = 0; i < 100; i++) {
		printf("%lx ", deep(40));
		for (unsigned long n = 1; n <= 40; n++)
			gone(0x300000 + n * 64);
	}
	printf("\n");
}

/* ---- ways to pass things --------------------------------------------------------------------- */

HOOKED unsigned long any_number(unsigned long count, const char *kinds, ...)
{
	double sum = 0;
	va_list list;

	va_start(list, kinds);
	for (; *kinds; kinds++)
		sum += *kinds == 'd' ? va_arg(list, double) : (double)va_arg(list, int);
	va_end(list);
	sink += count;
	return 0x400000 + (unsigned long)(sum * 16) * 16;
}

HOOKED unsigned long nine(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
			  unsigned long e, unsigned long f, unsigned long g, unsigned long h,
			  unsigned long i)
{
	return 0x500000 + 64 * (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i);
}

struct large {
	unsigned long words[5];
};
struct mixed {
	double real;
	unsigned long whole;
};

HOOKED large returns_large(unsigned long a, unsigned long b)
{
	large l = { { a, b, a + b, a * b, 7 } };

	return l;
}

HOOKED mixed returns_mixed(unsigned long a, double d)
{
	mixed m = { d * 1.5, 0x600000 + a * 64 };

	return m;
}

HOOKED double returns_double(double a, double b, unsigned long c)
{
	return a * 3 + b / 2 + (double)c;
}

HOOKED long double returns_long_double(long double a, unsigned long c)
{
	return a * 3 + (long double)c;
}

HOOKED __attribute__((target("avx"))) __m256d returns_vector(__m256d a, __m256d b, unsigned long c)
{
	return _mm256_add_pd(_mm256_mul_pd(a, b), _mm256_set1_pd((double)c));
}

__attribute__((target("avx"))) static void vectors()
{
	__m256d v = _mm256_set_pd(1, 2, 3, 4);
	double out[4];

	for (unsigned i = 0; i < 300; i++)
		v = returns_vector(v, _mm256_set1_pd(0.5), i);
	_mm256_storeu_pd(out, v);
	printf("vector %g %g %g %g\n", out[0], out[1], out[2], out[3]);
}

static void mode_passing()
{
	double d = 1;

	for (unsigned i = 0; i < 300; i++) {
		large l = returns_large(i, i + 1);
		mixed m = returns_mixed(i, d);

		unsigned long any = any_number(i, "didd", 0.5, 3, 1.25, i * 1.0);
		unsigned long all = nine(i, 2, 3, 4, 5, 6, 7, 8, 9);

		d = returns_double(d / 4, m.real, i);
		printf("%lx %lx %lx %lx %g %g %Lg\n", any, all, l.words[2] + l.words[3] + l.words[4],
		       m.whole, d, m.real, returns_long_double(2.5L, i));
		gone(any);
		gone(all);
		gone(m.whole);
	}
	if (__builtin_cpu_supports("avx"))
		vectors();
}

/* ---- shapes of code -------------------------------------------------------------------------- */

/* A leaf keeps this below its stack pointer. */
HOOKED unsigned long red_zone(unsigned long n)
{
	volatile unsigned long below[12];

	for (unsigned i = 0; i < 12; i++)
		below[i] = n * i;
	for (unsigned i = 1; i < 12; i++)
		below[i] += below[i - 1];
	return 0x7000000 + below[11] * 64;
}

HOOKED unsigned long one_field(const unsigned long *of)
{
	return *of;
}

HOOKED unsigned long branches(const unsigned long *of, unsigned long size)
{
	if (!of)
		return 0x800000;
	sink += size;
	return 0x800040 + *of;
}

HOOKED unsigned long cases(unsigned long n)
{
	switch (n % 12) {
	case 0: return 0x900000 + n * 32;
	case 1: return 0x900000 + n * 64;
	case 2: sink += n; return 0x900000 + n * 96;
	case 3: sink -= n; return 0x900000;
	case 4: return 0x900000 + sink * 0 + n * 160;
	case 5: sink ^= n; return 0x900000 + n * 192;
	case 6: return 0x900020 + n * 32;
	case 7: sink++; return 0x900040 + n * 64;
	case 8: sink--; return 0x900060;
	case 9: sink += 3; return 0x900080 + n * 32;
	case 10: return 0x9000a0 + n * 64;
	default: sink += 5; return 0x9000c0 + n * 32;
	}
}

__attribute__((noinline)) unsigned long ends_elsewhere(unsigned long n)
{
	if (n % 100 == 99)
		throw std::logic_error("through a tail call");
	sink += n;
	return 0xa00000 + n * 64;
}

/* At -O2 a jump to the other one. */
HOOKED unsigned long tail(unsigned long n)
{
	sink++;
	return ends_elsewhere(n + 1);
}

/* Its first bytes are a call, which an exception comes back through. */
HOOKED unsigned long calls_first(unsigned long n)
{
	return ends_elsewhere(n) + 0xe00000 - 0xa00000;
}

static unsigned long and_gone(unsigned long object)
{
	gone(object);
	return object;
}

static void mode_shapes()
{
	unsigned long value, sum = 0, threw = 0;

	for (unsigned long i = 0; i < 600; i++) {
		value = 0xb00000 + i * 64;
		sum = sum * 31 + and_gone(red_zone(i));
		sum = sum * 31 + and_gone(one_field(&value));
		sum = sum * 31 + and_gone(cases(i));
		sum = sum * 31 + branches(i % 2 ? &i : nullptr, i);
		try {
			sum = sum * 31 + and_gone(tail(i));
			sum = sum * 31 + and_gone(calls_first(i));
		} catch (const std::logic_error &) {
			threw++;
		}
	}
	printf("shapes %lx %lu\n", sum, threw);
}

/* ---- libraries, processes --------------------------------------------------------------------- */

static void mode_late(const char *library)
{
	for (unsigned round = 0; round < 3; round++) {
		void *handle = dlopen(library, RTLD_NOW);
		unsigned long (*get)(unsigned long);

		if (!handle) {
			puts(dlerror());
			return;
		}
		*(void **)&get = dlsym(handle, "plugin_get");
		gone(0xd00000 + 77 * 64); /* of the library's constructor */
		printf("%lx\n", and_gone(get(round + 1)));
		printf("%lx\n", and_gone(get(round + 2)));
		dlclose(handle);
	}
}

static void mode_fork()
{
	void *mine = pool_get(48);
	pid_t child = fork();

	if (!child) {
		void *more = pool_get(48);

		pool_put(more);
		pool_put(mine);
		_exit(more != mine ? 7 : 8);
	}
	int status = 0;

	waitpid(child, &status, 0);
	pool_put(mine);
	printf("fork %d\n", WEXITSTATUS(status));
}

static unsigned long from_handler;

static void on_signal(int)
{
	unsigned long value = 0xb00000;

	from_handler += and_gone(one_field(&value));
}

/* Breakpoints are signals, too: in handlers and threads that block all of them. */
static void mode_signals()
{
	struct sigaction action = {};
	unsigned long value = 0xb00040;
	sigset_t all;

	action.sa_handler = on_signal;
	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, nullptr);
	sigaction(SIGTRAP, &action, nullptr);
	for (unsigned i = 0; i < 10; i++)
		raise(SIGUSR1);
	raise(SIGTRAP);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, nullptr);
	for (unsigned i = 0; i < 10; i++)
		from_handler += and_gone(one_field(&value));
	sigprocmask(SIG_UNBLOCK, &all, nullptr);
	printf("signals %lx\n", from_handler);
}

/* The first instructions of a hooked function run elsewhere; a crash there is one in the function. */
HOOKED unsigned long reads_first(const unsigned long *of)
{
	unsigned long got = *of;

	sink += got;
	return got * 3;
}

/* Nanoseconds per round: a pair of calls of the pool, or one call of a function of two instructions. */
static void mode_time(const char *what, long rounds)
{
	unsigned long sum = 0, value = 0xc00000;
	timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	if (!strcmp(what, "pool"))
		for (long i = 0; i < rounds; i++)
			pool_put(pool_get(48));
	else
		for (long i = 0; i < rounds; i++)
			sum += one_field(&value);
	clock_gettime(CLOCK_MONOTONIC, &to);
	sink += sum;
	printf("%.2f\n", ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
				 (double)rounds);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "threads"))
		mode_threads();
	else if (!strcmp(mode, "throw"))
		mode_throw();
	else if (!strcmp(mode, "longjmp"))
		mode_longjmp();
	else if (!strcmp(mode, "recursion"))
		mode_recursion();
	else if (!strcmp(mode, "passing"))
		mode_passing();
	else if (!strcmp(mode, "shapes"))
		mode_shapes();
	else if (!strcmp(mode, "late") && argc > 2)
		mode_late(argv[2]);
	else if (!strcmp(mode, "fork"))
		mode_fork();
	else if (!strcmp(mode, "signals"))
		mode_signals();
	else if (!strcmp(mode, "crash"))
		sink += reads_first(nullptr);
	else if (!strcmp(mode, "time") && argc > 3)
		mode_time(argv[2], atol(argv[3]));
	else
		return 2;
	return 0;
}
