#include "studies/scan/code_scan.h"

#include <fnmatch.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/linear_sweep.h"
#include "base/cstr.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "debuginfo/code_layout.h"
#include "debuginfo/demangle.h"
#include "studies/scan/code_scan_inside.h"

#define PAGE 4096u
#define PIECE_BYTES (4u << 20)
#define LONGEST_INSTRUCTION 15u
/* More than any code: what is beyond is something else, or a lie. */
#define RANGE_MAX (4ull << 30)
/* No instruction in 64-bit mode: stands for bytes that could not be read. */
#define NO_CODE 0x06

uint32_t scan_register(const char *name)
{
	int number = arch_register_find(arch_native(), name);

	return number < 0 || (unsigned int)number == arch_native()->pc ? 0 : 1u << number;
}

/* Does a function's name, with its scope and its arguments as C++ has them, answer to what a user
 * wrote: the whole, the name alone, or a pattern as the shell knows them? */
static bool scan_function_matches(const char *function, const char *wanted)
{
	return demangled_matches(function, wanted) || fnmatch(wanted, function, 0) == 0;
}

static bool in_function(const struct stack *frames, const char *wanted)
{
	for (size_t i = 0; i < frames->count; i++)
		if (frames->frames[i].function &&
		    scan_function_matches(frames->frames[i].function, wanted))
			return true;
	return false;
}

static bool seen_emitted(const struct seen_code *seen, const struct frame *frame,
			 const struct scan_hit *hit)
{
	if (seen->module || (frame && frame->module))
		return false;
	if (!seen->function)
		return seen->offset == hit->address;
	return frame && frame->function && strcmp(frame->function, seen->function) == 0 &&
	       strcmp(hit->instruction, seen->text) == 0;
}

static bool was_seen(const struct scan_request *request, const struct scan_hit *hit)
{
	const struct stack *frames = &hit->frames;
	const struct frame *frame = frames->count > 0 ? &frames->frames[frames->count - 1] : NULL;

	for (size_t i = 0; i < request->seen_count; i++) {
		const struct seen_code *seen = &request->seen[i];

		if (!seen->module || !frame || !frame->module) {
			if (seen_emitted(seen, frame, hit))
				return true;
		} else if (seen->offset == frame->offset &&
			   strcmp(seen->module, frame->module) == 0) {
			return true;
		}
	}
	return false;
}

struct scan_sweeping {
	struct scanner *scanner;
	const struct scan_source *source;
	struct scan_region *region;
	const uint8_t *bytes;
	uint64_t address; /* of bytes[0] */
};

static void keep_hit(struct scan_sweeping *s, const struct sweep_hit *found, struct stack *frames)
{
	const struct store *store = &found->store;
	struct scan_hit hit = {
		.match = found->match,
		.fit = found->fit,
		.address = store->at,
		.length = store->length,
		.width = store->width,
		.displacement = store->to.displacement,
		.frames = *frames,
	};

	*frames = (struct stack){ 0 };
	memcpy(hit.bytes, s->bytes + (store->at - s->address),
	       store->length < SCAN_CODE_BYTES ? store->length : SCAN_CODE_BYTES);
	hit.instruction = mem_strdup(store->text);
	if (found->match == SCAN_STORE)
		hit.kind = store_kind_name(store->kind);
	if (found->match == SCAN_STORE && store->to.base != NO_REGISTER)
		hit.base = arch_register_name(arch_native(), (unsigned int)store->to.base);
	hit.executed = was_seen(s->scanner->request, &hit);
	VEC_PUSH(&s->scanner->report->hits, hit);
}

static void found(void *ctx, const struct sweep_hit *hit)
{
	struct scan_sweeping *s = ctx;
	const struct scan_request *request = s->scanner->request;
	struct scan_report *report = s->scanner->report;
	AUTO(stack_deinit) struct stack frames = { 0 };

	if (hit->match == SCAN_STORE && request->fits && !(request->fits & (1u << hit->fit)))
		return;
	/* Names take far longer than all the rest: none for those that are only counted. */
	if (request->function || request->limit == 0 || report->hits.count < request->limit)
		symbols_name(s->scanner->symbols, s->source->snapshot, hit->store.at, FRAME_EXACT,
			     &frames);
	if (request->function && !in_function(&frames, request->function))
		return;
	s->region->hits++;
	if (request->limit > 0 && report->hits.count >= request->limit) {
		report->limited++;
		return;
	}
	keep_hit(s, hit, &frames);
}

void scanner_init(struct scanner *scanner, const struct scan_request *request,
		  struct symbols *symbols, struct scan_report *report)
{
	*scanner = (struct scanner){
		.request = request,
		.query = request->query,
		.report = report,
		.symbols = symbols,
		.started = clock_s(),
	};
	report->query = request->query;
	report->global = cstr_dup(request->global);
	report->seen_known = request->seen != NULL;
}

void scanner_expect(struct scanner *scanner, uint64_t bytes)
{
	scanner->total += bytes;
}

void scanner_finish(struct scanner *scanner)
{
	VEC_FOREACH (&scanner->report->regions, region)
		if (region->unread > 0)
			SAY_TOO(&scanner->report->notes, "note:unread",
				said_number((region->unread + 1023) / 1024),
				said_number((region->bytes + 1023) / 1024),
				said_text(region->name));
	scanner->report->seconds = clock_s() - scanner->started;
}

/* Reads as much as there is; what is not becomes NO_CODE. Returns how much that was. */
static uint64_t read_range(const struct scan_source *source, uint64_t address, uint8_t *buf,
			   uint64_t len)
{
	uint64_t unread = 0;

	if (len == 0 || source->read(source->ctx, address, buf, len))
		return 0;
	for (uint64_t at = 0; at < len;) {
		uint64_t piece = PAGE - ((address + at) & (PAGE - 1));

		if (piece > len - at)
			piece = len - at;
		if (!source->read(source->ctx, address + at, buf + at, piece)) {
			memset(buf + at, NO_CODE, piece);
			unread += piece;
		}
		at += piece;
	}
	return unread;
}

/* Piece by piece: a process may have reserved far more than it uses. */
static void sweep_range(struct scanner *scanner, const struct scan_source *source,
			struct scan_region *region, const struct code_range *range,
			const struct code_layout *layout)
{
	AUTO(mem_freep) uint8_t *bytes = mem_alloc(PIECE_BYTES + LONGEST_INSTRUCTION);
	struct scan_report *report = scanner->report;
	struct scan_sweeping sweeping = {
		.scanner = scanner, .source = source, .region = region, .bytes = bytes
	};
	struct sweep sweep = { .query = &scanner->query, .found = found, .ctx = &sweeping };
	uint64_t all = range->high - range->low, len = all < RANGE_MAX ? all : RANGE_MAX;
	uint64_t unread = all - len;
	size_t first = 0;

	for (uint64_t at = 0; at < len;) {
		uint64_t part = len - at, ahead = 0;

		if (part > PIECE_BYTES) {
			ahead = part - PIECE_BYTES;
			part = PIECE_BYTES;
			ahead = ahead < LONGEST_INSTRUCTION ? ahead : LONGEST_INSTRUCTION;
		}
		sweeping.address = range->low + at;
		sweep.stop = sweeping.address + part;
		unread += read_range(source, sweeping.address, bytes, part);
		(void)read_range(source, sweep.stop, bytes + part, ahead);
		while (first < layout->starts.count &&
		       layout->starts.items[first] < sweeping.address)
			first++;
		part = sweep_code(&sweep, bytes, part + ahead, sweeping.address,
				  layout->starts.items + first, layout->starts.count - first);
		at += part;
		scanner->done += part;
		if (scanner->request->progress)
			scanner->request->progress(scanner->request->progress_ctx,
						   clock_s() - scanner->started, scanner->done,
						   scanner->total);
	}
	region->bytes += all;
	region->unread += unread;
	report->bytes += all;
	report->instructions += sweep.instructions;
	report->undecoded += sweep.undecoded > unread ? sweep.undecoded - unread : 0;
	report->stack_left_out += sweep.stack_left_out;
}

static char *region_name(const struct mapping *mapping)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (!mapping->path || mapping->path[0] == '\0')
		return mem_strdup("[emitted code]");
	strbuf_add_printable(&sb, mapping->path, strlen(mapping->path));
	return strbuf_take(&sb);
}

/* The region of the same name, if the one before has it: a file with several mappings is one. */
static struct scan_region *region_for(struct scan_report *report, const struct mapping *mapping)
{
	struct scan_region region = { .name = region_name(mapping) };
	struct scan_region *last = report->regions.count > 0
					   ? &report->regions.items[report->regions.count - 1]
					   : NULL;

	if (last && strcmp(last->name, region.name) == 0) {
		mem_free(region.name);
		return last;
	}
	VEC_PUSH(&report->regions, region);
	return &report->regions.items[report->regions.count - 1];
}

void scanner_sweep(struct scanner *scanner, const struct scan_source *source,
		   const struct mapping *mapping)
{
	AUTO(code_layout_deinit) struct code_layout layout = { 0 };
	struct scan_region *region = region_for(scanner->report, mapping);

	/* A recorded file that is not there any more, or has changed, has nothing to be read; how
	 * long it was is only what the record says. */
	if (!symbols_code(scanner->symbols, source->snapshot, mapping, &layout) &&
	    source->recorded && mapping->path) {
		region->unread += mapping->end - mapping->start;
		region->bytes += mapping->end - mapping->start;
		return;
	}
	VEC_FOREACH (&layout.ranges, range)
		sweep_range(scanner, source, region, range, &layout);
}
