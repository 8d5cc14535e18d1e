#include "studies/growth/growth_holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "read/globals.h"
#include "wire/plan.h"

#define CONTEXTS_PER_SITE 4
#define HOLDERS_TOLD 8
#define ROOT_STEPS 4

void holders_ask(const struct growth_report *report, struct trial_job *job)
{
	/* Each site has its turn before any has more. */
	for (size_t turn = 0; turn < CONTEXTS_PER_SITE; turn++) {
		VEC_FOREACH (&report->sites, site)
			if (turn < site->contexts.count && job->held.count < PLAN_HOLDERS_MAX)
				strv_add(&job->held, site->contexts.items[turn]);
	}
	job->held_after_lines = report->sites.items[0].lines;
}

static struct growth_site *site_of(struct growth_report *report, uint64_t stack_hash)
{
	VEC_FOREACH (&report->sites, site)
		for (size_t i = 0; i < site->contexts.count; i++)
			if (strtoull(site->contexts.items[i], NULL, 16) == stack_hash)
				return site;
	return NULL;
}

static void name_global(struct event_log *log, struct symbols *symbols,
			const struct log_holder *record, struct growth_holder *holder)
{
	struct global_place global;

	if (!global_find(log, symbols, record->where, &global))
		return;
	holder->name = global.name;
	holder->module = global.module;
	holder->module_offset = global.offset;
	mem_free(holder->kind);
	holder->kind = mem_strdup("global");
}

/* The C library's allocator knows where free memory begins: in the last word of the block before
 * it. That holds nobody. */
static bool is_allocators(const struct log_holder *record, const struct growth_holder *holder)
{
	const char *slash = holder->module ? strrchr(holder->module, '/') : NULL;

	return record->value != record->target_start && slash &&
	       strncmp(slash, "/libc.so", strlen("/libc.so")) == 0;
}

/* Was it allocated where the blocks were that grow? Those of a list hold each other. */
static bool is_of_site(const struct growth_site *site, const struct growth_holder *holder)
{
	if (site->shared == 0 || holder->stack.count < site->shared)
		return false;
	for (size_t i = 0; i < site->shared; i++)
		if (holder->stack.frames[i].offset != site->stack.frames[i].offset)
			return false;
	return true;
}

/* Pointers from the same kind of holder are one entry. */
static bool same_holder(const struct growth_site *site, const struct growth_holder *a,
			const struct growth_holder *b)
{
	if (strcmp(a->kind, b->kind) != 0)
		return false;
	if (strcmp(a->kind, "global") == 0)
		return a->name && b->name ? strcmp(a->name, b->name) == 0
					  : a->module_offset == b->module_offset;
	if (is_of_site(site, a) && is_of_site(site, b))
		return true;
	if (a->stack.count != b->stack.count)
		return false;
	for (size_t i = 0; i < a->stack.count; i++)
		if (a->stack.frames[i].offset != b->stack.frames[i].offset)
			return false;
	return true;
}

/* A list points to its items from both sides: each counts once. */
static void count_target(struct growth_holder *holder, uint64_t id)
{
	VEC_FOREACH (&holder->targets, known)
		if (*known == id)
			return;
	VEC_PUSH(&holder->targets, id);
	holder->pointers = holder->targets.count;
}

static void add_holder(struct growth_site *site, struct growth_holder holder, uint64_t target)
{
	VEC_FOREACH (&site->holders, other) {
		if (!same_holder(site, other, &holder))
			continue;
		count_target(other, target);
		growth_holder_deinit(&holder);
		return;
	}
	count_target(&holder, target);
	VEC_PUSH(&site->holders, holder);
}

static void take_holder(struct event_log *log, struct symbols *symbols,
			const struct log_holder *record, struct growth_report *report)
{
	static const char *const kinds[] = { [LOG_HELD_BY_BLOCK] = "block",
					     [LOG_HELD_BY_FILE] = "global",
					     [LOG_HELD_BY_STACK] = "stack",
					     [LOG_HELD_BY_MEMORY] = "memory" };
	struct growth_site *site = site_of(report, record->stack_hash);
	struct growth_holder holder = { 0 };

	if (!site || record->kind >= ARRAY_SIZE(kinds) || !kinds[record->kind])
		return;
	holder.kind = mem_strdup(kinds[record->kind]);
	if (record->kind == LOG_HELD_BY_BLOCK) {
		holder.size = record->size;
		holder.offset = record->where - record->start;
		holder.block_id = record->id;
		(void)event_log_allocation(log, record->context, symbols, &holder.stack);
	} else if (record->kind != LOG_HELD_BY_STACK) {
		name_global(log, symbols, record, &holder);
	}
	if (is_allocators(record, &holder)) {
		growth_holder_deinit(&holder);
		return;
	}
	add_holder(site, holder, record->target_id);
}

/* From a holding block to the global that leads to it, over at most a few others. */
static char *find_root(struct event_log *log, struct symbols *symbols,
		       const struct log_holder *records, size_t count, uint64_t id)
{
	for (unsigned int step = 0; step < ROOT_STEPS && id != 0; step++) {
		uint64_t next = 0;

		for (size_t i = 0; i < count; i++) {
			struct growth_holder holder = { 0 };
			char *name;

			if (records[i].target_id != id || records[i].stack_hash != 0)
				continue;
			if (records[i].kind == LOG_HELD_BY_BLOCK) {
				next = next == 0 ? records[i].id : next;
				continue;
			}
			if (records[i].kind == LOG_HELD_BY_STACK)
				continue;
			name_global(log, symbols, &records[i], &holder);
			name = is_allocators(&records[i], &holder) ? NULL : TAKE(holder.name);
			growth_holder_deinit(&holder);
			if (name)
				return name;
		}
		id = next;
	}
	return NULL;
}

static int rank(const struct growth_holder *holder)
{
	return strcmp(holder->kind, "block") == 0 || strcmp(holder->kind, "global") == 0;
}

/* What is on a stack may be a leftover: it comes last. */
static int by_pointers(const void *a, const void *b)
{
	const struct growth_holder *x = a, *y = b;

	return rank(y) - rank(x) ?: ORDER(y->pointers, x->pointers);
}

static void settle(struct growth_site *site)
{
	VEC_SORT(&site->holders, by_pointers);
	while (site->holders.count > HOLDERS_TOLD)
		growth_holder_deinit(&site->holders.items[--site->holders.count]);
}

void holders_read(struct reading *reading, struct growth_report *report)
{
	struct symbols *symbols = reading_symbols(reading);
	VEC(struct log_holder) found = { 0 };
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, log) {
		struct log_item item;

		found.count = 0;
		log_reader_rewind(&log->reader);
		while (log_reader_next(&log->reader, &item)) {
			struct log_holders record;
			struct log_holder holder;
			struct growth_site *site;

			if (item.head.type == LOG_HOLDER &&
			    log_payload(&item, &holder, sizeof(holder)))
				VEC_PUSH(&found, holder);
			if (item.head.type != LOG_HOLDERS ||
			    !log_payload(&item, &record, sizeof(record)))
				continue;
			site = site_of(report, record.stack_hash);
			if (site)
				site->looked_for += record.looked_for;
		}
		/* Naming walks the log, too. */
		VEC_FOREACH (&found, holder)
			take_holder(log, symbols, holder, report);
		VEC_FOREACH (&report->sites, site)
			VEC_FOREACH (&site->holders, holder)
				if (holder->block_id != 0 && !holder->root)
					holder->root = find_root(log, symbols, found.items,
								 found.count, holder->block_id);
	}
	VEC_DEINIT(&found);
	VEC_FOREACH (&report->sites, site)
		settle(site);
}
