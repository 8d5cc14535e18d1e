/*
 * Failing beside passing: the bytes of a block in runs that failed and in runs that passed, and who
 * wrote the watched fields there; races; the machine.
 */
#include "report/page/page_told.h"

#include <inttypes.h>

#include "base/auto.h"
#include "model/beside.h"
#include "report/wording.h"

#define GROUPS_MOST 40u
#define PARTS_MOST 200u /* slots, machines */
#define FIELDS_MOST 8u	/* of a block that is shown whole */

/* Stores to one field by one place of code. */
struct writes {
	const struct write_seen *example;
	const struct write_seen *failing, *passing; /* the last of each; NULL */
	uint64_t failed, passed;		    /* trials */
	uint64_t last;				    /* trial that was counted last */
};

struct write_groups {
	VEC(struct writes) list;
};

static struct writes *group_of(struct write_groups *groups, const struct write_seen *w)
{
	VEC_FOREACH (&groups->list, group)
		if (home_same(&group->example->home, &w->home) &&
		    write_same_site(group->example, w))
			return group;
	if (groups->list.count == GROUPS_MOST)
		return NULL;
	VEC_PUSH(&groups->list, ((struct writes){ .example = w }));
	return &groups->list.items[groups->list.count - 1];
}

static void gather(const struct investigation *inv, struct write_groups *groups)
{
	VEC_FOREACH (&inv->evidence.list, e) {
		struct writes *group =
			e->kind == EVIDENCE_WRITE ? group_of(groups, e->write) : NULL;

		if (!group)
			continue;
		if (e->failing)
			group->failing = e->write;
		else
			group->passing = e->write;
		if (group->last == e->trial)
			continue;
		group->last = e->trial;
		if (e->failing)
			group->failed++;
		else
			group->passed++;
	}
}

/* What the verdict is about comes first, then what only failing runs have. */
static int interest_of(const struct investigation *inv, const struct writes *group)
{
	return 2 * home_same(&group->example->home, &inv->verdict.home) + (group->passed == 0);
}

static void put_change(const struct page *page, const struct write_seen *w)
{
	AUTO(mem_freep) char *words = html_shared(page->h) ? NULL : change_words(w);

	el(page->h, "td", NULL);
	el_txt(page->h, "code", NULL, words ? words : "–");
	el_end(page->h);
}

static void put_group(const struct page *page, const struct writes *group)
{
	el(page->h, "tr", "class", group->passed == 0 ? "only" : NULL, NULL);
	el(page->h, "td", NULL);
	put_keyed_field(page, &group->example->home);
	el_end(page->h);
	el(page->h, "td", NULL);
	put_place(page, &group->example->writer);
	if (group->example->instruction) {
		txt(page->h, " ");
		el_txt(page->h, "code", NULL, group->example->instruction);
	}
	el_end(page->h);
	el_txtf(page->h, "td", NULL, "%" PRIu64, group->failed);
	el_txtf(page->h, "td", NULL, "%" PRIu64, group->passed);
	put_change(page, group->failing);
	put_change(page, group->passing);
	el_txt(page->h, "td", NULL,
	       group->passed == 0   ? "◆ seen only in runs that failed"
	       : group->failed == 0 ? "–"
				    : "seen in both");
	el_end(page->h);
}

static bool has_stores(const struct investigation *inv, bool failing)
{
	return VEC_ANY(&inv->evidence.list, e, e->kind == EVIDENCE_WRITE && e->failing == failing);
}

/* Why there are no two runs to compare; NULL: there are, or nobody would ask. */
static const char *why_not_beside(const struct investigation *inv)
{
	bool failed = has_stores(inv, true);
	enum verdict_class class = inv->verdict.class;

	if (!inv->judged || inv->summary.failed_any == 0 || class == VERDICT_NOT_CAUGHT ||
	    (failed && has_stores(inv, false)))
		return NULL;
	return class == VERDICT_MAPPING_TRUNCATED
		       ? "The file is looked at when a run dies of it. How long it was in runs "
			 "that passed is not recorded, so there is nothing to lay beside it."
	       : failed ? "No store was recorded in a run that passed, so there is nothing to lay "
			  "beside the failing ones."
			: "No store to the damaged memory was caught in a run that failed: what "
			  "was damaged was found in another way, and no bytes were recorded that "
			  "could be laid beside those of a run that passed.";
}

bool has_beside(const struct page *page)
{
	return (has_stores(page->inv, true) && has_stores(page->inv, false)) ||
	       why_not_beside(page->inv);
}

static void put_moment(const struct page *page, const struct beside_run *run)
{
	static const char *const words[BESIDE_MOMENTS] = {
		"the store that the failure came by",
		"the last store by the same code",
		"the same code did not write there; this is the store that came before",
		"the same code did not write there; this is the last store",
		"another store: of the one that the failure came by the bytes are not known",
	};
	const struct write_seen *w = run->piece->write;

	el(page->h, "li", NULL);
	txtf(page->h, "Trial %" PRIu64 ", %s: after store %" PRIu64 " to the field, by ",
	     run->piece->trial, run->piece->failing ? "failed" : "passed", w->block.nth);
	put_place(page, &w->writer);
	txtf(page->h, " (%s) ", words[run->moment]);
	put_evidence_ids(page, &run->piece->id, 1);
	txt(page->h, ".");
	el_end(page->h);
}

static void put_bytes(const struct page *page, const struct beside *beside,
		      const struct beside_row *row, const struct beside_run *run)
{
	el(page->h, "td", NULL);
	el(page->h, "code", "class", "bytes", NULL);
	for (unsigned int i = 0; i < row->len; i++) {
		bool odd = row->difference == BESIDE_DIFFERS && beside_odd(beside, row, i);

		if (i > 0)
			txt(page->h, " ");
		el_txtf(page->h, odd ? "mark" : "span", NULL, "%02x", beside_bytes(run, row)[i]);
	}
	el_end(page->h);
	el_end(page->h);
}

static void put_row(const struct page *page, const struct beside *beside,
		    const struct beside_row *row)
{
	static const char *const words[BESIDE_DIFFERENCES] = {
		"alike",
		"~ addresses, of each run its own",
		"~ varies in runs that passed, too",
		"◆ differs",
	};

	el(page->h, "tr", "class", row->difference == BESIDE_DIFFERS ? "only" : NULL, NULL);
	el(page->h, "th", "scope", "row", NULL);
	txtf(page->h, "%s%lld", row->offset > 0 ? "+" : "", (long long)row->offset);
	if (row->name)
		el_txtf(page->h, "code", NULL, " %s", row->name);
	if (row->watched)
		txt(page->h, " ◀ watched");
	el_end(page->h);
	el_txt(page->h, "td", NULL, words[row->difference]);
	if (!html_shared(page->h)) {
		put_bytes(page, beside, row, &beside->failed);
		VEC_FOREACH (&beside->passed, run)
			put_bytes(page, beside, row, run);
	}
	el_end(page->h);
}

static char *run_head(const struct page *page, const struct beside *beside, size_t i)
{
	if (html_shared(page->h) || i > beside->passed.count)
		return NULL;
	return i == 0 ? mem_printf("trial %" PRIu64 ", failed", beside->failed.piece->trial)
		      : mem_printf("trial %" PRIu64 ", passed",
				   beside->passed.items[i - 1].piece->trial);
}

static void put_run_heads(const struct page *page, const struct beside *beside)
{
	char *heads[BESIDE_RUNS + 1];

	for (size_t i = 0; i <= BESIDE_RUNS; i++)
		heads[i] = run_head(page, beside, i);
	_Static_assert(BESIDE_RUNS == 3, "a column each");
	put_head(page, "bytes from the start", "difference", heads[0], heads[1], heads[2], heads[3],
		 NULL);
	for (size_t i = 0; i <= BESIDE_RUNS; i++)
		mem_free(heads[i]);
}

/* Of a large block rows that are alike are counted only. */
static void put_block(const struct page *page, const struct beside *beside)
{
	unsigned int alike = 0, differ = 0;

	el_txt(page->h, "p", NULL,
	       "The same block in a run that failed and in runs that passed, each right after a "
	       "store to the watched field:");
	el(page->h, "ul", NULL);
	put_moment(page, &beside->failed);
	VEC_FOREACH (&beside->passed, run)
		put_moment(page, run);
	el_end(page->h);
	table_begin(page, "The block in a failing run and in passing runs");
	put_run_heads(page, beside);
	VEC_FOREACH (&beside->rows, row)
		differ += row->difference == BESIDE_DIFFERS;
	VEC_FOREACH (&beside->rows, row)
		if (beside->rows.count <= FIELDS_MOST || row->watched ||
		    row->difference != BESIDE_ALIKE)
			put_row(page, beside, row);
		else
			alike += row->len;
	table_end(page);
	if (alike > 0)
		el_txtf(page->h, "p", "dim", "%u more bytes are alike.", alike);
	if (differ == 0)
		el_txt(page->h, "p", NULL,
		       "At this moment nothing differs that is the same in all runs that passed: what "
		       "goes wrong lies elsewhere, or comes later.");
}

void page_beside(const struct page *page)
{
	struct write_groups groups = { 0 };
	struct beside beside;

	if (why_not_beside(page->inv)) {
		el_txt(page->h, "p", NULL, why_not_beside(page->inv));
		return;
	}
	gather(page->inv, &groups);
	if (beside_find(page->inv, &beside))
		put_block(page, &beside);
	else
		el_txt(page->h, "p", "dim",
		       "What stood in the block is not known of both kinds of run, so only stores are compared.");
	beside_deinit(&beside);
	el_txt(page->h, "p", NULL,
	       "Stores to the watched fields, each with the last value that was seen. Of the field "
	       "that a failure came by, only the last stores of that run are recorded: whoever is "
	       "missing there may have written before.");
	table_begin(page, "Stores in failing and in passing runs");
	put_head(page, "field", "stored by", "failing runs", "passing runs",
		 "value in a failing run", "value in a passing run", "difference", NULL);
	for (int interest = 3; interest >= 0; interest--)
		VEC_FOREACH (&groups.list, group)
			if (interest_of(page->inv, group) == interest)
				put_group(page, group);
	table_end(page);
	VEC_DEINIT(&groups.list);
}

static const struct evidence *told_race(const struct investigation *inv)
{
	const struct evidence *found = NULL;

	VEC_FOREACH (&inv->evidence.list, e)
		if (e->kind == EVIDENCE_RACE &&
		    (!found || (e->race->lost_update && e->failing && !found->race->lost_update)))
			found = e;
	return found;
}

bool has_race(const struct page *page)
{
	return told_race(page->inv) != NULL;
}

/* Of locks only a mutex is seen that lies in the same block. */
static void put_mutex(const struct page *page, const struct write_seen *w,
		      const struct write_seen *other)
{
	int64_t own = write_mutex(w), others = other ? write_mutex(other) : -1;

	if (own >= 0)
		el_txtf(page->h, "p", NULL, "It held the mutex at offset %" PRId64 " of the block.",
			own);
	else if (others >= 0 && write_shares_mutex(other, w) == 0)
		el_txtf(page->h, "p", "bad",
			"It did not hold the mutex at offset %" PRId64
			" of the block, which the other thread held when it wrote.",
			others);
}

static void put_thread(const struct page *page, const char *which, const struct write_seen *w,
		       const struct write_seen *other)
{
	if (!w)
		return;
	el(page->h, "div", "class", "card", NULL);
	el_txtf(page->h, "h3", NULL, "%s: thread %d%s%s", which, w->tid, w->thread ? " " : "",
		w->thread ? w->thread : "");
	if (w->instruction)
		el_txt(page->h, "code", "instruction", w->instruction);
	put_mutex(page, w, other);
	put_site(page, &w->writer);
	el_end(page->h);
}

void page_race(const struct page *page)
{
	const struct evidence *e = told_race(page->inv);
	AUTO(mem_freep) char *words = e ? words_evidence_plainly(e) : NULL;

	if (!e)
		return;
	el_txtf(page->h, "p", NULL, "Trial %" PRIu64 ": %s.", e->trial, words);
	draw_race(page->h, e->race);
	el(page->h, "div", "class", "pair", NULL);
	put_thread(page, "Reads", e->race->read, e->race->first);
	put_thread(page, "Writes", e->race->first, e->race->second);
	put_thread(page, "Writes over it", e->race->second, e->race->first);
	el_end(page->h);
	el_txt(page->h, "p", "dim",
	       "Of locks only a mutex of the C library is seen that lies in the same block as the "
	       "word, among the bytes that were recorded. Others are not looked at.");
}

static const struct host_signs *host_signs(const struct investigation *inv)
{
	VEC_FOREACH (&inv->evidence.list, e)
		if (e->kind == EVIDENCE_HOST)
			return e->host;
	return NULL;
}

bool has_machine(const struct page *page)
{
	return host_signs(page->inv) || (page->inv->counted && page->inv->summary.slots.count > 0);
}

static void put_signs(const struct page *page, const struct host_signs *signs)
{
	el(page->h, "ul", NULL);
	if (signs->bit_flips > 0)
		el_txtf(page->h, "li", NULL,
			"In %u failing runs one bit differed and nobody wrote it: %u places, %u "
			"different bits.",
			signs->bit_flips, signs->flip_homes, signs->flip_bits);
	else
		el_txt(page->h, "li", NULL, "No bit differed that nobody wrote.");
	if (signs->core >= 0)
		el_txtf(page->h, "li", NULL, "The failures keep to core %d (p = %.2g).",
			signs->core, signs->core_p);
	else
		el_txtf(page->h, "li", NULL, "%s",
			signs->core_p < 1 ? "The failures keep to no core."
					  : "Cores were not compared.");
	if (signs->node[0] != '\0')
		el_txtf(page->h, "li", NULL, "The failures keep to machine %s (p = %.2g).",
			signs->node, signs->node_p);
	if (signs->memory_tested)
		el_txtf(page->h, "li", NULL, "A memory test of %.0f s found %" PRIu64 " errors.",
			signs->memory_seconds, signs->memory_errors);
	else
		el_txt(page->h, "li", NULL, "The memory was not tested.");
	el_end(page->h);
}

static void put_part(const struct page *page, const char *name, const struct rate *rate, bool odd,
		     double p)
{
	el(page->h, "tr", "class", odd ? "only" : NULL, NULL);
	row_head(page, "%s", name);
	cell_rate(page, rate);
	el_txtf(page->h, "td", NULL, "%s (p = %.2g)", odd ? "yes" : "no", p);
	el_end(page->h);
}

static void put_slots(const struct page *page)
{
	const struct series_summary *s = &page->inv->summary;

	table_begin(page, "Rate of each slot");
	put_head(page, "slot", "rate", "differs from the others?", NULL);
	for (size_t i = 0; i < s->slots.count && i < PARTS_MOST; i++) {
		AUTO(mem_freep) char *name = mem_printf("%u", s->slots.items[i].slot);

		put_part(page, name, &s->slots.items[i].rate, s->odd_slot == (int)i,
			 s->slots.items[i].p);
	}
	table_end(page);
}

static void put_nodes(const struct page *page)
{
	const struct series_summary *s = &page->inv->summary;

	if (s->nodes.count == 0)
		return;
	table_begin(page, "Rate of each machine");
	put_head(page, "machine", "rate", "differs from the others?", NULL);
	for (size_t i = 0; i < s->nodes.count && i < PARTS_MOST; i++) {
		const struct node_summary *node = &s->nodes.items[i];

		put_part(page, node->node[0] != '\0' ? node->node : "this one", &node->rate,
			 s->odd_node == (int)i, node->p);
	}
	table_end(page);
}

void page_machine(const struct page *page)
{
	const struct host_signs *signs = host_signs(page->inv);
	const struct series_summary *s = &page->inv->summary;

	if (signs)
		put_signs(page, signs);
	else
		el_txt(page->h, "p", NULL,
		       "It was not looked at: no memory test, no comparison of cores.");
	if (page->inv->counted && s->slots.count > 0) {
		put_nodes(page);
		put_slots(page);
		el_txtf(page->h, "p", "dim",
			"A run took %.3f s on average, %.3f s at most, and up to %" PRIu64 " KiB.",
			s->use.wall_mean_s, s->use.wall_max_s, s->use.peak_kib);
	}
}
