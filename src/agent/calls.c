#include "agent/calls.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "agent/agent.h"
#include "agent/arch/x86_64.h"
#include "agent/calls_table.h"
#include "agent/hit.h"
#include "agent/memory.h"
#include "agent/pages.h"
#include "agent/signals.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define DISPATCH_ON 1
#define SELECTOR_BLOCK 1
#define CODE_USER_DISPATCH 2 /* SYS_USER_DISPATCH, <asm-generic/siginfo.h> */
#define ARCH_GATES 2048u
#define GATE_BYTES 8u
#define PAGE 4096u
#define IOVECS_MOST 1024u
#define MESSAGES_MOST 16u
#define OUTPUTS_MOST 64u
#define BUSY_MOST 64u

extern uint64_t arch_gate_targets[ARCH_GATES] __attribute__((visibility("hidden")));
extern const char arch_gates[] __attribute__((visibility("hidden")));

volatile uint8_t calls_selector;

/* What the target has asked for with mprotect: PROT_… + 1 by page; 0: nothing. */
static uint8_t *rights;

/* A call: its number, what it was given, and what it is given instead. */
struct call {
	ucontext_t *context;
	long number;
	long given[6], made[6];
	unsigned list_at; /* of a list of buffers: the argument that has it; its length is the next
			   */
};

/* Memory that a call writes to: of `low`, at most up to `high`. exact: it wrote all of it. */
struct output {
	uint64_t low, high;
	bool exact;
};

struct outputs {
	struct output list[OUTPUTS_MOST];
	uint32_t count;
};

static uint64_t greg(const ucontext_t *context, int n)
{
	return (uint64_t)context->uc_mcontext.gregs[n];
}

static bool held(long value)
{
	return pages_hold((uint64_t)value);
}

static long writable(long value)
{
	return held(value) ? value + (long)pages.distance : value;
}

/* ---- start ----------------------------------------------------------------------------------- */

static long dispatch_ask(void)
{
	return raw_syscall6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON,
			    (long)agent.text_low, (long)(agent.text_high - agent.text_low),
			    (long)&calls_selector, 0);
}

int calls_init(void)
{
	long r = dispatch_ask();

	if (r < 0)
		return (int)-r;
	rights = memory_map_sigsafe(pages.bytes / PAGE);
	if (!rights)
		return ENOMEM;
	if (thread_self)
		thread_self->dispatched = 1;
	return 0;
}

void calls_on(void)
{
	if (calls_selector != SELECTOR_BLOCK)
		calls_selector = SELECTOR_BLOCK;
}

/* Signals that are blocked now were so from the start of the thread, by its attributes. */
void calls_thread_sigsafe(void)
{
	uint64_t open = SIGNALS_KEPT_OPEN;

	if (!pages.bytes)
		return;
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, &open, 0, 8);
	if (dispatch_ask() == 0 && thread_self)
		thread_self->dispatched = 1;
}

bool calls_denied_sigsafe(uint64_t address)
{
	uint8_t wish = rights ? rights[(address - pages.base) / PAGE] : 0;

	return wish && !((wish - 1) & PROT_WRITE);
}

/* ---- how a call is made ------------------------------------------------------------------------
 */

static long call_make(const struct call *call)
{
	return raw_syscall6(call->number, call->made[0], call->made[1], call->made[2],
			    call->made[3], call->made[4], call->made[5]);
}

static void call_answer(struct call *call, long value)
{
	call->context->uc_mcontext.gregs[REG_RAX] = value;
}

/* Where it was to be made, as far as anybody can tell. Without a gate it is made here. */
static void call_pass(struct call *call)
{
	uint64_t back = greg(call->context, REG_RIP);
	uint32_t at = (uint32_t)(back * 0x9e3779b97f4a7c15ull >> 40), i;

	for (i = 0; i < ARCH_GATES; i++, at++) {
		uint64_t *target = &arch_gate_targets[at % ARCH_GATES], none = 0;

		if (__atomic_load_n(target, __ATOMIC_RELAXED) != back &&
		    !__atomic_compare_exchange_n(target, &none, back, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED) &&
		    none != back)
			continue;
		call->context->uc_mcontext.gregs[REG_RIP] =
			(greg_t)(arch_gates + GATE_BYTES * (at % ARCH_GATES));
		return;
	}
	call_answer(call, call_make(call));
}

/* ---- who is told of it -------------------------------------------------------------------------
 */

/* Objects that a call may write to while it is being made: meanwhile they change without a hit. */
struct busy {
	struct {
		uint32_t object;
		uint64_t number;
	} list[BUSY_MOST];
	uint32_t count;
};

static void outputs_add(struct outputs *outputs, long low, uint64_t bytes, bool exact)
{
	struct pages_slot *slot;
	uint64_t end;

	if (!held(low) || outputs->count == OUTPUTS_MOST || !bytes)
		return;
	slot = pages_slot_sigsafe((uint64_t)low);
	end = slot ? pages_slot_end_sigsafe((uint64_t)low) : (uint64_t)low + 1;
	/* How much is not known: to the end of its block. */
	if (bytes != UINT64_MAX)
		end = (uint64_t)low + bytes;
	if (end > pages.top || end < (uint64_t)low)
		end = pages.top;
	outputs->list[outputs->count++] = (struct output){ (uint64_t)low, end, exact };
}

static void busy_begin(const struct outputs *outputs, struct busy *busy)
{
	uint64_t at, mask = pages_signals_block();
	struct pages_locks locks;
	uint32_t i, next;

	busy->count = 0;
	for (i = 0; i < outputs->count; i++) {
		const struct output *output = &outputs->list[i];

		locks = pages_lock_sigsafe(output->low, output->high);
		for (at = output->low; at < output->high; at = pages_slot_end_sigsafe(at)) {
			struct pages_slot *slot = pages_slot_sigsafe(at);

			for (next = slot ? slot->armed : 0; next && busy->count < BUSY_MOST;
			     next = pages.objects[next - 1].next) {
				struct pages_armed *object = &pages.objects[next - 1];

				object->calls++;
				busy->list[busy->count].object = next - 1;
				busy->list[busy->count++].number = object->armed.number;
			}
		}
		pages_unlock_sigsafe(locks);
	}
	pages_signals_restore(mask);
}

static void busy_end(const struct busy *busy)
{
	uint64_t mask = pages_signals_block();
	uint32_t i;

	for (i = 0; i < busy->count; i++) {
		struct pages_armed *object = &pages.objects[busy->list[i].object];
		struct pages_locks locks =
			pages_lock_sigsafe(object->armed.address, object->armed.address + 1);

		if (object->armed.number == busy->list[i].number && object->calls)
			object->calls--;
		pages_unlock_sigsafe(locks);
	}
	pages_signals_restore(mask);
}

/* An object in the range: was it written to? Under the lock. */
static bool object_written(struct pages_armed *object, const struct output *output,
			   uint64_t old[WATCH_WORDS], uint64_t new[WATCH_WORDS])
{
	struct watch_armed *armed = &object->armed;

	if (!armed->number || armed->address >= output->high ||
	    armed->address + armed->bytes <= output->low)
		return false;
	memset(new, 0, WATCH_WORDS * sizeof(new[0]));
	memcpy(new, (const void *)(armed->address + pages.distance), armed->bytes);
	memcpy(old, armed->last, WATCH_WORDS * sizeof(old[0]));
	if (!output->exact && !memcmp(old, new, WATCH_WORDS * sizeof(old[0])))
		return false;
	memcpy(armed->last, new, sizeof(armed->last));
	return true;
}

static void slot_tell(struct pages_slot *slot, const struct output *output, struct call *call)
{
	uint64_t old[WATCH_WORDS], new[WATCH_WORDS];
	struct watch_armed copy;
	struct pages_locks locks;
	uint32_t next, skip, i;
	bool written;

	/* One at a time: told without the lock, by their place in the list. */
	for (skip = 0;; skip++) {
		locks = pages_lock_sigsafe(slot->start, slot->start + 1);
		next = slot->armed;
		for (i = 0; i < skip && next; i++)
			next = pages.objects[next - 1].next;
		written = next && object_written(&pages.objects[next - 1], output, old, new);
		if (written)
			copy = pages.objects[next - 1].armed;
		pages_unlock_sigsafe(locks);
		if (!next)
			return;
		if (written)
			hit_store_sigsafe(&copy, old, new, (int)call->number, call->context);
	}
}

static void outputs_tell(const struct outputs *outputs, struct call *call)
{
	uint64_t at, mask = pages_signals_block();
	uint32_t i;

	for (i = 0; i < outputs->count; i++) {
		const struct output *output = &outputs->list[i];

		for (at = output->low; at < output->high; at = pages_slot_end_sigsafe(at)) {
			struct pages_slot *slot = pages_slot_sigsafe(at);

			if (slot && slot->armed)
				slot_tell(slot, output, call);
		}
	}
	pages_signals_restore(mask);
}

/* What was to be filled, and what of it has been filled when the call says so. */
typedef void (*outputs_fn)(const struct call *call, long result, struct outputs *ret);

static void call_redirect(struct call *call, outputs_fn outputs_of)
{
	struct outputs outputs = { .count = 0 };
	struct busy busy;
	long result;

	outputs_of(call, LONG_MAX, &outputs);
	busy_begin(&outputs, &busy);
	result = call_make(call);
	outputs.count = 0;
	outputs_of(call, result, &outputs);
	call_answer(call, result);
	outputs_tell(&outputs, call);
	busy_end(&busy);
}

/* ---- calls with plain pointers -----------------------------------------------------------------
 */

static void plain_outputs(const struct call *call, long result, struct outputs *ret)
{
	const struct call_output *row;
	bool known[6] = { false };
	uint32_t i;

	for (row = call_outputs(call->number); row && row->number == call->number; row++) {
		uint64_t bytes = row->bytes;

		known[row->argument] = true;
		if (result < 0 && result > -4096)
			continue;
		if (row->how == CALL_RETURNS_BYTES)
			bytes *= (uint64_t)result;
		/* recv can return more than there was room for. */
		if (row->how == CALL_RETURNS_BYTES && row->bytes == 1 &&
		    bytes > (uint64_t)call->given[row->argument + 1])
			bytes = (uint64_t)call->given[row->argument + 1];
		if (result == LONG_MAX) /* not made yet */
			bytes = UINT64_MAX;
		outputs_add(ret, call->given[row->argument], bytes, result != LONG_MAX);
	}
	for (i = 0; i < 6; i++)
		if (!known[i])
			outputs_add(ret, call->given[i], UINT64_MAX, false);
}

static void call_plain(struct call *call)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < 6; i++)
		any |= held(call->given[i]);
	if (!any || call_only_reads(call->number)) {
		call_pass(call);
		return;
	}
	for (i = 0; i < 6; i++)
		call->made[i] = writable(call->given[i]);
	call_redirect(call, plain_outputs);
}

/* ---- lists of buffers --------------------------------------------------------------------------
 */

/* Reads the target's list and moves what is in watched pages. False: nothing is, or it cannot be
 * read; then the kernel is to say so. */
static bool iovecs_take(long at, long count, struct iovec *ret)
{
	bool any = false;
	long i;

	if (count < 0 || count > (long)IOVECS_MOST ||
	    !watch_read_sigsafe(ret, (uint64_t)at, (uint32_t)(count * (long)sizeof(*ret))))
		return false;
	for (i = 0; i < count; i++) {
		any |= held((long)ret[i].iov_base) && ret[i].iov_len;
		ret[i].iov_base = (void *)writable((long)ret[i].iov_base);
	}
	return any;
}

/* `list` is as the kernel saw it. */
static void iovecs_outputs(const struct iovec *list, long count, long result, struct outputs *ret)
{
	uint64_t left = result < 0 ? 0 : (uint64_t)result, bytes;
	long i;

	for (i = 0; i < count && left; i++) {
		bytes = list[i].iov_len < left ? list[i].iov_len : left;
		outputs_add(ret, (long)list[i].iov_base - (long)pages.distance, bytes,
			    result != LONG_MAX);
		if (result != LONG_MAX)
			left -= bytes;
	}
}

static void list_outputs(const struct call *call, long result, struct outputs *ret)
{
	iovecs_outputs((const struct iovec *)call->made[call->list_at],
		       call->made[call->list_at + 1], result, ret);
}

/* readv and its kin: what is read goes to a list of buffers. */
static __attribute__((noinline)) void call_list(struct call *call, unsigned at)
{
	struct iovec list[IOVECS_MOST];

	if (!iovecs_take(call->given[at], call->given[at + 1], list)) {
		call_pass(call);
		return;
	}
	call->list_at = at;
	call->made[at] = (long)list;
	call_redirect(call, list_outputs);
}

/* A message: its own buffers, and what is written back into it. */
static bool message_take(const struct msghdr *from, struct msghdr *ret, struct iovec *list,
			 uint64_t room)
{
	bool any = held((long)from->msg_name) || held((long)from->msg_control);

	*ret = *from;
	ret->msg_name = (void *)writable((long)from->msg_name);
	ret->msg_control = (void *)writable((long)from->msg_control);
	if (from->msg_iovlen > room ||
	    !watch_read_sigsafe(list, (uint64_t)from->msg_iov,
				(uint32_t)(from->msg_iovlen * sizeof(*list))))
		return false;
	any |= iovecs_take((long)from->msg_iov, (long)from->msg_iovlen, list);
	ret->msg_iov = list;
	return any;
}

static void message_outputs(const struct msghdr *message, long result, struct outputs *ret)
{
	iovecs_outputs(message->msg_iov, (long)message->msg_iovlen, result, ret);
	if (result < 0)
		return;
	outputs_add(ret, (long)message->msg_name - (long)pages.distance, message->msg_namelen,
		    false);
	outputs_add(ret, (long)message->msg_control - (long)pages.distance, message->msg_controllen,
		    false);
}

static void message_back(uint64_t to, const struct msghdr *from)
{
	struct msghdr *message = (void *)writable((long)to);

	message->msg_namelen = from->msg_namelen;
	message->msg_controllen = from->msg_controllen;
	message->msg_flags = from->msg_flags;
}

static void recvmsg_outputs(const struct call *call, long result, struct outputs *ret)
{
	message_outputs((const struct msghdr *)call->made[1], result, ret);
	outputs_add(ret, call->given[1], sizeof(struct msghdr), false);
	if (result >= 0 && result != LONG_MAX)
		message_back((uint64_t)call->given[1], (const struct msghdr *)call->made[1]);
}

static __attribute__((noinline)) void call_recvmsg(struct call *call)
{
	struct iovec list[IOVECS_MOST];
	struct msghdr given, made;

	if (!watch_read_sigsafe(&given, (uint64_t)call->given[1], sizeof(given)) ||
	    (!message_take(&given, &made, list, IOVECS_MOST) && !held(call->given[1]))) {
		call_pass(call);
		return;
	}
	call->made[1] = (long)&made;
	call_redirect(call, recvmsg_outputs);
}

static void recvmmsg_outputs(const struct call *call, long result, struct outputs *ret)
{
	const struct mmsghdr *made = (const void *)call->made[1];
	struct mmsghdr *given = (void *)writable(call->given[1]);
	long count = result == LONG_MAX ? call->made[2] : result, i;

	outputs_add(ret, call->given[1], (uint64_t)call->made[2] * sizeof(*made), false);
	for (i = 0; i < count; i++) {
		message_outputs(&made[i].msg_hdr,
				result == LONG_MAX ? LONG_MAX : (long)made[i].msg_len, ret);
		if (result == LONG_MAX)
			continue;
		message_back((uint64_t)(call->given[1] + i * (long)sizeof(*made)),
			     &made[i].msg_hdr);
		given[i].msg_len = made[i].msg_len;
	}
}

static __attribute__((noinline)) void call_recvmmsg(struct call *call)
{
	struct mmsghdr given[MESSAGES_MOST], made[MESSAGES_MOST];
	struct iovec list[IOVECS_MOST];
	uint64_t used = 0;
	bool any = held(call->given[1]);
	long i, count = call->given[2];

	if (count < 0 || count > (long)MESSAGES_MOST)
		count = MESSAGES_MOST;
	if (!watch_read_sigsafe(given, (uint64_t)call->given[1],
				(uint32_t)(count * (long)sizeof(given[0])))) {
		call_pass(call);
		return;
	}
	for (i = 0; i < count; i++) {
		made[i] = given[i];
		any |= message_take(&given[i].msg_hdr, &made[i].msg_hdr, list + used,
				    IOVECS_MOST - used);
		used += given[i].msg_hdr.msg_iovlen;
		if (used > IOVECS_MOST)
			break;
	}
	if (!any || i < count) {
		call_pass(call);
		return;
	}
	call->made[1] = (long)made;
	call->made[2] = count;
	call->made[4] = writable(call->given[4]);
	call_redirect(call, recvmmsg_outputs);
}

/* ---- signals -----------------------------------------------------------------------------------
 */

/* The mask is that of the interrupted code, which comes back when we return. */
static void call_sigprocmask(struct call *call)
{
	uint64_t set = 0, now, old;

	if (call->given[3] != 8) {
		call_pass(call);
		return;
	}
	memcpy(&old, &call->context->uc_sigmask, sizeof(old));
	now = old;
	if (call->given[1] && !watch_read_sigsafe(&set, (uint64_t)call->given[1], 8)) {
		call_answer(call, -EFAULT);
		return;
	}
	if (call->given[1] && call->given[0] == SIG_BLOCK)
		now |= set;
	else if (call->given[1] && call->given[0] == SIG_UNBLOCK)
		now &= ~set;
	else if (call->given[1] && call->given[0] == SIG_SETMASK)
		now = set;
	else if (call->given[1]) {
		call_answer(call, -EINVAL);
		return;
	}
	now &= ~(SIGNALS_KEPT_OPEN | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1));
	memcpy(&call->context->uc_sigmask, &now, sizeof(now));
	call_answer(call, 0);
	/* The kernel itself writes, and says so if it cannot. */
	if (call->given[2] &&
	    raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, 0, writable(call->given[2]), 8) == 0) {
		struct outputs outputs = { .count = 0 };

		memcpy((void *)writable(call->given[2]), &old, sizeof(old));
		outputs_add(&outputs, call->given[2], 8, true);
		outputs_tell(&outputs, call);
	} else if (call->given[2]) {
		call_answer(call, -EFAULT);
	}
}

/* As the kernel has it: <asm/signal.h>. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

/* Set around libc, one that we need is kept beside ours, as when it is set through libc. */
static void call_own_action(struct call *call, int signo, const struct kernel_action *action)
{
	struct outputs outputs = { .count = 0 };
	struct kernel_action was = { 0 };
	struct sigaction before;

	signals_target_action_sigsafe(signo, &before);
	was.handler = (uint64_t)before.sa_handler;
	was.flags = (uint64_t)before.sa_flags;
	memcpy(&was.mask, &before.sa_mask, sizeof(was.mask));
	if (action)
		signals_raw_action_sigsafe(signo, action->handler, action->flags, action->mask);
	call_answer(call, 0);
	if (!call->given[2])
		return;
	memcpy((void *)writable(call->given[2]), &was, sizeof(was));
	outputs_add(&outputs, call->given[2], sizeof(was), true);
	outputs_tell(&outputs, call);
}

static void call_sigaction(struct call *call)
{
	int signo = (int)call->given[0];
	struct kernel_action action;
	bool ours = signo > 0 && signo < 64 && (SIGNALS_KEPT_OPEN & 1ull << (signo - 1));

	if (call->given[3] != 8 ||
	    (ours && call->given[2] &&
	     memory_readable_sigsafe((uint64_t)call->given[2], sizeof(action)) < sizeof(action))) {
		call_plain(call);
		return;
	}
	if (!call->given[1]) {
		if (ours)
			call_own_action(call, signo, NULL);
		else
			call_plain(call);
		return;
	}
	if (!watch_read_sigsafe(&action, (uint64_t)call->given[1], sizeof(action))) {
		call_plain(call);
		return;
	}
	if (ours) {
		call_own_action(call, signo, &action);
		return;
	}
	if (!(action.mask & SIGNALS_KEPT_OPEN)) {
		call_plain(call);
		return;
	}
	action.mask &= ~SIGNALS_KEPT_OPEN;
	call->made[1] = (long)&action;
	call->made[2] = writable(call->given[2]);
	call_redirect(call, plain_outputs);
}

/* Waiting with another mask: argument `at` points to it. */
static void call_masked(struct call *call, unsigned at)
{
	uint64_t mask;

	if (!call->given[at] || !watch_read_sigsafe(&mask, (uint64_t)call->given[at], 8) ||
	    !(mask & SIGNALS_KEPT_OPEN)) {
		call_plain(call);
		return;
	}
	for (unsigned i = 0; i < 6; i++)
		call->made[i] = writable(call->given[i]);
	mask &= ~SIGNALS_KEPT_OPEN;
	call->made[at] = (long)&mask;
	call_redirect(call, plain_outputs);
}

static void call_pselect(struct call *call)
{
	uint64_t pair[2], mask;

	if (!call->given[5] || !watch_read_sigsafe(pair, (uint64_t)call->given[5], sizeof(pair)) ||
	    !pair[0] || !watch_read_sigsafe(&mask, pair[0], 8) || !(mask & SIGNALS_KEPT_OPEN)) {
		call_plain(call);
		return;
	}
	for (unsigned i = 0; i < 5; i++)
		call->made[i] = writable(call->given[i]);
	mask &= ~SIGNALS_KEPT_OPEN;
	pair[0] = (uint64_t)&mask;
	call->made[5] = (long)pair;
	call_redirect(call, plain_outputs);
}

/* ---- processes ---------------------------------------------------------------------------------
 */

/* A child that does not share its memory must not share the watched pages: it gets a copy of them.
 * Such a call is made here, on whatever stack the child is to have: its registers come back with
 * the return from this handler, in both. */
static void call_fork(struct call *call, unsigned stack_at, long stack)
{
	int fd = pages_copy_sigsafe();
	long child;

	if (fd < 0) {
		call_answer(call, -ENOMEM);
		return;
	}
	if (stack_at < 6)
		call->made[stack_at] = 0;
	child = call_make(call);
	if (child == 0) {
		bool own = pages_adopt_sigsafe(fd);

		if (own)
			(void)dispatch_ask();
		if (stack)
			call->context->uc_mcontext.gregs[REG_RSP] = stack;
	} else {
		(void)raw_syscall1(SYS_close, fd);
	}
	call_answer(call, child);
}

static void call_clone(struct call *call)
{
	if (call->given[0] & CLONE_VM)
		call_pass(call);
	else
		call_fork(call, 1, call->given[1]);
}

static void call_clone3(struct call *call)
{
	uint64_t arguments[11] = { 0 }, bytes = (uint64_t)call->given[1];
	long stack = 0;

	if (bytes < 64 || bytes > sizeof(arguments) ||
	    !watch_read_sigsafe(arguments, (uint64_t)call->given[0], (uint32_t)bytes) ||
	    (arguments[0] & CLONE_VM)) {
		call_pass(call);
		return;
	}
	if (arguments[5])
		stack = (long)(arguments[5] + arguments[6]);
	arguments[5] = arguments[6] = 0;
	call->made[0] = (long)arguments;
	call_fork(call, 6, stack);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

/* The target protects memory that it was given: so it is, but it never becomes really writable. */
static void call_mprotect(struct call *call)
{
	uint64_t at = (uint64_t)call->given[0], bytes = (uint64_t)call->given[1], page;
	long result;

	if (!held(call->given[0]) || bytes > pages.top - at || pages.yielded) {
		call_pass(call);
		return;
	}
	call->made[2] &= ~(long)PROT_WRITE;
	if (call->given[2] & PROT_WRITE)
		call->made[2] |= PROT_READ;
	result = call_make(call);
	for (page = at; !result && page < at + bytes; page += PAGE)
		rights[(page - pages.base) / PAGE] = (uint8_t)((call->given[2] & 7) + 1);
	call_answer(call, result);
}

/* Memory of malloc reads as zeros afterwards; ours is a file's. */
static void call_madvise(struct call *call)
{
	if (!held(call->given[0])) {
		call_pass(call);
	} else if (call->given[2] == MADV_DONTNEED) {
		call->made[0] = writable(call->given[0]);
		call->made[2] = MADV_REMOVE;
		call_redirect(call, plain_outputs);
	} else {
		call_answer(call, 0);
	}
}

/* Waiters are found by their address: only what the kernel writes to is moved, and of those that
 * inherit priorities that is always both, those who wait and those who wake. */
static void call_futex(struct call *call)
{
	switch (call->given[1] & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_UNLOCK_PI:
	case FUTEX_TRYLOCK_PI:
	case 13: /* FUTEX_LOCK_PI2 */
		if (!held(call->given[0]))
			break;
		call->made[0] = writable(call->given[0]);
		call_redirect(call, plain_outputs);
		return;
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_WAKE_OP:
		if (!held(call->given[4]))
			break;
		call->made[4] = writable(call->given[4]);
		call_redirect(call, plain_outputs);
		/* Those who wait there do so under the other address. Being woken for nothing is
		 * part of the contract. */
		if ((call->given[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_OP)
			(void)raw_syscall3(SYS_futex, call->given[4],
					   FUTEX_WAKE | (call->given[1] & FUTEX_PRIVATE_FLAG),
					   call->given[3]);
		return;
	default:
		break;
	}
	call_pass(call);
}

/* ---- the signal --------------------------------------------------------------------------------
 */

static void call_take(struct call *call)
{
	switch (call->number) {
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_process_vm_readv:
		call_list(call, 1);
		return;
	case SYS_process_vm_writev:
		if (call->given[0] == raw_syscall0(SYS_getpid))
			call_list(call, 3);
		else
			call_pass(call);
		return;
	case SYS_io_setup:
	case SYS_io_uring_setup:
		pages_yield_sigsafe();
		call_pass(call);
		return;
	case SYS_recvmsg:
		call_recvmsg(call);
		return;
	case SYS_recvmmsg:
		call_recvmmsg(call);
		return;
	case SYS_rt_sigprocmask:
		call_sigprocmask(call);
		return;
	case SYS_rt_sigaction:
		call_sigaction(call);
		return;
	case SYS_rt_sigsuspend:
		call_masked(call, 0);
		return;
	case SYS_ppoll:
		call_masked(call, 3);
		return;
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
		call_masked(call, 4);
		return;
	case SYS_pselect6:
		call_pselect(call);
		return;
	case SYS_fork:
		call_fork(call, 6, 0);
		return;
	case SYS_clone:
		call_clone(call);
		return;
	case SYS_clone3:
		call_clone3(call);
		return;
	case SYS_mprotect:
		call_mprotect(call);
		return;
	case SYS_madvise:
		call_madvise(call);
		return;
	case SYS_futex:
		call_futex(call);
		return;
	case SYS_vfork:
	case SYS_rt_sigreturn:
	case SYS_sigaltstack:
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_brk:
	case SYS_mlock:
	case SYS_munlock:
	case SYS_mincore:
	case SYS_set_robust_list:
	case SYS_arch_prctl:
	case SYS_exit:
	case SYS_exit_group:
		call_pass(call);
		return;
	default:
		call_plain(call);
	}
}

bool calls_dispatch_sigsafe(const siginfo_t *info, ucontext_t *context)
{
	struct call call = { .context = context, .number = (long)greg(context, REG_RAX) };
	static const int order[6] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };
	unsigned i;

	if (info->si_code != CODE_USER_DISPATCH)
		return false;
	for (i = 0; i < 6; i++)
		call.given[i] = call.made[i] = (long)greg(context, order[i]);
	call_take(&call);
	return true;
}
