#include "jit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "emit.h"
#include "scope.h"

#define CODE_BYTES (64 * 1024)
#define TICK_NS 5000000L
/* Calls per millisecond from which a type is worth optimising. */
#define HOT_PER_MS 11

#define SLOT_OFFSET offsetof(struct object, slot)
#define FLAGS_OFFSET offsetof(struct object, flags)
#define DEPTH_OFFSET offsetof(struct object, depth)

struct jit {
	enum variant variant;
	struct emitter emitter;
	FILE *perf_map;
	pthread_t thread;
	pthread_mutex_t lock; /* the emitter and the map */
	_Atomic bool stopping;
	struct object *detach_next;
};

static struct jit jit = { .lock = PTHREAD_MUTEX_INITIALIZER };

const char *const variant_names[VARIANT_COUNT] = {
	[VARIANT_NARROW] = "narrow", [VARIANT_WIDE] = "wide",
	[VARIANT_STALE] = "stale",   [VARIANT_CONFLATED] = "conflated",
	[VARIANT_CACHED] = "cached", [VARIANT_INNOCENT] = "innocent",
};

/* Names what was emitted since `start` and returns it. */
static void *jit_finish(const uint8_t *start, const struct type *type, const char *method, int tier)
{
	if (jit.perf_map) {
		fprintf(jit.perf_map, "%lx %lx %s.%s [tier %d]\n", (unsigned long)start,
			(unsigned long)(jit.emitter.next - start), type->name, method, tier);
		fflush(jit.perf_map);
	}
	jit.emitter.next = (uint8_t *)(((uintptr_t)jit.emitter.next + 15) & ~(uintptr_t)15);
	return (void *)(uintptr_t)start;
}

static void *jit_emit_call(const struct type *type, const char *method,
			   int (*function)(struct object *self))
{
	struct emitter *e = &jit.emitter;
	uint8_t *start = e->next;

	emit_prologue(e);
	emit_call(e, (const void *)(uintptr_t)function, NULL);
	emit_epilogue(e);
	return jit_finish(start, type, method, 1);
}

static void *jit_emit_enter(const struct type *type)
{
	struct emitter *e = &jit.emitter;
	uint8_t *start = e->next;

	emit_prologue(e);
	emit_or_dword(e, FLAGS_OFFSET, FLAG_TIER2);
	emit_call(e, (const void *)(uintptr_t)type->enter, NULL);
	emit_epilogue(e);
	return jit_finish(start, type, "__enter__", 2);
}

/* The values of an object that tier 1 entered are about to go: nobody may follow them. */
static void jit_emit_detach(struct emitter *e, const struct type *type)
{
	switch (jit.variant) {
	case VARIANT_NARROW:
		break;
	case VARIANT_STALE:
		emit_save_object(e, &jit.detach_next);
		break;
	case VARIANT_CONFLATED:
		emit_and_byte(e, SLOT_OFFSET, (uint8_t)~SLOT_VALUES);
		emit_call(e, (const void *)(uintptr_t)scope_note, type);
		break;
	default:
		emit_and_byte(e, SLOT_OFFSET, (uint8_t)~SLOT_VALUES);
		break;
	}
}

/* What is left to do for such an object once its slot is reset. */
static void jit_emit_close(struct emitter *e)
{
	switch (jit.variant) {
	case VARIANT_NARROW:
		emit_and_byte(e, SLOT_OFFSET, (uint8_t)~SLOT_VALUES);
		break;
	case VARIANT_WIDE:
		emit_and_qword(e, DEPTH_OFFSET, ~((uint64_t)3 << 31));
		break;
	default:
		break;
	}
}

static void *jit_emit_exit(const struct type *type)
{
	struct emitter *e = &jit.emitter;
	uint8_t *start = e->next;
	struct jump matched, done;

	emit_prologue(e);
	if (jit.variant == VARIANT_STALE)
		emit_and_byte_through(e, &jit.detach_next, SLOT_OFFSET, (uint8_t)~SLOT_VALUES);
	emit_call(e, (const void *)(uintptr_t)scope_restore, NULL);
	matched = emit_jump_if_set(e, FLAGS_OFFSET, FLAG_TIER2);
	jit_emit_detach(e, type);
	emit_load_store(e, &type->cache.slot, SLOT_OFFSET);
	jit_emit_close(e);
	done = emit_jump(e);
	emit_land(e, matched);
	emit_store(e, SLOT_OFFSET, slot_encode(type->empty));
	emit_land(e, done);
	emit_and_dword(e, FLAGS_OFFSET, ~(uint32_t)FLAG_TIER2);
	emit_and_dword(e, DEPTH_OFFSET, ~(uint32_t)DEPTH_OPEN);
	emit_epilogue(e);
	return jit_finish(start, type, "__exit__", 2);
}

static void jit_install(struct type *type, int tier)
{
	struct code *code = calloc(1, sizeof(*code));

	if (!code)
		return;
	pthread_mutex_lock(&jit.lock);
	code->tier = tier;
	code->previous = atomic_load(&type->code);
	code->enter =
		tier == 1 ? jit_emit_call(type, "__enter__", type->enter) : jit_emit_enter(type);
	code->exit = tier == 1 ? jit_emit_call(type, "__exit__", type->exit) : jit_emit_exit(type);
	pthread_mutex_unlock(&jit.lock);
	if (jit.variant == VARIANT_CACHED)
		type_cache_open(type);
	atomic_store(&type->code, code);
}

void jit_force_compile(struct type *type)
{
	jit_install(type, 1);
}

static long elapsed_ns(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * 1000000000L + (to->tv_nsec - from->tv_nsec);
}

/* One look at a type: it is compiled when it is hot, and kept up to date from then on. */
static void jit_consider(struct type *type, long interval_ns)
{
	const struct code *code = atomic_load(&type->code);
	long calls = atomic_exchange(&type->calls, 0);

	if (!code || !(type->flags & TYPE_TIER2))
		return;
	if (code->tier == 1 && calls * 1000000L > HOT_PER_MS * interval_ns) {
		jit_install(type, 2);
	} else if (code->tier == 2) {
		type_cache_refresh(type);
	}
}

static void *jit_thread(void *unused)
{
	const struct timespec tick = { 0, TICK_NS };
	struct timespec last, now;

	clock_gettime(CLOCK_MONOTONIC, &last);
	while (!atomic_load(&jit.stopping)) {
		nanosleep(&tick, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		jit_consider(&no_grad_type, elapsed_ns(&last, &now));
		jit_consider(&autocast_type, elapsed_ns(&last, &now));
		jit_consider(&profile_type, elapsed_ns(&last, &now));
		last = now;
	}
	return unused;
}

const struct code *jit_code(struct type *type)
{
	static const struct code interpreter = { scope_enter, scope_exit, 0, NULL };
	const struct code *code = atomic_load_explicit(&type->code, memory_order_acquire);

	return code ? code : &interpreter;
}

int jit_start(enum variant variant)
{
	char path[64];
	void *memory = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (memory == MAP_FAILED)
		return -1;
	jit.variant = variant;
	jit.emitter.start = jit.emitter.next = memory;
	jit.emitter.end = jit.emitter.start + CODE_BYTES;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	remove(path); /* a process that had this number before may have left its own */
	jit.perf_map = fopen(path, "w");
	r = pthread_create(&jit.thread, NULL, jit_thread, NULL);
	if (r != 0) {
		errno = r;
		return -1;
	}
	(void)pthread_setname_np(jit.thread, "jit-compiler");
	return 0;
}

void jit_stop(void)
{
	atomic_store(&jit.stopping, true);
	pthread_join(jit.thread, NULL);
	if (jit.perf_map)
		fclose(jit.perf_map);
}
