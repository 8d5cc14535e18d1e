#include "wire/python_record.h"

#include <string.h>

#define INTERPRETERS_MAX 64
#define THREADS_MAX 1024
#define FRAMES_MAX 256
#define TEXT_MAX 1024
#define LINETABLE_MAX 16384
#define RECENT 32 /* code objects remembered, so that recursion is kept once */

struct record_walk {
	const struct python_layout *layout;
	struct python_recorder *recorder;
	uint64_t recent[RECENT];
	unsigned int recent_next;
};

static bool keep(struct record_walk *walk, uint64_t address, size_t len)
{
	if (len > walk->recorder->budget)
		return false;
	walk->recorder->budget -= len;
	walk->recorder->keep(walk->recorder->arg, address, len);
	return true;
}

/* Reads, and keeps what it read. */
static bool fetch(struct record_walk *walk, uint64_t address, void *buf, size_t len)
{
	return walk->recorder->read(walk->recorder->arg, address, buf, len) &&
	       keep(walk, address, len);
}

static uint64_t word_at(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Everything that the layout names in a thread state, in one piece. */
static size_t thread_bytes(const struct python_layout *l)
{
	return larger(larger(l->thread.next, l->thread.frame),
		      larger(l->thread.thread_id, l->thread.native_thread_id)) +
	       8;
}

/* Finds the thread and the word that its frames hang on. */
static bool find_thread(struct record_walk *walk, uint64_t runtime, uint64_t pthread,
			uint64_t kernel_tid, uint64_t *ret)
{
	const struct python_layout *l = walk->layout;
	uint64_t interpreter, state;
	unsigned int threads = 0;
	uint8_t bytes[512];

	if (thread_bytes(l) > sizeof(bytes) ||
	    !fetch(walk, runtime + l->runtime.interpreters_head, &interpreter, 8))
		return false;
	for (unsigned int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		if (!fetch(walk, interpreter + l->interpreter.threads_head, &state, 8))
			return false;
		while (state && threads++ < THREADS_MAX) {
			if (!fetch(walk, state, bytes, thread_bytes(l)))
				break;
			if ((kernel_tid &&
			     word_at(bytes, l->thread.native_thread_id) == kernel_tid) ||
			    (pthread && word_at(bytes, l->thread.thread_id) == pthread)) {
				*ret = word_at(bytes, l->thread.frame);
				return true;
			}
			state = word_at(bytes, l->thread.next);
		}
		if (!fetch(walk, interpreter + l->interpreter.next, &interpreter, 8))
			return false;
	}
	return false;
}

static void keep_text(struct record_walk *walk, uint64_t object)
{
	const struct python_layout *l = walk->layout;
	uint8_t head[128];
	uint64_t length, width, start;

	if (l->unicode.compact_size > sizeof(head) ||
	    l->unicode.ascii_size < l->unicode.state + 4 ||
	    !walk->recorder->read(walk->recorder->arg, object, head, l->unicode.ascii_size))
		return;
	length = word_at(head, l->unicode.length);
	width = (head[l->unicode.state] >> 2) & 7;
	start = head[l->unicode.state] >> 6 & 1 ? l->unicode.ascii_size : l->unicode.compact_size;
	if (length <= TEXT_MAX && width <= 4)
		(void)keep(walk, object, start + length * width);
}

static void keep_code(struct record_walk *walk, uint64_t object)
{
	const struct python_layout *l = walk->layout;
	uint8_t code[512];
	uint64_t table, length;

	for (unsigned int i = 0; i < RECENT; i++)
		if (walk->recent[i] == object)
			return;
	walk->recent[walk->recent_next++ % RECENT] = object;
	if (l->code.size > sizeof(code) || !fetch(walk, object, code, l->code.size))
		return;
	keep_text(walk, word_at(code, l->code.qualname));
	keep_text(walk, word_at(code, l->code.filename));
	table = word_at(code, l->code.linetable);
	if (walk->recorder->read(walk->recorder->arg, table + l->bytes.length, &length, 8) &&
	    length <= LINETABLE_MAX)
		(void)keep(walk, table, l->bytes.data + length);
}

unsigned int python_record_sigsafe(const struct python_layout *layout, uint64_t runtime,
				   uint64_t pthread, uint64_t kernel_tid,
				   struct python_recorder *recorder)
{
	struct record_walk walk = { .layout = layout, .recorder = recorder };
	bool has_cframe = layout->cframe.current_frame || layout->cframe.previous;
	uint64_t at, cframe = 0, pair[2];
	uint8_t frame[256];
	unsigned int count = 0, steps = 0;

	if (layout->frame.size > sizeof(frame) || layout->frame.size < 72 ||
	    !find_thread(&walk, runtime, pthread, kernel_tid, &at))
		return 0;
	if (has_cframe) {
		/* Its two words stand side by side in every version that has it. */
		cframe = at;
		if (!fetch(&walk, cframe + layout->cframe.current_frame, pair, sizeof(pair)))
			return 0;
		at = pair[0];
		cframe = pair[1];
	}
	while (at && steps++ < FRAMES_MAX && fetch(&walk, at, frame, layout->frame.size)) {
		if (layout->frame.is_entry ||
		    frame[layout->frame.owner] < PYTHON_OWNED_BY_C_STACK) {
			keep_code(&walk, python_code_object(word_at(frame, layout->frame.code)));
			count++;
		}
		/* 3.11: the groups of frames are tied to the native stack by the cframes. */
		if (layout->frame.is_entry && frame[layout->frame.is_entry] && cframe &&
		    fetch(&walk, cframe + layout->cframe.current_frame, pair, sizeof(pair)))
			cframe = pair[1];
		at = word_at(frame, layout->frame.previous);
	}
	return count;
}

void python_record_code_sigsafe(const struct python_layout *layout, uint64_t object,
				struct python_recorder *recorder)
{
	struct record_walk walk = { .layout = layout, .recorder = recorder };

	keep_code(&walk, object);
}
