/* `redhand scan`: which instructions of the code could make such a write. */
#include "cmd/commands.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "case/case.h"
#include "cmd/common.h"
#include "cmd/progress.h"
#include "report/report_scan.h"
#include "studies/scan/code_scan.h"
#include "studies/scan/scan_seen.h"

#define LIMIT_DEFAULT 2000
#define WIDTH_MAX 4096

struct scan_options {
	struct common_options common;
	uint64_t pid;
	uint64_t trial;
	const char *store;
	struct option_list registers;
	const char *value;
	const char *address;
	const char *global;
	const char *module;
	const char *function;
	struct option_list fits;
	bool stack;
	uint64_t limit;
};

static const struct option where_table[] = {
	OPTION(COUNT, "pid", "P", offsetof(struct scan_options, pid),
	       "All code of the running process P: its program, libraries, and what it emitted "
	       "itself. Only reads, while it runs on",
	       .min = 1, .max = INT_MAX),
	OPTION(COUNT, "trial", "N", offsetof(struct scan_options, trial),
	       "All code of trial N of the case: the files that its processes had loaded, and "
	       "with --observe ids the code that they had emitted",
	       .min = 1),
	OPTIONS_END,
};

static const struct option what_table[] = {
	OPTION(TEXT, "store", "OFFSET[:WIDTH]", offsetof(struct scan_options, store),
	       "Instructions that write to OFFSET from a base register: those that begin there, "
	       "and those that begin before and cover it. With WIDTH, the size of the field, all "
	       "that write any byte of it, told apart: exact, narrower, wider, covers"),
	OPTION(LIST, "reg", "REG", offsetof(struct scan_options, registers),
	       "Only with this base register; may be given more than once"),
	OPTION(LIST, "fit", "FIT", offsetof(struct scan_options, fits),
	       "Only stores that are exact, narrower, wider, covers, begins (without WIDTH) or any "
	       "(of any width: rep stos, rep movs); may be given more than once"),
	OPTION(FLAG, "stack", NULL, offsetof(struct scan_options, stack),
	       "Also stores relative to the stack pointer, and push and call"),
	OPTION(TEXT, "address", "ADDR[:LEN]", offsetof(struct scan_options, address),
	       "Instructions that write to this address or mention it: operands relative to the "
	       "instruction pointer, immediates, targets of calls. In a file by the file's own "
	       "addresses"),
	OPTION(TEXT, "global", "NAME", offsetof(struct scan_options, global),
	       "Instructions that write to this global variable or mention it: NAME, FILE.c:NAME "
	       "where several files have one of that name, with debug information also NAME.FIELD. "
	       "--store then tells which part of it"),
	OPTION(TEXT, "value", "CONST", offsetof(struct scan_options, value),
	       "Instructions that have this constant as an immediate"),
	OPTION(TEXT, "module", "NAME", offsetof(struct scan_options, module),
	       "Of a process or trial only this program or library, a name or a pattern as the "
	       "shell knows them; 'emitted' for the code that is in no file"),
	OPTION(TEXT, "function", "NAME", offsetof(struct scan_options, function),
	       "Only in this function, wherever it was inlined to; a name or a pattern as the "
	       "shell knows them"),
	OPTION(COUNT, "limit", "N", offsetof(struct scan_options, limit),
	       "List at most N instructions and count the rest (default 2000; 0: list all)"),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct scan_options *options = ptr;

	options->limit = LIMIT_DEFAULT;
}

/* A number as programmers write it: decimal or 0x…, perhaps negative. */
static int parse_number(const char *text, const char **ret_end, uint64_t *ret, struct err *err)
{
	const char *digits = text + (text[0] == '-');
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(digits, &end, 0);
	if (!isdigit((unsigned char)digits[0]) || errno != 0)
		return err_set(err, -EINVAL, "wants a number such as 24 or 0x18, not '%s'", text);
	*ret = text[0] == '-' ? -(uint64_t)value : (uint64_t)value;
	*ret_end = end;
	return 0;
}

static int parse_whole(const char *text, uint64_t *ret, struct err *err)
{
	const char *end = text;
	int r = parse_number(text, &end, ret, err);

	if (r == 0 && *end != '\0')
		return err_set(err, -EINVAL, "wants a number such as 24 or 0x18, not '%s'", text);
	return r;
}

/* NUMBER or NUMBER:WIDTH; width 0 when it is not given. */
static int parse_place(const char *text, uint64_t *ret, uint64_t *ret_width, struct err *err)
{
	const char *end = text;
	int r = parse_number(text, &end, ret, err);

	*ret_width = 0;
	if (r < 0 || *end == '\0')
		return r;
	if (*end != ':')
		return err_set(err, -EINVAL, "wants a number, and a width after ':', not '%s'",
			       text);
	r = parse_whole(end + 1, ret_width, err);
	if (r == 0 && (*ret_width == 0 || *ret_width > WIDTH_MAX))
		return err_set(err, -EINVAL, "the width in '%s' must be from 1 to %d", text,
			       WIDTH_MAX);
	return r;
}

static int parse_store(const char *text, struct scan_query *query, struct err *err)
{
	uint64_t offset;
	int r = parse_place(text, &offset, &query->width, err);

	if (r < 0)
		return r;
	query->store = true;
	query->offset = (int64_t)offset;
	if (query->offset < INT32_MIN || query->offset > INT32_MAX)
		return err_set(err, -EINVAL, "no instruction has an offset as large as '%s'", text);
	return 0;
}

static int parse_address(const char *text, struct scan_query *query, struct err *err)
{
	uint64_t width;
	int r = parse_place(text, &query->low, &width, err);

	if (r == 0 && __builtin_add_overflow(query->low, width ? width : 1, &query->high))
		return err_set(err, -EINVAL, "there is no address '%s'", text);
	return r;
}

static int parse_registers(const struct option_list *names, uint32_t *ret, struct err *err)
{
	for (size_t i = 0; i < names->count; i++) {
		uint32_t bit = scan_register(names->items[i]);

		if (bit == 0)
			return err_set(err, -EINVAL,
				       "wants a 64-bit register such as rbx, not '%s'",
				       names->items[i]);
		*ret |= bit;
	}
	return 0;
}

static int parse_fits(const struct option_list *names, uint32_t *ret, struct err *err)
{
	for (size_t i = 0; i < names->count; i++) {
		uint32_t bit = 0;

		for (enum scan_fit fit = SCAN_FIT_BEGINS; fit <= SCAN_FIT_ANY; fit++)
			if (strcmp(scan_fit_name(fit), names->items[i]) == 0)
				bit = 1u << fit;
		if (bit == 0)
			return err_set(err, -EINVAL,
				       "wants exact, narrower, wider, covers, begins or any, "
				       "not '%s'",
				       names->items[i]);
		*ret |= bit;
	}
	return 0;
}

static int parse_query(const struct scan_options *options, struct scan_request *request,
		       struct err *err)
{
	if (options->store && parse_store(options->store, &request->query, err) < 0)
		return err_set_prefix(err, "--store");
	if (options->address && parse_address(options->address, &request->query, err) < 0)
		return err_set_prefix(err, "--address");
	if (options->value && parse_whole(options->value, &request->query.value, err) < 0)
		return err_set_prefix(err, "--value");
	if (parse_registers(&options->registers, &request->query.registers, err) < 0)
		return err_set_prefix(err, "--reg");
	if (parse_fits(&options->fits, &request->fits, err) < 0)
		return err_set_prefix(err, "--fit");
	return 0;
}

static int check(const struct invocation *inv, struct scan_request *request, struct err *err)
{
	const struct scan_options *options = inv->options;
	unsigned int places = (inv->arg_count > 0) + (options->pid > 0) + (options->trial > 0);

	if (places != 1) {
		(void)err_set(err, -EINVAL, "scan wants %s: a FILE, --pid P or --trial N",
			      places == 0 ? "to know where to look" : "one place to look at");
		return err_set_remedy(err, "redhand scan ./program --store 0x18:8");
	}
	if (parse_query(options, request, err) < 0)
		return err->code;
	request->query.has_value = options->value != NULL;
	request->query.stack = options->stack;
	request->global = options->global;
	request->module = options->module;
	request->function = options->function;
	request->limit = (size_t)options->limit;
	if (options->global && options->address)
		return err_set(err, -EINVAL,
			       "--global and --address ask for two different addresses");
	if (options->store || options->address || options->global || options->value)
		return 0;
	(void)err_set(err, -EINVAL, "scan does not know what to look for");
	return err_set_remedy(
		err, "give --store OFFSET[:WIDTH], --global NAME, --address ADDR or --value "
		     "CONST");
}

static void show_progress(void *ctx, double seconds, uint64_t done, uint64_t total)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_addf(&sb, "%.0f MiB of code read", (double)done / 1024 / 1024);
	if (total > done)
		strbuf_addf(&sb, ", at most %.0f MiB left", (double)(total - done) / 1024 / 1024);
	progress_say(ctx, seconds, strbuf_str(&sb), &(struct progress_news){ 0 });
}

/* Where there is a case, what it knows to have written marks the hits. */
static void find_seen(const struct scan_options *options, struct seen_list *ret)
{
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(evidence_list_deinit) struct evidence_list evidence = { 0 };

	if (case_open(options->common.case_dir, CASE_READ, &cs, NULL) == 0 &&
	    case_evidence(cs, &evidence, NULL) == 0)
		seen_from_evidence(&evidence, ret);
}

static int scan_stored(const struct scan_options *options, struct scan_request *request,
		       struct seen_list *seen, struct scan_report *report, struct err *err)
{
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_view_deinit) struct trial_view view = { 0 };
	int r = case_open(options->common.case_dir, CASE_READ, &cs, err);

	if (r == 0)
		r = case_trial(cs, (struct trial_number){ options->trial }, &view, err);
	if (r < 0)
		return r;
	if (!view.kept) {
		(void)err_set(err, -ENODATA, "nothing was kept of trial %llu",
			      (unsigned long long)options->trial);
		return err_set_remedy(err, "scan a trial that failed, or run with --keep all");
	}
	return scan_trial(cs, options->trial, request, seen, report, err);
}

static int scan(const struct invocation *inv, struct scan_report *report, struct err *err)
{
	const struct scan_options *options = inv->options;
	AUTO(seen_list_deinit) struct seen_list seen = { 0 };
	struct progress progress;
	struct scan_request request = { .progress = show_progress, .progress_ctx = &progress };
	int r = check(inv, &request, err);

	if (r < 0)
		return r;
	find_seen(options, &seen);
	seen_list_give(&seen, &request);
	progress_init(&progress);
	if (options->pid > 0)
		r = scan_process((int)options->pid, &request, report, err);
	else if (options->trial > 0)
		r = scan_stored(options, &request, &seen, report, err);
	else
		r = scan_file(inv->args[0], &request, report, err);
	progress_end(&progress);
	return r;
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct scan_options *options = inv->options;
	AUTO(scan_report_deinit) struct scan_report report = { 0 };
	int r = scan(inv, &report, err);

	if (r < 0)
		return r;
	if (options->common.json)
		report_scan_json(&report, stdout);
	else
		report_scan_text(&report, options->common.verbose, stdout);
	return EXIT_AS_EXPECTED;
}

const struct command cmd_scan = {
	.name = "scan",
	.summary = "Which instructions could make such a write",
	.usage = "(FILE | --pid P | --trial N) --store OFFSET[:WIDTH] [options]",
	.description =
		"Disassembles all code of a file, of a running process or of a stored trial, code that "
		"was emitted at run time included, and lists the instructions that could write to a "
		"field: stores with its offset from a base register, of the field's width and of any "
		"other that touches it, read-modify-write (and, or, inc, xchg, cmpxchg, bts), vector and "
		"masked stores; and those whose width a register tells (rep stos, rep movs). Each with "
		"its function, file and line.\n\n"
		"A store through a pointer that was made to point to the field itself has offset 0 and "
		"is not found this way: that is what watch is for. Data between functions may "
		"be taken for code and give a hit that is none. Stores relative to the stack pointer are "
		"local variables and left out, unless --stack or --reg rsp asks for them.\n\n"
		"Instructions that a watch or a chase of the case (--case) caught writing are marked.",
	.examples = "  redhand scan ./server --store 0x18:8\n"
		    "      who could write any byte of a field of 8 bytes at offset 0x18?\n\n"
		    "  redhand scan --pid 4711 --store 0x18:8 --fit narrower\n"
		    "      who could write only a part of it, in emitted code as well?\n\n"
		    "  redhand scan --trial 17 --value 0xdeadbeef\n"
		    "      where does this constant come from?\n",
	OPTION_GROUPS(struct scan_options, OWN_GROUP("Where to look", where_table),
		      OWN_GROUP("What to look for", what_table), COMMON_GROUP(struct scan_options)),
	.args_max = 1,
	.defaults = defaults,
	.run = run,
};
