/* What was seen to run: the writers that watch and chase kept in the case, and those in a trial's
 * own logs. */
#include "studies/scan/scan_seen.h"

#include "base/cstr.h"
#include "studies/scan/code_scan.h"

#define SEEN_MAX 65536u

void seen_list_deinit(struct seen_list *list)
{
	VEC_FOREACH (&list->list, seen) {
		mem_free((char *)seen->module);
		mem_free((char *)seen->function);
		mem_free((char *)seen->text);
	}
	VEC_DEINIT(&list->list);
}

/* A frame that is inlined lies at the same place as the one that it is inlined into. */
static void add_write(struct seen_list *list, const struct write_seen *write)
{
	const struct frame *frame = write && write->writer.count > 0 ? write->writer.frames : NULL;

	if (!frame || write->flags & (WRITE_ASYNC | WRITE_KERNEL) || list->list.count == SEEN_MAX)
		return;
	while (frame->kind != FRAME_NATIVE && frame->kind != FRAME_JIT &&
	       frame + 1 < write->writer.frames + write->writer.count)
		frame++;
	if (frame->kind == FRAME_NATIVE && frame->module)
		VEC_PUSH(&list->list, ((struct seen_code){ .module = mem_strdup(frame->module),
							   .offset = frame->offset }));
	else if (frame->kind == FRAME_JIT && frame->function && write->instruction)
		VEC_PUSH(&list->list, ((struct seen_code){ .function = cstr_dup(frame->function),
							   .text = cstr_dup(write->instruction) }));
}

void seen_list_give(const struct seen_list *list, struct scan_request *request)
{
	if (list->list.count > 0)
		request->seen = list->list.items;
	request->seen_count = list->list.count;
}

void seen_from_evidence(const struct evidence_list *evidence, struct seen_list *list)
{
	VEC_FOREACH (&evidence->list, e) {
		if (e->kind == EVIDENCE_WRITE || e->kind == EVIDENCE_SIGHTING)
			add_write(list, e->write);
		if (e->kind == EVIDENCE_RACE) {
			add_write(list, e->race->first);
			add_write(list, e->race->second);
		}
	}
}

static void add_caught(struct seen_list *list, const struct hit *caught)
{
	struct writer writer;
	uint64_t at;

	if (list->list.count == SEEN_MAX || hit_decode(caught, NULL, &writer) < 0 ||
	    writer.system_call)
		return;
	at = event_log_original(caught->log, writer.store.at);
	VEC_FOREACH (&caught->log->modules, module)
		if (module->path && at >= module->start && at < module->end) {
			VEC_PUSH(&list->list,
				 ((struct seen_code){ .module = mem_strdup(module->path),
						      .offset = at - module->bias }));
			return;
		}
	VEC_PUSH(&list->list, ((struct seen_code){ .offset = at }));
}

void seen_from_trial(struct reading *reading, struct seen_list *list)
{
	uint64_t last = 0;

	VEC_FOREACH (&reading_hits(reading)->hits, caught) {
		uint64_t rip = caught->hit->gregs[LOG_GREG_RIP];

		/* A busy writer fills the ring. */
		if (rip != last)
			add_caught(list, caught);
		last = rip;
	}
}
