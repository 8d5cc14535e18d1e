#include "read/truncations.h"

#define TRUNCATIONS_MAX 64

static const char *how_text(uint32_t how)
{
	static const char *const names[] = { [LOG_BY_FTRUNCATE] = "ftruncate",
					     [LOG_BY_TRUNCATE] = "truncate",
					     [LOG_BY_OPEN] = "open with O_TRUNC",
					     [LOG_BY_FALLOCATE] = "fallocate" };

	return how < ARRAY_SIZE(names) && names[how] ? names[how] : "a system call";
}

static struct truncation tell(struct event_log *log, const struct log_item *item,
			      const struct log_truncation *record, struct symbols *symbols)
{
	char *path = event_log_text(log, item, LOG_BLOB_PATH);
	size_t stack_len = 0;
	AUTO(mem_freep)
	void *stack = blob_read(&log->reader, item, LOG_BLOB_STACK, 0, NULL, &stack_len);
	AUTO(python_memory_deinit) struct python_memory python = { 0 };
	struct file_cut *cut = mem_alloc(sizeof(*cut));

	python_memory_read(&log->reader, item, &python);
	cut->pid = (int)log->reader.header.pid;
	cut->program = mem_strdup(log->program ? log->program : "?");
	cut->how = mem_strdup(how_text(record->how));
	cut->old_size = record->old_size;
	cut->new_size = record->new_size;
	if (stack)
		event_log_unwind_callee(log,
					&(struct callee_stack){ .registers = record->registers,
								.bytes = stack,
								.len = stack_len,
								.python = &python,
								.tid = item->head.tid },
					symbols, &cut->stack);
	return (struct truncation){ .path = path ? path : mem_strdup("?"),
				    .device = record->device,
				    .inode = record->inode,
				    .realtime_ns = record->realtime_ns,
				    .cut = cut };
}

void truncations_read(struct event_logs *logs, struct symbols *symbols, struct truncations *ret)
{
	VEC_FOREACH (&logs->list, log) {
		struct log_item item;

		log_reader_rewind(&log->reader);
		while (ret->list.count < TRUNCATIONS_MAX && log_reader_next(&log->reader, &item)) {
			struct log_truncation record;

			if (item.head.type != LOG_TRUNCATION ||
			    !log_payload(&item, &record, sizeof(record)) || record.result != 0 ||
			    record.old_size <= record.new_size)
				continue;
			VEC_PUSH(&ret->list, tell(log, &item, &record, symbols));
		}
	}
}

void truncations_deinit(struct truncations *truncations)
{
	VEC_FOREACH (&truncations->list, truncation) {
		mem_free(truncation->path);
		file_cut_free(truncation->cut);
	}
	VEC_DEINIT(&truncations->list);
}
