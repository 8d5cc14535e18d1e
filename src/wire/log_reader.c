#include "wire/log_reader.h"

#include <string.h>

#include "wire/checksum.h"

/* EVENTS is sparse and large. After the tail that the header claims, this much emptiness ends the
 * walk: enough to step over a hole made by a thread that died between reserving and writing. */
#define EMPTY_LIMIT (1u << 20)

static const enum log_region_kind walk_order[] = { LOG_REGION_RESERVE, LOG_REGION_EVENTS };
#define WALK_REGIONS (sizeof(walk_order) / sizeof(walk_order[0]))

static bool header_sound(const struct log_header *header)
{
	return header->magic == LOG_MAGIC && header->header_bytes == sizeof(*header) &&
	       header->check == checksum_add(CHECKSUM_SEED, header, LOG_FIXED_BYTES);
}

/* Keeps a region inside the bytes that are there; a log copied while short is still readable. */
static void region_clip(struct log_region *region, uint64_t len)
{
	if (region->offset > len) {
		region->offset = len;
		region->bytes = 0;
	}
	if (region->bytes > len - region->offset)
		region->bytes = len - region->offset;
}

/* Both copies of the fixed part are gone: everything behind them is searched as one region. */
static void header_guess(struct log_header *header, uint64_t len)
{
	memset(header, 0, sizeof(*header));
	header->magic = LOG_MAGIC;
	header->version = LOG_VERSION;
	header->regions[LOG_REGION_EVENTS].offset = 2 * LOG_PAGE;
	header->regions[LOG_REGION_EVENTS].bytes = len - 2 * LOG_PAGE;
	header->events_tail = len;
}

/* True when at least one sound record exists: what makes a headless file a log. */
static bool any_record(const struct log_reader *log)
{
	struct log_item item;
	uint64_t at;

	for (at = 2 * LOG_PAGE; at + sizeof(struct log_record) <= log->len; at += LOG_ALIGN)
		if (log_record_at(log, at, &item))
			return true;
	return false;
}

enum log_read_result log_reader_init(struct log_reader *log, const void *bytes, size_t len)
{
	struct log_header backup;
	unsigned i;

	memset(log, 0, sizeof(*log));
	if (len < 2 * LOG_PAGE)
		return LOG_READ_SHORT;
	if ((uintptr_t)bytes % 8)
		return LOG_READ_UNALIGNED;
	log->bytes = bytes;
	log->len = len;
	memcpy(&log->header, bytes, sizeof(log->header));
	memcpy(&backup, log->bytes + LOG_PAGE, sizeof(backup));
	if (!header_sound(&backup))
		log->damage.headers++;
	if (!header_sound(&log->header)) {
		log->damage.headers++;
		if (header_sound(&backup)) {
			memcpy(&log->header, &backup, LOG_FIXED_BYTES + sizeof(uint64_t));
		} else {
			header_guess(&log->header, len);
			if (!any_record(log))
				return LOG_READ_NOT_A_LOG;
		}
	}
	if (log->header.version != LOG_VERSION)
		return LOG_READ_VERSION;
	for (i = 0; i < LOG_REGION_COUNT; i++)
		region_clip(&log->header.regions[i], len);
	log_reader_rewind(log);
	return LOG_READ_OK;
}

const char *log_read_result_text(enum log_read_result result)
{
	switch (result) {
	case LOG_READ_OK:
		return "the log is readable";
	case LOG_READ_SHORT:
		return "the log is shorter than its header";
	case LOG_READ_NOT_A_LOG:
		return "this is not an event log";
	case LOG_READ_VERSION:
		return "the log was written by another version of the agent";
	case LOG_READ_UNALIGNED:
		return "the log's bytes do not lie at a multiple of 8";
	}
	return "unknown";
}

void log_reader_rewind(struct log_reader *log)
{
	struct log_damage *damage = &log->damage;

	log->region = 0;
	log->at = log->header.regions[walk_order[0]].offset;
	damage->records = damage->record_bytes = damage->incomplete = 0;
}

bool log_record_at(const struct log_reader *log, uint64_t offset, struct log_item *ret)
{
	struct log_record head;
	uint64_t check;

	if (offset % LOG_ALIGN || offset > log->len || log->len - offset < sizeof(head))
		return false;
	memcpy(&head, log->bytes + offset, sizeof(head));
	if (head.magic != LOG_RECORD_MAGIC || head.bytes > LOG_PAYLOAD_MAX ||
	    head.bytes > log->len - offset - sizeof(head) ||
	    head.head_check != log_head_check(&head))
		return false;
	check = head.check;
	head.check = 0;
	if (checksum_add(checksum_add(CHECKSUM_SEED, &head, sizeof(head)),
			 log->bytes + offset + sizeof(head), head.bytes) != check)
		return false;
	head.check = check;
	ret->head = head;
	ret->payload = log->bytes + offset + sizeof(head);
	ret->offset = offset;
	return true;
}

/* The first offset >= at, below end, where something is not zero; end when there is none. */
static uint64_t skip_zeros(const struct log_reader *log, uint64_t at, uint64_t end)
{
	static const unsigned char zeros[LOG_PAGE];
	uint64_t a, b;

	/* Mostly there are megabytes of them, and libc compares faster than a loop of ours. */
	while (at + sizeof(zeros) <= end && memcmp(log->bytes + at, zeros, sizeof(zeros)) == 0)
		at += sizeof(zeros);
	for (; at + LOG_ALIGN <= end; at += LOG_ALIGN) {
		memcpy(&a, log->bytes + at, 8);
		memcpy(&b, log->bytes + at + 8, 8);
		if (a | b)
			return at;
	}
	return end;
}

/* From a place where no sound record starts to the next one in the region. */
static bool resync(struct log_reader *log, uint64_t tail, uint64_t end, struct log_item *ret)
{
	uint64_t from = log->at, at = log->at, next, limit;
	bool counted = false;

	while (at < end) {
		limit = (at > tail ? at : tail) + EMPTY_LIMIT;
		next = skip_zeros(log, at, limit < end ? limit : end);
		if (next == limit)
			break;
		at = next;
		if (at + sizeof(struct log_record) > end)
			break;
		if (log_record_at(log, at, ret)) {
			if (!counted)
				log->damage.incomplete++; /* only zeros lay between */
			else
				log->damage.record_bytes += at - from;
			return true;
		}
		if (!counted) {
			counted = true;
			from = at;
			log->damage.records++;
		}
		at += LOG_ALIGN;
	}
	if (counted)
		log->damage.record_bytes += at - from;
	return false;
}

/* How far to look at least. RESERVE is small and its two slots lie behind a gap: all of it. */
static uint64_t region_tail(const struct log_reader *log, enum log_region_kind kind)
{
	const struct log_region *region = &log->header.regions[kind];
	uint64_t tail = kind == LOG_REGION_EVENTS ? log->header.events_tail : region->bytes;

	return region->offset + (tail < region->bytes ? tail : region->bytes);
}

bool log_reader_next(struct log_reader *log, struct log_item *ret)
{
	while (log->region < WALK_REGIONS) {
		const struct log_region *region = &log->header.regions[walk_order[log->region]];
		uint64_t end = region->offset + region->bytes;
		uint64_t span;

		if (log->at < end &&
		    (log_record_at(log, log->at, ret) ||
		     resync(log, region_tail(log, walk_order[log->region]), end, ret))) {
			span = log_record_span(ret->head.bytes);
			log->at = ret->offset + span;
			return true;
		}
		log->region++;
		if (log->region < WALK_REGIONS)
			log->at = log->header.regions[walk_order[log->region]].offset;
	}
	return false;
}

bool log_payload(const struct log_item *item, void *ret, size_t bytes)
{
	size_t have = item->head.bytes < bytes ? item->head.bytes : bytes;

	if (!item->head.bytes)
		return false;
	memset(ret, 0, bytes);
	memcpy(ret, item->payload, have);
	return true;
}

const void *log_payload_rest(const struct log_item *item, size_t fixed, size_t *ret_bytes)
{
	if (item->head.bytes <= fixed) {
		*ret_bytes = 0;
		return NULL;
	}
	*ret_bytes = item->head.bytes - fixed;
	return (const char *)item->payload + fixed;
}

/* End of the region that holds an offset, 0 when none does. */
static uint64_t region_end(const struct log_reader *log, uint64_t offset)
{
	unsigned i;

	for (i = 0; i < WALK_REGIONS; i++) {
		const struct log_region *region = &log->header.regions[walk_order[i]];

		if (offset >= region->offset && offset - region->offset < region->bytes)
			return region->offset + region->bytes;
	}
	return 0;
}

bool log_next_owned(const struct log_reader *log, uint64_t owner_seq, struct log_item *item)
{
	struct log_reader walk = *log;
	struct log_item next;
	uint64_t end = region_end(log, item->offset);

	if (item->head.type == LOG_CRASH_DONE && item->head.owner == owner_seq)
		return false;
	walk.at = item->offset + log_record_span(item->head.bytes);
	while (walk.at < end) {
		if (!log_record_at(&walk, walk.at, &next) && !resync(&walk, walk.at, end, &next))
			return false;
		walk.at = next.offset + log_record_span(next.head.bytes);
		if (next.head.owner == owner_seq) {
			*item = next;
			return true;
		}
		/* Another thread's records may lie between, but not a whole log of them. */
		if (walk.at - item->offset > (16u << 20))
			return false;
	}
	return false;
}

/* Copies the part of a piece that falls into the caller's buffer; returns the bytes that are new
 * to the count. Pieces come in order, so an overlap (a damaged log) is cut at `covered`. */
static uint64_t piece_place(const struct log_blob *blob, const void *data, uint64_t bytes,
			    uint64_t covered, void *buf, size_t cap)
{
	uint64_t end = blob->offset + bytes;

	if (blob->offset < cap)
		memcpy((char *)buf + blob->offset, data,
		       end < cap ? bytes : (uint64_t)cap - blob->offset);
	if (end <= covered)
		return 0;
	return blob->offset < covered ? end - covered : bytes;
}

bool log_blob_gather(const struct log_reader *log, const struct log_item *owner,
		     enum log_blob_kind kind, unsigned index, void *buf, size_t cap,
		     struct log_blob_info *ret)
{
	struct log_blob_info info = { 0 };
	struct log_item item = *owner;
	uint64_t covered = 0, got = 0;
	struct log_blob blob;
	bool found = false;
	const void *data;
	size_t bytes;

	if (cap)
		memset(buf, 0, cap);
	while (log_next_owned(log, owner->head.seq, &item)) {
		if (item.head.type != LOG_BLOB || !log_payload(&item, &blob, sizeof(blob)) ||
		    blob.kind != kind || blob.index != index)
			continue;
		data = log_payload_rest(&item, sizeof(blob), &bytes);
		if (!data || blob.total > UINT32_MAX || blob.offset > blob.total ||
		    bytes > blob.total - blob.offset)
			continue;
		if (found && blob.total != info.total)
			continue;
		found = true;
		info.address = blob.address;
		info.total = blob.total;
		got += piece_place(&blob, data, bytes, covered, buf, cap);
		if (blob.offset + bytes > covered)
			covered = blob.offset + bytes;
		if (covered == info.total)
			break;
	}
	if (!found)
		return false;
	info.missing = info.total - got;
	*ret = info;
	return true;
}

uint32_t log_lane_count(const struct log_reader *log)
{
	uint64_t room = log->header.regions[LOG_REGION_THREADS].bytes / sizeof(struct log_thread);

	return log->header.thread_slots < room ? log->header.thread_slots : (uint32_t)room;
}

static bool log_lane(const struct log_reader *log, uint32_t lane, struct log_thread *ret)
{
	if (lane >= log_lane_count(log))
		return false;
	memcpy(ret,
	       log->bytes + log->header.regions[LOG_REGION_THREADS].offset +
		       (uint64_t)lane * sizeof(*ret),
	       sizeof(*ret));
	ret->name[sizeof(ret->name) - 1] = 0;
	return ret->tid != 0;
}

/* One slot of a ring; false when it is empty or damaged. */
static bool ring_slot(const struct log_reader *log, uint32_t lane, uint64_t position,
		      struct log_life *ret)
{
	uint64_t records = log->header.ring_records;

	memcpy(ret,
	       log->bytes + log->header.regions[LOG_REGION_RINGS].offset +
		       (lane * records + position % records) * sizeof(*ret),
	       sizeof(*ret));
	return ret->start && log_life_check(ret) == ret->check;
}

/* The position is written once per group. What the lane wrote after it is told from what was there
 * one lap before by the epoch, which has moved in between. */
static uint64_t ring_end(const struct log_reader *log, uint32_t lane, uint64_t position)
{
	uint64_t end = position, k;
	struct log_life last, life;

	if (log->header.ring_records < LOG_RING_LAPS_MIN)
		return position;
	for (k = 1; k <= LOG_LIFE_GROUP && k <= position; k++)
		if (ring_slot(log, lane, position - k, &last))
			break;
	if (position && (k > LOG_LIFE_GROUP || k > position))
		return position;
	for (k = position; k < position + LOG_LIFE_GROUP - position % LOG_LIFE_GROUP; k++)
		if (ring_slot(log, lane, k, &life) &&
		    (!position || (int32_t)(life.epoch - last.epoch) >= 0))
			end = k + 1;
	return end;
}

bool log_ring_begin(const struct log_reader *log, uint32_t lane, struct log_ring_cursor *ret)
{
	uint64_t per_ring = (uint64_t)log->header.ring_records * sizeof(struct log_life);
	const struct log_region *rings = &log->header.regions[LOG_REGION_RINGS];
	struct log_thread row;

	if (!per_ring || !log_lane(log, lane, &row) || rings->bytes / per_ring <= lane)
		return false;
	ret->lane = lane;
	/* A position is a count of records since the start; a damaged one cannot be told from a
	 * large one, so only its remainder is used, and empty slots are skipped by checksum. */
	ret->end = ring_end(log, lane, row.ring_position);
	ret->index = ret->end > log->header.ring_records ? ret->end - log->header.ring_records : 0;
	return true;
}

bool log_ring_next(struct log_reader *log, struct log_ring_cursor *cursor, struct log_life *ret)
{
	uint64_t records = log->header.ring_records;
	struct log_life life;
	uint64_t offset;

	for (; cursor->index != cursor->end; cursor->index++) {
		offset = log->header.regions[LOG_REGION_RINGS].offset +
			 (cursor->lane * records + cursor->index % records) * sizeof(life);
		memcpy(&life, log->bytes + offset, sizeof(life));
		if (!life.start && !life.check)
			continue;
		if (log_life_check(&life) != life.check) {
			log->damage.ring_records++;
			continue;
		}
		cursor->index++;
		*ret = life;
		return true;
	}
	return false;
}

uint32_t log_context_count(const struct log_reader *log)
{
	uint64_t room = log->header.regions[LOG_REGION_CONTEXTS].bytes / sizeof(struct log_context);

	return log->header.context_rows < room ? log->header.context_rows : (uint32_t)room;
}

bool log_context_row(struct log_reader *log, uint32_t row, struct log_context *ret)
{
	struct log_context context;

	if (!row || row >= log_context_count(log))
		return false;
	memcpy(&context,
	       log->bytes + log->header.regions[LOG_REGION_CONTEXTS].offset +
		       (uint64_t)row * sizeof(context),
	       sizeof(context));
	if (!context.stack_hash && !context.check)
		return false;
	if (context.check != log_context_check(context.stack_hash, context.lane, row)) {
		log->damage.context_rows++;
		return false;
	}
	*ret = context;
	return true;
}

/* The fixed part of the region; NULL when it is not (wholly) there. */
static const unsigned char *watch_area(const struct log_reader *log)
{
	const struct log_region *region = &log->header.regions[LOG_REGION_WATCH];

	return region->bytes < sizeof(struct log_watch_area) ? NULL : log->bytes + region->offset;
}

bool log_watch_row(const struct log_reader *log, uint32_t watch, struct log_watch_row *ret)
{
	const unsigned char *area = watch_area(log);

	if (!area || watch >= LOG_WATCHES)
		return false;
	memcpy(ret, area + watch * sizeof(*ret), sizeof(*ret));
	return ret->mode != LOG_WATCH_OFF || ret->trouble;
}

bool log_writer_row(const struct log_reader *log, uint32_t row, struct log_writer_row *ret)
{
	const unsigned char *area = watch_area(log);

	if (!area || row >= LOG_WRITERS)
		return false;
	memcpy(ret, area + offsetof(struct log_watch_area, writers) + row * sizeof(*ret),
	       sizeof(*ret));
	return ret->rip && LOG_WRITER_WATCH(ret->watch) < LOG_WATCHES &&
	       ret->check == log_context_check(ret->rip, ret->watch, row);
}

bool log_watched(const struct log_reader *log, uint32_t row, struct log_watched *ret)
{
	const unsigned char *area = watch_area(log);
	struct log_watched watched;

	if (!area || row >= LOG_WATCHED)
		return false;
	memcpy(&watched, area + offsetof(struct log_watch_area, watched) + row * sizeof(watched),
	       sizeof(watched));
	if (!watched.number)
		return false;
	*ret = watched;
	/* Hits are counted without sealing the row anew. */
	watched.hits = 0;
	watched.check = 0;
	return ret->check == checksum_add(CHECKSUM_SEED, &watched, sizeof(watched));
}

bool log_last(const struct log_reader *log, uint64_t address, struct log_last *ret)
{
	const unsigned char *area = watch_area(log);
	uint32_t i;

	for (i = 0; area && i < LOG_LAST_PROBES; i++) {
		uint32_t slot = (log_last_slot(address) + i) % LOG_LASTS;
		struct log_last last;

		memcpy(&last, area + offsetof(struct log_watch_area, lasts) + slot * sizeof(last),
		       sizeof(last));
		if (last.address == address && last.check == log_last_sum(&last)) {
			*ret = last;
			return true;
		}
	}
	return false;
}

/* Where region WATCH has its hits; so many bytes of them and of what follows must be there. */
static const unsigned char *watch_hits(const struct log_reader *log, uint64_t bytes)
{
	const struct log_region *region = &log->header.regions[LOG_REGION_WATCH];
	uint64_t hits = (sizeof(struct log_watch_area) + LOG_PAGE - 1) & ~(uint64_t)(LOG_PAGE - 1);

	return region->bytes < hits + bytes ? NULL : log->bytes + region->offset + hits;
}

bool log_hit_block(const struct log_reader *log, uint64_t number, struct log_hit_block *ret)
{
	uint64_t hits = (uint64_t)LOG_HITS * LOG_HIT_SLOT;
	const unsigned char *at = watch_hits(log, hits + LOG_HITS * sizeof(*ret));

	if (!at)
		return false;
	memcpy(ret, at + hits + number % LOG_HITS * sizeof(*ret), sizeof(*ret));
	return number && ret->number == number && ret->len <= LOG_HIT_BLOCK &&
	       ret->check == log_hit_block_sum(number, ret);
}

const struct log_hit *log_hit(struct log_reader *log, uint32_t slot)
{
	const unsigned char *at = watch_hits(log, (uint64_t)LOG_HITS * LOG_HIT_SLOT);
	struct log_hit head;
	uint64_t sum;

	if (slot >= LOG_HITS || !at)
		return NULL;
	at += (uint64_t)slot * LOG_HIT_SLOT;
	memcpy(&head, at, sizeof(head));
	if (!head.number)
		return NULL;
	sum = head.check;
	head.check = 0;
	if (head.stack_bytes > LOG_HIT_STACK || head.stack_bytes % 8 ||
	    head.code_bytes > LOG_HIT_CODE || head.bytes > LOG_WATCH_BYTES ||
	    head.number % LOG_HITS != slot ||
	    log_hit_sum(head.number, &head, at + sizeof(head)) != sum) {
		log->damage.hits++;
		return NULL;
	}
	return (const struct log_hit *)at;
}
