#include "studies/bisect/commits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "studies/bisect/git.h"

/* Where a hash stands in the list. */
struct commit_place {
	const char *hash;
	uint32_t number;
};

void history_close(struct commit_history *h)
{
	MEM_FREE(h->top, h->common, h->prefix);
	strv_deinit(&h->commits);
	lineage_free(h->lineage);
	*h = (struct commit_history){ 0 };
}

static int find_checkout(const char *dir, struct commit_history *h, struct err *err)
{
	AUTO(mem_freep) char *common = NULL;
	int r = git_line(dir, (const char *const[]){ "rev-parse", "--show-toplevel", NULL },
			 &h->top, err);

	if (r == 0)
		r = git_line(dir, (const char *const[]){ "rev-parse", "--show-prefix", NULL },
			     &h->prefix, err);
	if (r == 0)
		r = git_line(h->top, (const char *const[]){ "rev-parse", "--git-common-dir", NULL },
			     &common, err);
	if (r == 0)
		h->common = common[0] == '/' ? TAKE(common) : mem_printf("%s/%s", h->top, common);
	if (r < 0)
		return err_set_remedy(err, "run it in the checkout of the project, or name that "
					   "with --cwd");
	return 0;
}

static int find_commit(const char *top, const char *role, const char *name, char **ret,
		       struct err *err)
{
	AUTO(mem_freep) char *wanted = mem_printf("%s^{commit}", name);
	int r = git_line(top,
			 (const char *const[]){ "rev-parse", "--verify", "--quiet",
						"--end-of-options", wanted, NULL },
			 ret, NULL);

	if (r < 0)
		return err_set(err, r, "%s '%s' is no commit of this repository", role, name);
	return 0;
}

static int check_order(const struct commit_history *h, const struct history_request *request,
		       const char *good, const char *bad, struct err *err)
{
	AUTO(git_answer_deinit) struct git_answer answer = { 0 };
	AUTO(mem_freep) char *base = NULL;
	int r;

	if (strcmp(good, bad) == 0)
		return err_set(err, -EINVAL, "GOOD '%s' and BAD '%s' are the same commit",
			       request->good, request->bad);
	r = git_ask(h->top, (const char *const[]){ "merge-base", "--is-ancestor", good, bad, NULL },
		    &answer, err);
	if (r < 0 || answer.status == 0)
		return r;
	(void)err_set(err, -EINVAL, "GOOD '%s' is not an ancestor of BAD '%s'", request->good,
		      request->bad);
	if (git_line(h->top, (const char *const[]){ "merge-base", good, bad, NULL }, &base, NULL) ==
	    0) {
		if (strcmp(base, bad) == 0)
			return err_set_remedy(err,
					      "the older of the two comes first: redhand bisect "
					      "%s %s …",
					      request->bad, request->good);
		return err_set_remedy(err,
				      "if the failure is not at %.12s, where they parted: redhand "
				      "bisect %.12s %s …",
				      base, base, request->bad);
	}
	return err_set_remedy(err, "the two have no common history");
}

static int by_hash(const void *a, const void *b)
{
	return strcmp(((const struct commit_place *)a)->hash,
		      ((const struct commit_place *)b)->hash);
}

/* A line is a hash and its parents' hashes; parents outside of the range are those of GOOD's past.
 */
struct parents_reading {
	VEC(uint32_t) numbers; /* of all commits' parents, one after the other */
	VEC(size_t) starts;    /* where each commit's begin */
	struct commit_place *places;
};

static void parents_reading_deinit(struct parents_reading *reading)
{
	VEC_DEINIT(&reading->numbers);
	VEC_DEINIT(&reading->starts);
	mem_free(reading->places);
}

static void sort_places(const struct commit_history *h, struct parents_reading *reading)
{
	reading->places = mem_alloc(h->commits.count * sizeof(reading->places[0]));
	for (size_t i = 0; i < h->commits.count; i++)
		reading->places[i] = (struct commit_place){ h->commits.items[i], (uint32_t)i };
	qsort(reading->places, h->commits.count, sizeof(reading->places[0]), by_hash);
}

static void read_parents(const struct commit_history *h, struct parents_reading *reading,
			 char *line)
{
	char *save = NULL;

	VEC_PUSH(&reading->starts, reading->numbers.count);
	(void)strtok_r(line, " ", &save);
	for (char *word; (word = strtok_r(NULL, " ", &save)) != NULL;) {
		struct commit_place key = { .hash = word };
		const struct commit_place *found =
			bsearch(&key, reading->places, h->commits.count, sizeof(key), by_hash);

		if (found)
			VEC_PUSH(&reading->numbers, found->number);
	}
}

static void make_lineage(struct commit_history *h, struct parents_reading *reading, bool line)
{
	size_t count = h->commits.count;
	AUTO(mem_freep) struct lineage_parents *parents = mem_alloc(count * sizeof(parents[0]));
	AUTO(mem_freep) uint32_t *before = mem_alloc(count * sizeof(before[0]));

	for (size_t c = 1; c < count; c++) {
		size_t start = line ? 0 : reading->starts.items[c - 1];
		size_t end = line	     ? 0
			     : c < count - 1 ? reading->starts.items[c]
					     : reading->numbers.count;

		before[c] = (uint32_t)(c - 1);
		parents[c] = line ? (struct lineage_parents){ &before[c], 1 }
				  : (struct lineage_parents){ reading->numbers.items + start,
							      end - start };
		h->merges += parents[c].count > 1;
	}
	h->lineage = lineage_new(parents, count);
}

static int read_commits(struct commit_history *h, const struct history_request *request, char *text,
			struct err *err)
{
	AUTO(parents_reading_deinit) struct parents_reading reading = { 0 };
	AUTO(mem_freep) char *copy = mem_strdup(text);
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		AUTO(mem_freep) char *hash = mem_strndup(line, strcspn(line, " "));

		strv_add(&h->commits, hash);
	}
	if (h->commits.count > LINEAGE_MAX) {
		(void)err_set(err, -E2BIG,
			      "there are %zu commits between GOOD and BAD: at most %d "
			      "can be bisected at once",
			      h->commits.count - 1, LINEAGE_MAX - 1);
		return err_set_remedy(err,
				      request->first_parent
					      ? "name a nearer GOOD or BAD"
					      : "--first-parent, or name a nearer GOOD or BAD");
	}
	sort_places(h, &reading);
	save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		read_parents(h, &reading, line);
	make_lineage(h, &reading, request->first_parent);
	return 0;
}

static int list_commits(struct commit_history *h, const struct history_request *request,
			const char *good, const char *bad, struct err *err)
{
	AUTO(mem_freep) char *range = mem_printf("%s..%s", good, bad);
	AUTO(git_answer_deinit) struct git_answer answer = { 0 };
	const char *const args[] = { "rev-list",  "--topo-order",
				     "--reverse", "--parents",
				     range,	  request->first_parent ? "--first-parent" : NULL,
				     NULL };
	int r = git_ask(h->top, args, &answer, err);

	if (r < 0)
		return r;
	if (answer.status != 0)
		return err_set(err, -EINVAL, "git: %s", answer.talk);
	strv_add(&h->commits, good);
	return read_commits(h, request, answer.out, err);
}

int history_open(const struct history_request *request, struct commit_history *ret, struct err *err)
{
	AUTO(history_close) struct commit_history h = { 0 };
	AUTO(mem_freep) char *good = NULL;
	AUTO(mem_freep) char *bad = NULL;
	int r = find_checkout(request->dir ? request->dir : ".", &h, err);

	if (r == 0)
		r = find_commit(h.top, "GOOD", request->good, &good, err);
	if (r == 0)
		r = find_commit(h.top, "BAD", request->bad, &bad, err);
	if (r == 0)
		r = check_order(&h, request, good, bad, err);
	if (r == 0)
		r = list_commits(&h, request, good, bad, err);
	if (r < 0)
		return r;
	*ret = h;
	h = (struct commit_history){ 0 };
	return 0;
}

static char *next_field(char **at)
{
	struct strbuf sb = { 0 };
	size_t len = strcspn(*at, "\x1f\n");

	strbuf_add_printable(&sb, *at, len);
	*at += len + ((*at)[len] == '\x1f');
	return strbuf_take(&sb);
}

int history_words(const struct commit_history *h, const size_t *numbers, size_t count,
		  struct commit_words *ret, struct err *err)
{
	AUTO(git_answer_deinit) struct git_answer answer = { 0 };
	VEC(const char *) args = { 0 };
	char *at;
	int r;

	if (count == 0)
		return 0;
	VEC_PUSH(&args, "-c");
	VEC_PUSH(&args, "i18n.logOutputEncoding=UTF-8");
	VEC_PUSH(&args, "log");
	VEC_PUSH(&args, "--no-walk=unsorted");
	VEC_PUSH(&args, "--no-show-signature");
	VEC_PUSH(&args, "--format=%an <%ae>%x1f%aI%x1f%s");
	for (size_t i = 0; i < count; i++)
		VEC_PUSH(&args, h->commits.items[numbers[i]]);
	VEC_PUSH(&args, NULL);
	r = git_ask(h->top, args.items, &answer, err);
	VEC_DEINIT(&args);
	if (r < 0)
		return r;
	if (answer.status != 0)
		return err_set(err, -EINVAL, "git: %s", answer.talk);
	at = answer.out;
	for (size_t i = 0; i < count; i++) {
		ret[i] = (struct commit_words){ .author = next_field(&at) };
		ret[i].date = next_field(&at);
		ret[i].subject = next_field(&at);
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return 0;
}
