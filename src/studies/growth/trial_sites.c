#include "studies/growth/trial_sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cstr.h"
#include "model/crash.h"
#include "studies/growth/growth_sites.h"
#include "studies/growth/whose.h"

#define CONTEXTS_TOLD 16
#define LEVELS_MOST 100u
#define TESTS_TOLD 10
#define NOTES_MAX 20

void trial_sites_deinit(struct trial_sites *sites)
{
	VEC_FREE(&sites->list, site, growth_site_deinit(site));
	said_list_deinit(&sites->notes);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct growth_test *)a)->name, ((const struct growth_test *)b)->name);
}

static int by_blocks(const void *a, const void *b)
{
	const struct growth_test *x = a, *y = b;

	return ORDER(y->blocks, x->blocks) ?: ORDER(y->bytes, x->bytes) ?: strcmp(x->name, y->name);
}

/* Which tests add most. */
static void tell_tests(const struct census *census, const struct site *site,
		       struct growth_site *ret)
{
	AUTO(mem_freep) struct growth_test *all = mem_alloc(site->moments * sizeof(all[0]));
	size_t count = 0, names = 0;

	for (size_t i = 1; i < site->moments; i++)
		all[count++] = (struct growth_test){
			.name = (char *)census->names[i],
			.times = 1,
			.blocks = site->blocks[i] - site->blocks[i - 1],
			.bytes = site->bytes[i] - site->bytes[i - 1],
		};
	qsort(all, count, sizeof(all[0]), by_name);
	for (size_t i = 0; i < count; i++) {
		if (names == 0 || by_name(&all[names - 1], &all[i]) != 0) {
			all[names++] = all[i];
			continue;
		}
		all[names - 1].times++;
		all[names - 1].blocks += all[i].blocks;
		all[names - 1].bytes += all[i].bytes;
	}
	qsort(all, names, sizeof(all[0]), by_blocks);
	for (size_t i = 0; i < names && i < TESTS_TOLD &&
			   (all[i].blocks > 0 || (all[i].blocks == 0 && all[i].bytes > 0));
	     i++) {
		all[i].name = mem_strdup(all[i].name);
		VEC_PUSH(&ret->by_test, all[i]);
	}
}

/* Tests after which it was higher than ever before and never came back. */
static uint64_t count_rises(const int64_t *levels, size_t count)
{
	int64_t floor = levels[count - 1];
	uint64_t rises = 0;

	for (size_t i = count - 1; i-- > 0;) {
		if (levels[i] >= floor)
			continue;
		floor = levels[i];
		rises++;
	}
	return rises;
}

/* The agent counts frames as calls; names may be more, with what was inlined. */
static size_t shared_frames(const struct stack *stack, unsigned int depth)
{
	size_t i = 0;

	for (; i < stack->count && depth > 0; i++)
		if (stack->frames[i].kind != FRAME_INLINE && !(stack->frames[i].flags & FRAME_TAIL))
			depth--;
	return i;
}

/* What several share is the framework's if all of those with most blocks are. */
static bool is_frameworks_site(struct event_log *log, const struct site *site,
			       struct symbols *symbols, const struct stack *first)
{
	if (!is_frameworks(first))
		return false;
	for (size_t i = 1; i < site->contexts.count && i < CONTEXTS_TOLD; i++) {
		AUTO(stack_deinit) struct stack stack = { 0 };

		if (event_log_context(log, site->contexts.items[i]->row, symbols, &stack) &&
		    !is_frameworks(&stack))
			return false;
	}
	return true;
}

static bool same_line(const struct frame *a, const struct frame *b)
{
	if (a->kind != b->kind || !cstr_same(a->function, b->function))
		return false;
	return a->line > 0 ? a->line == b->line && cstr_same(a->file, b->file)
			   : a->offset == b->offset && cstr_same(a->module, b->module);
}

/* A site's stack, of which all its contexts share the first frames. */
struct named_site {
	struct stack stack;
	size_t shared;
};

static struct named_site name_site(struct event_log *log, const struct site *site,
				   struct symbols *symbols)
{
	struct named_site ret = { 0 };

	for (size_t i = 0; i < site->contexts.count && ret.stack.count == 0; i++)
		(void)event_log_allocation(log, site->contexts.items[i]->row, symbols, &ret.stack);
	ret.shared = shared_frames(&ret.stack, site->depth);
	return ret;
}

static bool reads_alike(const struct named_site *a, const struct named_site *b)
{
	if (a->shared == 0 || a->shared != b->shared)
		return false;
	for (size_t i = 0; i < a->shared; i++)
		if (!same_line(&a->stack.frames[i], &b->stack.frames[i]))
			return false;
	return true;
}

/* A loop that was unrolled, and code that was made several times over, allocates at several
 * addresses that are one line to whoever reads it: one place. */
static void join_alike(struct event_log *log, struct symbols *symbols, struct sites *sites)
{
	AUTO(mem_freep)
	struct named_site *named = mem_alloc((sites->list.count + 1) * sizeof(named[0]));

	for (size_t i = 0; i < sites->list.count; i++)
		named[i] = name_site(log, &sites->list.items[i], symbols);
	for (size_t i = 0; i < sites->list.count; i++) {
		for (size_t k = i + 1; k < sites->list.count;) {
			if (!reads_alike(&named[i], &named[k])) {
				k++;
				continue;
			}
			sites_join(sites, i, k);
			stack_deinit(&named[k].stack);
			named[k] = named[sites->list.count];
		}
	}
	for (size_t i = 0; i < sites->list.count; i++)
		stack_deinit(&named[i].stack);
}

static struct growth_site describe(struct event_log *log, const struct census *census,
				   const struct site *site, struct symbols *symbols)
{
	size_t last = site->moments - 1;
	double tests = (double)last;
	struct named_site named = name_site(log, site, symbols);
	struct growth_site ret = {
		.key = mem_printf("%016llx", (unsigned long long)site->key),
		.context_count = site->contexts.count,
		.program = cstr_dup(log->program),
		.blocks_first = (uint64_t)site->blocks[0],
		.blocks_last = (uint64_t)site->blocks[last],
		.bytes_first = (uint64_t)site->bytes[0],
		.bytes_last = (uint64_t)site->bytes[last],
		.tests = last,
		.rises = count_rises(site->blocks[last] > site->blocks[0] ? site->blocks
									  : site->bytes,
				     site->moments),
		.blocks_per_test = (double)(site->blocks[last] - site->blocks[0]) / tests,
		.bytes_per_test = (double)(site->bytes[last] - site->bytes[0]) / tests,
		.p = site->trend.p,
		.trials = 1,
		.lines = census->lines,
	};

	for (size_t i = 0; i < site->contexts.count && i < CONTEXTS_TOLD; i++)
		strv_take(&ret.contexts,
			  mem_printf("%016llx",
				     (unsigned long long)site->contexts.items[i]->stack_hash));
	for (size_t i = 0, points = last < LEVELS_MOST ? last : LEVELS_MOST;
	     points > 0 && i <= points; i++)
		VEC_PUSH(&ret.levels, (uint64_t)site->blocks[i * last / points]);
	ret.stack = named.stack;
	ret.shared = named.shared;
	ret.framework = is_frameworks_site(log, site, symbols, &ret.stack);
	tell_tests(census, site, &ret);
	return ret;
}

/* What all its contexts share must be more than what allocates for everybody. */
static bool says_where(const struct growth_site *site)
{
	for (size_t i = 0; i < site->shared && i < site->stack.count; i++)
		if (frame_is_telling(&site->stack.frames[i]))
			return true;
	return site->stack.count == 0;
}

/* Two processes of one trial may run the same code: the one that keeps more speaks for both. */
static void add_site(struct trial_sites *sites, struct growth_site site)
{
	VEC_FOREACH (&sites->list, other) {
		if (strcmp(other->key, site.key) != 0)
			continue;
		if (site.blocks_last > other->blocks_last) {
			growth_site_deinit(other);
			*other = site;
		} else {
			growth_site_deinit(&site);
		}
		return;
	}
	VEC_PUSH(&sites->list, site);
}

void trial_sites_read(struct reading *reading, struct trial_sites *ret)
{
	const struct moments *moments = reading_moments(reading);
	struct symbols *symbols = reading_symbols(reading);
	const char *trial = reading_name(reading);
	struct event_logs *logs;
	struct err err = { 0 };

	ret->basis = moments->basis;
	if (reading_logs(reading, &logs, &err) < 0) {
		SAY_TOO(&ret->notes, "note:of-trial", said_text(trial), said_text(err.message));
		return;
	}
	VEC_FOREACH (&logs->list, log) {
		AUTO(census_deinit) struct census census = { 0 };
		AUTO(sites_deinit) struct sites sites = { 0 };
		uint64_t dropped = log->reader.header.drops[LOG_DROP_EVENT];

		census_take(log, moments, &census);
		if (dropped > 0 && ret->notes.list.count < NOTES_MAX)
			SAY_TOO(&ret->notes, "note:log-full", said_text(trial),
				said_number(log->reader.header.pid), said_number(dropped));
		if (census.moments == 0)
			continue;
		if (census.moments - 1 > ret->tests) {
			ret->tests = census.moments - 1;
			ret->contexts = census.contexts.count;
		}
		sites_find(&census, &sites);
		join_alike(log, symbols, &sites);
		VEC_FOREACH (&sites.list, site) {
			struct growth_site told = describe(log, &census, site, symbols);

			if (site->depth > 1 || says_where(&told))
				add_site(ret, told);
			else
				growth_site_deinit(&told);
		}
	}
	VEC_FOREACH (&logs->notes.list, note)
		if (ret->notes.list.count < NOTES_MAX)
			SAY_TOO(&ret->notes, "note:of-trial", said_text(trial), said_copied(note));
}
