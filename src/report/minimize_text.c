/*
 * `minimize` as text for a terminal.
 */
#include <inttypes.h>
#include <string.h>

#include "base/percent.h"
#include "base/strbuf.h"
#include "base/words.h"
#include "model/known_secrets.h"
#include "report/report_minimize.h"
#include "report/text_parts.h"

#define DOUBTFUL_SHOWN 20
#define OTHERS_SHOWN 10

/* A full list that is all there is to say is not worth a screen each time. */
#define ITEMS_SHOWN 60

static void print_name(const char *name, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, name, strlen(name));
	(void)fputs(strbuf_str(&sb), out);
}

static void print_rate(const struct rate *rate, FILE *out)
{
	put(out, "%5" PRIu64 " of %-5" PRIu64 " %5s %%  (95 %%: %s–%s %%)", rate->failed,
	    rate->trials, PERCENT(rate->rate), PERCENT(rate->low), PERCENT(rate->high));
}

static const struct signature_summary *find_signature(const struct minimize_result *result)
{
	return VEC_FIND(&result->signatures.list, s, strcmp(s->signature.id, result->target) == 0);
}

static void print_headline(const struct minimize_result *result, FILE *out)
{
	const struct signature_summary *target = find_signature(result);
	size_t count = result->items.count;

	if (result->interrupted)
		put(out, "Interrupted; the same command goes on from here.\n");
	if (result->target[0] == '\0')
		put(out,
		    "No failure has stood out yet in %" PRIu64 " runs of the full list (%zu %s).\n",
		    result->trials, result->total, result->nouns);
	else if (result->verdict == MINIMAL_COUNT_MATTERS)
		put(out,
		    "The number of %s matters, not which: no small list of them brings it "
		    "out, and other %s of the same number do as well.\n",
		    result->nouns, result->nouns);
	else if (result->verdict == MINIMAL_FOUND)
		put(out, "%zu of %zu %s bring it out, and each is needed: %.1f %% sure\n", count,
		    result->total, result->total == 1 ? result->noun : result->nouns,
		    result->confidence * 100);
	else
		put(out,
		    "Not minimal yet: the shortest list seen to fail so far has %zu of %zu "
		    "%s; about %.0f more trials are expected\n",
		    count, result->total, result->nouns, result->to_go);
	if (target)
		put(out, "Chased: %s  %s\n", target->signature.id, target->signature.summary);
}

static void print_items(const struct minimize_result *result, FILE *out)
{
	size_t shown = 0;

	put(out, "\n");
	VEC_FOREACH (&result->items, item) {
		if (++shown > ITEMS_SHOWN && result->items.count > ITEMS_SHOWN + 1) {
			put(out, "  … and %zu more, see the file below\n",
			    result->items.count - ITEMS_SHOWN);
			break;
		}
		put(out, "  ");
		print_name(item->name, out);
		(void)fputs(item->victim ? "   <- fails\n" : "\n", out);
	}
	/* The victim is what one must not overlook. */
	if (result->items.count > ITEMS_SHOWN + 1 && result->victim) {
		put(out, "  ");
		print_name(result->victim, out);
		put(out, "   <- fails\n");
	}
}

static void print_doubtful(const struct minimize_result *result, FILE *out)
{
	size_t shown = 0;

	if (result->doubtful.count == 0)
		return;
	put(out, "\nNot ruled out yet, with the probability that it is needed:\n");
	VEC_FOREACH (&result->doubtful, item) {
		if (shown++ == DOUBTFUL_SHOWN) {
			put(out, "  … and %zu more (--json lists them)\n",
			    result->doubtful.count - DOUBTFUL_SHOWN);
			return;
		}
		put(out, "  %5.1f %%  ", item->needed * 100);
		print_name(item->name, out);
		put(out, "\n");
	}
}

static void print_row(const char *what, const struct rate *rate, FILE *out)
{
	put(out, "  ");
	print_rate(rate, out);
	put(out, "  %s\n", what);
}

static void print_proof(const struct minimize_result *result, FILE *out)
{
	if (result->target[0] == '\0')
		return;
	put(out, "\nHow often it failed:\n");
	print_row("the full list", &result->full, out);
	print_row(result->verdict == MINIMAL_FOUND ? "the minimal list" : "the list above",
		  &result->minimal, out);
	VEC_FOREACH (&result->items, item) {
		if (item->victim || result->items.count > ITEMS_SHOWN)
			continue;
		put(out, "  ");
		print_rate(&item->without, out);
		put(out, "  … without ");
		print_name(item->name, out);
		if (item->wider.trials > item->without.trials)
			put(out, " (%" PRIu64 " of %" PRIu64 " counting longer lists)",
			    item->wider.failed, item->wider.trials);
		put(out, "\n");
	}
	if (result->stand_ins.trials > 0)
		print_row("the full list without one of these", &result->stand_ins, out);
	if (result->reversed.trials > 0)
		print_row("the minimal list reversed", &result->reversed, out);
	if (result->shuffled.trials > 0)
		print_row("the minimal list in random orders", &result->shuffled, out);
}

static void print_order(const struct minimize_result *result, FILE *out)
{
	if (result->order == MINIMAL_ORDER_MATTERS)
		put(out,
		    "\nThe order matters: in another one the rate is not the same "
		    "(p = %.2g).\n",
		    result->order_p);
	else if (result->order == MINIMAL_ORDER_SAME)
		put(out, "\nThe order within the list makes no difference that was seen.\n");
	else
		put(out, "\nWhether the order within the list matters is not clear from "
			 "so few runs.\n");
}

static void print_remarks(const struct minimize_result *result, FILE *out)
{
	if (result->verdict == MINIMAL_FOUND && result->order_checked)
		print_order(result, out);
	if (result->verdict == MINIMAL_FOUND && result->others == MINIMAL_OTHERS_SOME)
		put(out,
		    "\nOther %s can stand in for some of these: there is more than "
		    "one way to bring it out.\n",
		    result->nouns);
	if (result->rollbacks > 0)
		put(out,
		    "\n%" PRIu64 " time%s a list that had failed once turned out not to, "
		    "and the longer one was taken again.\n",
		    result->rollbacks, result->rollbacks == 1 ? "" : "s");
}

static void print_others(const struct minimize_result *result, FILE *out)
{
	size_t shown = 0;

	VEC_FOREACH (&result->signatures.list, s) {
		if (strcmp(s->signature.id, result->target) == 0)
			continue;
		if (shown == 0)
			put(out, "\nOther failures met on the way, not counted as this "
				 "one:\n");
		if (shown++ < OTHERS_SHOWN)
			put(out, "  %s  %5" PRIu64 "  %s (trial %" PRIu64 ")\n", s->signature.id,
			    s->rate.failed, s->signature.summary, s->trial);
	}
	if (shown > OTHERS_SHOWN)
		put(out, "  … and %zu more (--json lists them)\n", shown - OTHERS_SHOWN);
	if (result->no_information > 0)
		put(out, "\n%" PRIu64 " trials said nothing and were not counted.\n",
		    result->no_information);
}

static void print_command(const struct minimize_result *result, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };

	if (said_anything(&result->advice)) {
		put(out, "\n");
		text_said(&result->advice, out);
		put(out, "\n");
	}
	if (result->plain_differs)
		put(out, "\n%s by itself would run these in another order; this keeps it.",
		    result->framework);
	put(out, "\nTo run it:\n  ");
	if (result->cwd) {
		strbuf_adds(&sb, "cd ");
		words_quote(&sb, result->cwd);
		strbuf_adds(&sb, " && ");
	}
	for (size_t i = 0; i < result->env.count; i++) {
		AUTO(mem_freep) char *open = secret_word(result->env.items[i]);
		const char *equals = strchr(open, '=');

		if (!equals)
			continue;
		strbuf_add(&sb, open, (size_t)(equals - open) + 1);
		words_quote(&sb, equals + 1);
		strbuf_addc(&sb, ' ');
	}
	secret_words(result->argv.items, &argv);
	words_join(&sb, argv.items);
	print_name(strbuf_str(&sb), out);
	put(out, "\nThe list as a file: %s\n", result->file);
}

void report_minimize_text(const struct minimize_result *result, FILE *out)
{
	print_headline(result, out);
	print_items(result, out);
	print_doubtful(result, out);
	print_proof(result, out);
	print_remarks(result, out);
	print_others(result, out);
	print_command(result, out);
	put(out,
	    "\n%" PRIu64 " trials (%" PRIu64 " of them from earlier runs), %u slot%s; this "
	    "run took %.1f s. Seed %" PRIu64 ". Case: %s\n",
	    result->trials + result->no_information, result->earlier, result->jobs,
	    result->jobs == 1 ? "" : "s", result->seconds, result->seed, result->case_dir);
}
