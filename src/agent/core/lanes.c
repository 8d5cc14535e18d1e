#include "agent/core/lanes.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "agent/core/secret.h"

#define LANES_MAX 16384u
#define EXIT_ROUNDS 3u

static struct {
	uint32_t forks; /* between the first image and this one */
	uint32_t used;	/* atomic: none from there on was ever taken */
	pthread_key_t exit_key;
	bool have_key;
	struct {
		struct thread *area; /* mapped once, kept for the next thread of this lane */
		uint32_t generation;
		uint8_t taken; /* atomic */
	} all[LANES_MAX];
} lanes;

/* Nothing is known of the contexts of this lane. */
static void tables_open(struct thread *area)
{
	area->fast.site_next = area->fast.site_last = area->tables.sites;
	area->fast.site_mask = (THREAD_SITE_PAIRS_MIN - 1) * THREAD_SITE_BIT;
	area->known.key_groups = THREAD_KEY_GROUPS_MIN;
	area->known.rules_mask = THREAD_RULES_MIN - 1;
	area->known.sites_used = area->known.spans_varied = area->known.rules_used = 0;
	area->known.forks = lanes.forks;
}

/* The log is new since a fork: context ids in the tables are the parent's, and so are its ids. */
static void lane_forget(struct thread *area)
{
	(void)raw_syscall3(SYS_madvise, area->tables.sites,
			   offsetof(struct thread, guard_page) -
				   offsetof(struct thread, tables.sites),
			   MADV_DONTNEED);
	FEATURES_TELL(fork.lane_forget, area);
	area->blocks.epoch_due = 0;
	area->known.context_next = area->known.context_end = 0;
	area->fast.next_id = area->blocks.id_end = area->blocks.id_group = 0;
	area->blocks.ring_ready = 0;
	tables_open(area);
}

static void lane_used(uint32_t lane)
{
	uint32_t used = __atomic_load_n(&lanes.used, __ATOMIC_RELAXED);

	while (used <= lane && !__atomic_compare_exchange_n(&lanes.used, &used, lane + 1, false,
							    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static uint32_t lanes_used(void)
{
	return __atomic_load_n(&lanes.used, __ATOMIC_ACQUIRE);
}

static struct thread *lane_take(void)
{
	struct thread *area;
	uint32_t i;

	for (i = 0; i < agent.plan.thread_slots; i++) {
		uint8_t free_lane = 0;

		if (__atomic_load_n(&lanes.all[i].taken, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&lanes.all[i].taken, &free_lane, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		if (!lanes.all[i].area) {
			area = memory_map_sigsafe(sizeof(*area));
			if (!area) {
				__atomic_store_n(&lanes.all[i].taken, 0, __ATOMIC_RELEASE);
				break;
			}
			(void)raw_syscall3(SYS_mprotect, area->guard_page, sizeof(area->guard_page),
					   PROT_NONE);
			tables_open(area);
			lanes.all[i].area = area;
		}
		lane_used(i);
		area = lanes.all[i].area;
		if (area->known.forks != lanes.forks)
			lane_forget(area);
		area->lane = i;
		area->generation = ++lanes.all[i].generation;
		area->fast.busy = 0;
		area->fast.id_stop = area->fast.ring_stop = 0;
		area->fast.region[0] = area->fast.region[1] = THREAD_NO_REGION;
		area->told.dispatched = area->told.stepping = 0;
		area->exit_rounds = 0;
		area->chaos.stream = 0;
		area->python_state = 0;
		memset(&area->signals, 0, sizeof(area->signals));
		area->signals.target_stack.ss_flags = SS_DISABLE;
		return area;
	}
	log_drop_sigsafe(LOG_DROP_THREAD);
	return NULL;
}

static void lane_release(struct thread *area)
{
	__atomic_store_n(&lanes.all[area->lane].taken, 0, __ATOMIC_RELEASE);
}

void thread_altstack_sigsafe(struct thread *self)
{
	stack_t ours = { .ss_sp = self->altstack, .ss_size = sizeof(self->altstack) };

	(void)raw_syscall2(SYS_sigaltstack, &ours, 0);
}

/* The row in the log and the ring; the thread itself calls it. */
static void lane_open(struct thread *self, uint64_t stack_high)
{
	struct log_thread *row = &log_map.threads[self->lane];
	struct log_thread_event event = { .lane = self->lane, .generation = self->generation };

	bool other_stack = self->stack_high != stack_high;

	self->tid = (uint32_t)raw_syscall0(SYS_gettid);
	self->stack_high = stack_high;
	self->row = row;
	FEATURES_TELL(thread.lane_open, self, other_stack);
	row->generation = self->generation;
	row->stack_high = stack_high;
	row->start_monotonic_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	row->end_monotonic_ns = 0;
	(void)raw_syscall2(SYS_prctl, PR_GET_NAME, row->name);
	secret_hide_sigsafe(row->name, sizeof(row->name), SECRET_SOMEWHERE);
	row->tid = self->tid;
	__atomic_fetch_add(&log_map.header->threads_seen, 1, __ATOMIC_RELAXED);
	event.stack_high = stack_high;
	memcpy(event.name, row->name, sizeof(event.name));
	log_event_sigsafe(LOG_THREAD_START, &event, sizeof(event));
}

/* The end of a thread is the destructor of a thread-specific value. Other destructors may still
 * free memory afterwards, so the lane is held for the first rounds (PTHREAD_DESTRUCTOR_ITERATIONS
 * is 4) and given back in the last. */
static void thread_exit(void *value)
{
	struct thread *self = value;
	stack_t off = { .ss_flags = SS_DISABLE };
	struct log_writer writer;

	if (self != thread_self)
		return;
	if (++self->exit_rounds <= EXIT_ROUNDS && !pthread_setspecific(lanes.exit_key, self))
		return;
	if (agent_switch.crash) {
		FEATURES_TELL(thread.gone, self);
		self->row->end_monotonic_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
		log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
		(void)log_append_sigsafe(&writer, LOG_THREAD_END, &self->lane, sizeof(self->lane),
					 NULL, 0);
	}
	thread_here->ended = self->tid;
	thread_here->inside = 0;
	thread_become(NULL);
	if (self->signals.target_stack.ss_flags & SS_DISABLE)
		(void)raw_syscall2(SYS_sigaltstack, &off, 0);
	lane_release(self);
}

bool thread_init_main(uint64_t stack_high)
{
	struct thread *self = lane_take();
	unsigned i;

	if (!self)
		return false;
	lanes.have_key = !pthread_key_create(&lanes.exit_key, thread_exit);
	/* Not in .data: it is large. */
	thread_nobody.fast.region[0] = thread_nobody.fast.region[1] = THREAD_NO_REGION;
	thread_nobody.fast.site_next = thread_nobody.fast.site_last = thread_nobody.tables.sites;
	for (i = 0; i < features_count; i++)
		if (features[i].start.main_thread &&
		    !features[i].start.main_thread((const void *)stack_high))
			return false;
	lane_open(self, stack_high);
	thread_become(self);
	thread_altstack_sigsafe(self);
	guard_open(self);
	return true;
}

struct thread *thread_adopt_sigsafe(void)
{
	struct thread *self;

	if (!agent_switch.crash || thread_here->ended == (uint32_t)raw_syscall0(SYS_gettid))
		return NULL;
	self = lane_take();
	if (!self)
		return NULL;
	/* Its stack's end is unknown: scans go through the kernel (context.c). */
	lane_open(self, 0);
	thread_become(self);
	/* A key below 32 has its place in the thread's own block: nothing is allocated. */
	if (lanes.have_key && lanes.exit_key < 32)
		(void)pthread_setspecific(lanes.exit_key, self);
	FEATURES_TELL(thread.known);
	return self;
}

/* Above the frame that a thread begins with are those of libc that call it (start_thread, clone3),
 * and then libc's control block. A walk that may not go there is lost in every stack. */
#define ROOT_BYTES 512u

static void thread_begin(struct thread *self, uint64_t frame)
{
	uint64_t stack_high = frame + ROOT_BYTES;

	thread_here->inside = 0;
	thread_become(self);
	guard_close(self);
	lane_open(self, stack_high);
	thread_altstack_sigsafe(self);
	if (lanes.have_key)
		(void)pthread_setspecific(lanes.exit_key, self);
	FEATURES_TELL(thread.known);
	FEATURES_TELL(thread.born);
	guard_open(self);
}

static void *thread_main(void *argument)
{
	struct thread *self = argument;

	thread_begin(self, (uint64_t)__builtin_frame_address(0));
	return self->start(self->argument);
}

/* A lane for the thread that is about to be made; NULL: it is to be made without. */
static struct thread *thread_prepare(void *start, void *argument)
{
	struct thread *area = agent_switch.crash ? lane_take() : NULL;

	if (!area)
		return NULL;
	FEATURES_TELL(thread.wanted);
	*(void **)(&area->start) = start;
	area->argument = argument;
	area->signals.blocked =
		thread_self ? thread_self->signals.blocked : 0; /* masks are inherited */
	area->signals.masked = thread_self ? thread_self->signals.masked : 0;
	return area;
}

EXPORT int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*start)(void *),
			  void *argument)
{
	struct thread *area = thread_prepare(*(void **)(&start), argument);
	int r;

	if (!area)
		return real.pthread_create(ret, attr, start, argument);
	r = real.pthread_create(ret, attr, thread_main, area);
	if (r)
		lane_release(area);
	return r;
}

/* C11's threads, which libc makes without asking for pthread_create. */
static int thrd_main(void *argument)
{
	struct thread *self = argument;
	int (*start)(void *);

	thread_begin(self, (uint64_t)__builtin_frame_address(0));
	*(void **)(&start) = *(void **)(&self->start);
	return start(self->argument);
}

EXPORT int thrd_create(pthread_t *ret, int (*start)(void *), void *argument);
EXPORT int thrd_create(pthread_t *ret, int (*start)(void *), void *argument)
{
	struct thread *area = thread_prepare(*(void **)(&start), argument);
	int r;

	if (!area)
		return real.thrd_create(ret, start, argument);
	r = real.thrd_create(ret, thrd_main, area);
	if (r)
		lane_release(area);
	return r;
}

void thread_after_fork(void)
{
	struct thread *self = thread_self;
	uint32_t i;

	lanes.forks++;
	for (i = 0; i < lanes_used(); i++)
		lanes.all[i].taken = self && self->lane == i;
	if (!self)
		return;
	lane_forget(self);
	guard_close(self);
	FEATURES_TELL(fork.forget);
	self->signals.last_crash = self->signals.survived = 0;
	lane_open(self, self->stack_high);
	guard_open(self);
}

bool thread_by_stack_sigsafe(uint64_t low, uint64_t high, uint32_t *ret_lane)
{
	uint32_t i;

	for (i = 0; i < lanes_used(); i++) {
		const struct thread *area = lanes.all[i].area;

		if (!__atomic_load_n(&lanes.all[i].taken, __ATOMIC_RELAXED) || !area ||
		    area->stack_high <= low || area->stack_high > high)
			continue;
		*ret_lane = i;
		return true;
	}
	return false;
}

const struct thread *lane_area_sigsafe(uint32_t n)
{
	return n < LANES_MAX ? lanes.all[n].area : NULL;
}

uint32_t thread_lanes_in_use_sigsafe(void)
{
	uint32_t i, count = 0;

	for (i = 0; i < lanes_used(); i++)
		count += lanes.all[i].taken;
	return count;
}
