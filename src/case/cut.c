/*
 * Files made shorter, and by whom.
 */
#include "case/case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "case/case_inside.h"

/* Fields are separated by tabs, frames by newlines; neither occurs in printable text. Last comes
 * how the stack ends. Rows of older cases have neither that nor flags. */
static void pack_stack(const struct stack *stack, struct strbuf *sb)
{
	for (size_t i = 0; i < stack->count; i++) {
		const struct frame *f = &stack->frames[i];

		strbuf_addf(sb, "%s\t%s\t%u\t%s\t%" PRIx64 "\t%d\t%u\n",
			    f->function ? f->function : "", f->file ? f->file : "", f->line,
			    f->module ? f->module : "", f->offset, (int)f->kind, f->flags);
	}
	strbuf_addf(sb, "=%d\n", (int)stack->end);
}

static char *field_or_null(char *text)
{
	return text && text[0] != '\0' ? text : NULL;
}

/* A case may come from anybody: what is beyond the last one is the first. */
static unsigned int number_up_to(const char *text, unsigned int last)
{
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;

	return number <= last ? (unsigned int)number : 0;
}

static void unpack_stack(const char *text, struct stack *ret)
{
	AUTO(mem_freep) char *copy = mem_strdup(text);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
		struct frame frame = { 0 };
		char *number;

		if (line[0] == '=') {
			ret->end = (enum stack_end)number_up_to(line + 1, STACK_LOOP);
			continue;
		}
		frame.function = field_or_null(strsep(&line, "\t"));
		frame.file = field_or_null(strsep(&line, "\t"));
		number = strsep(&line, "\t");
		frame.line = number ? (uint32_t)strtoul(number, NULL, 10) : 0;
		frame.module = field_or_null(strsep(&line, "\t"));
		number = strsep(&line, "\t");
		frame.offset = number ? strtoull(number, NULL, 16) : 0;
		frame.kind = (enum frame_kind)number_up_to(strsep(&line, "\t"), FRAME_KERNEL);
		frame.flags = line ? (unsigned int)strtoul(line, NULL, 10) : 0;
		(void)stack_push(ret, &frame);
	}
}

int case_add_cut(struct case_store *cs, const struct cut_record *record, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf stack = { 0 };
	const struct file_cut *cut = record->cut;

	pack_stack(&cut->stack, &stack);
	return db_run(&cs->db, err,
		      "INSERT INTO file_cut (trial, path, device, inode, realtime_ns, pid, program,"
		      " how, old_size, new_size, stack) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
		      "isiiiissiis", (int64_t)record->trial.value, record->path,
		      (int64_t)record->device, (int64_t)record->inode, (int64_t)record->realtime_ns,
		      (int64_t)cut->pid, cut->program, cut->how, cut->old_size, cut->new_size,
		      strbuf_str(&stack));
}

int case_find_cut(struct case_store *cs, uint64_t device, uint64_t inode, uint64_t realtime_ns,
		  struct file_cut **ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	struct file_cut *cut;
	int r;

	*ret = NULL;
	r = db_first(&cs->db, &query, err,
		     "SELECT trial, pid, program, how, old_size, new_size, stack, realtime_ns"
		     " FROM file_cut WHERE device = ? AND inode = ? AND realtime_ns <= ?"
		     " ORDER BY realtime_ns DESC LIMIT 1",
		     "iii", (int64_t)device, (int64_t)inode, (int64_t)realtime_ns);
	if (r <= 0)
		return r;
	cut = mem_alloc(sizeof(*cut));
	cut->trial = (uint64_t)query_int(&query, 0);
	cut->pid = (int)query_int(&query, 1);
	cut->program = mem_strdup(query_text(&query, 2));
	cut->how = mem_strdup(query_text(&query, 3));
	cut->old_size = query_int(&query, 4);
	cut->new_size = query_int(&query, 5);
	unpack_stack(query_text(&query, 6), &cut->stack);
	cut->before_s = (double)(int64_t)(realtime_ns - (uint64_t)query_int(&query, 7)) / 1e9;
	*ret = cut;
	return 0;
}
