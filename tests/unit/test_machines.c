/*
 * run/remote: proofs, frames, files that travel, what a worker is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "run/remote/fleet.h"
#include "run/remote/handshake.h"
#include "run/remote/listener.h"
#include "run/remote/node.h"
#include "run/remote/orders.h"
#include "run/remote/parcel.h"
#include "scratch.h"

/* ---- two ends ---- */

struct ends {
	struct trust trusts[2]; /* redhand's, the worker's */
	struct greeting greetings[2];
	struct link links[2];
};

static void ends_make(struct ends *e)
{
	struct err err = { 0 };
	char *variable;
	int pair[2];

	*e = (struct ends){ 0 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	link_init(&e->links[0], pair[0]);
	link_init(&e->links[1], pair[1]);
	assert_int_equal(trust_make(&e->trusts[0], NULL, &err), 0);
	variable = trust_variable(&e->trusts[0]);
	assert_int_equal(trust_find(&e->trusts[1], strchr(variable, '=') + 1, &err), 0);
	mem_free(variable);
}

static void ends_drop(struct ends *e)
{
	for (size_t i = 0; i < 2; i++) {
		trust_deinit(&e->trusts[i]);
		link_close(&e->links[i]);
	}
}

/* What each end makes of it; 1: it knows the other. */
static void greet(struct ends *e, int ret[2])
{
	ret[0] = ret[1] = 0;
	greeting_begin(&e->greetings[0], &e->links[0]);
	for (int turn = 0; turn < 4; turn++) {
		size_t i = turn % 2 == 0 ? 1 : 0;

		(void)link_flush(&e->links[!i]);
		(void)link_receive(&e->links[i]);
		if (ret[i] == 0)
			ret[i] = greeting_go_on(&e->greetings[i], &e->trusts[i], i == 1,
						&e->links[i]);
	}
}

static void both_ends_prove_themselves(void **state)
{
	struct ends e;
	int known[2];

	(void)state;
	ends_make(&e);
	greet(&e, known);
	assert_int_equal(known[0], 1);
	assert_int_equal(known[1], 1);
	ends_drop(&e);
}

static void another_token_is_a_strangers(void **state)
{
	struct ends e;
	const char *said;
	int known[2];

	(void)state;
	ends_make(&e);
	e.trusts[1].token[0] ^= 1;
	greet(&e, known);
	assert_int_equal(known[0], -EACCES);
	assert_int_equal(known[1], 0);
	/* Nothing but the random number was said to it. */
	assert_int_equal(link_received(&e.links[1], &said), 0);
	assert_int_equal(link_waiting(&e.links[0]), 0);
	ends_drop(&e);
}

static void send_text(struct link *link, enum frame_type type, const char *text)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	strbuf_adds(&payload, text);
	link_send(link, type, &payload);
}

static void frames_arrive_as_they_were_sent(void **state)
{
	struct link_frame frame;
	struct ends e;
	int known[2];

	(void)state;
	ends_make(&e);
	greet(&e, known);
	send_text(&e.links[0], FRAME_JOB, "one");
	send_text(&e.links[0], FRAME_STOP, "");
	assert_int_equal(link_flush(&e.links[0]), 0);
	assert_int_equal(link_receive(&e.links[1]), 1);
	assert_int_equal(link_take(&e.links[1], &frame), 1);
	assert_int_equal(frame.type, FRAME_JOB);
	assert_int_equal(frame.len, 3);
	assert_memory_equal(frame.bytes, "one", 3);
	assert_int_equal(link_take(&e.links[1], &frame), 1);
	assert_int_equal(frame.type, FRAME_STOP);
	assert_int_equal(link_take(&e.links[1], &frame), 0);
	ends_drop(&e);
}

/* The environment and the arguments of the trials are in them. */
static void nobody_on_the_wire_can_read_frames(void **state)
{
	static const char text[] =
		"API_TOKEN=a value that is longer than one block of the veil, API_TOKEN";
	const size_t len = sizeof(text) - 1;
	struct link_frame frame;
	struct link *from;
	struct ends e;
	int known[2];

	(void)state;
	ends_make(&e);
	greet(&e, known);
	for (int way = 0; way < 2; way++) {
		from = &e.links[way];
		send_text(from, FRAME_ALIVE, text);
		send_text(from, FRAME_ALIVE, text);
		/* Neither as it is, nor twice the same. */
		assert_null(
			memmem(from->out.data + from->out_at, link_waiting(from), "API_TOKEN", 9));
		assert_memory_not_equal(
			from->out.data + from->out.len - len,
			from->out.data + from->out.len - link_waiting(from) / 2 - len, len);
		assert_int_equal(link_flush(from), 0);
		assert_int_equal(link_receive(&e.links[1 - way]), 1);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(link_take(&e.links[1 - way], &frame), 1);
			assert_int_equal(frame.len, len);
			assert_memory_equal(frame.bytes, text, len);
		}
	}
	ends_drop(&e);
}

/* Any byte changed, a frame sent twice, one of the other direction: none is taken. */
static void frames_of_others_are_refused(void **state)
{
	(void)state;
	for (size_t changed = 0; changed < 29; changed++) {
		struct link_frame frame;
		struct ends e;
		int known[2], r;

		ends_make(&e);
		greet(&e, known);
		send_text(&e.links[0], FRAME_JOB, "works");
		assert_int_equal(e.links[0].out.len - e.links[0].out_at, 29);
		if (changed > 0)
			e.links[0].out.data[e.links[0].out_at + changed - 1] ^= 4;
		else /* again */
			link_put(&e.links[0], e.links[0].out.data + e.links[0].out_at, 29);
		(void)link_flush(&e.links[0]);
		(void)link_receive(&e.links[1]);
		r = link_take(&e.links[1], &frame);
		if (changed == 0) {
			assert_int_equal(r, 1);
			r = link_take(&e.links[1], &frame);
		}
		/* A length that grew waits for bytes that never come. */
		assert_true(r == -EBADMSG || (r == 0 && changed >= 1 && changed <= 4));
		ends_drop(&e);
	}
}

/* Cut short, in another order, one left out, of another connection with the same token. */
static void frames_have_their_place(void **state)
{
	enum { FRAME = 25 }; /* with one byte in it */
	struct link_frame frame;
	struct ends e, other;
	int known[2];

	(void)state;
	for (int how = 0; how < 4; how++) {
		struct strbuf *out = &e.links[0].out;
		char kept[FRAME];

		ends_make(&e);
		greet(&e, known);
		ends_make(&other);
		memcpy(other.trusts[0].token, e.trusts[0].token, sizeof(e.trusts[0].token));
		memcpy(other.trusts[1].token, e.trusts[0].token, sizeof(e.trusts[0].token));
		greet(&other, known);
		assert_int_equal(known[0] + known[1], 2);
		(void)link_flush(&other.links[0]);
		send_text(&other.links[0], FRAME_JOB, "a");
		send_text(&e.links[0], FRAME_JOB, "a");
		send_text(&e.links[0], FRAME_JOB, "b");
		assert_int_equal(link_waiting(&e.links[0]), 2 * FRAME);
		memcpy(kept, out->data + out->len - 2 * FRAME, FRAME);
		if (how == 0) { /* the end is missing: it waits */
			out->len -= FRAME + 1;
		} else if (how == 1) {
			memcpy(out->data + out->len - 2 * FRAME, out->data + out->len - FRAME,
			       FRAME);
			memcpy(out->data + out->len - FRAME, kept, FRAME);
		} else if (how == 2) {
			e.links[0].out_at += FRAME;
		} else {
			memcpy(out->data + out->len - 2 * FRAME,
			       other.links[0].out.data + other.links[0].out.len - FRAME, FRAME);
		}
		(void)link_flush(&e.links[0]);
		(void)link_receive(&e.links[1]);
		assert_int_equal(link_take(&e.links[1], &frame), how == 0 ? 0 : -EBADMSG);
		ends_drop(&e);
		ends_drop(&other);
	}
}

/* One that speaks as an older redhand did is told from a stranger. */
static void another_version_is_known(void **state)
{
	static const char old[200] = "redhand2", strange[200] = "GET / HTTP/1.1";
	struct ends e;

	(void)state;
	for (int i = 0; i < 2; i++) {
		ends_make(&e);
		greeting_begin(&e.greetings[0], &e.links[0]);
		link_put(&e.links[1], i == 0 ? old : strange, sizeof(old));
		(void)link_flush(&e.links[1]);
		(void)link_receive(&e.links[0]);
		assert_int_equal(greeting_go_on(&e.greetings[0], &e.trusts[0], false, &e.links[0]),
				 i == 0 ? -EPROTO : -EACCES);
		ends_drop(&e);
	}
}

/* ---- files ---- */

struct carried {
	struct parcel *parcel;
	struct err err;
};

static int carry(void *ctx, enum frame_type type, const struct strbuf *payload)
{
	struct carried *carried = ctx;

	return parcel_put(carried->parcel, type, payload->data + sizeof(uint64_t),
			  payload->len - sizeof(uint64_t), &carried->err);
}

static void a_tree_travels(void **state)
{
	struct scratch from, to;
	struct parcel parcel;
	struct carried carried = { .parcel = &parcel };
	struct parcel_sink sink = { .frame = carry, .ctx = &carried };
	struct stat st;
	AUTO(mem_freep) char *read = NULL;
	char path[128];
	size_t len;
	int fd;

	(void)state;
	scratch_make(&from);
	scratch_make(&to);
	assert_int_equal(mkdirat(from.fd, "deep", 0755), 0);
	fd = openat(from.fd, "deep/sparse", O_WRONLY | O_CREAT, 0755);
	assert_int_equal(pwrite(fd, "end", 3, 5 << 20), 3);
	fd_close(fd);
	assert_int_equal(symlinkat("/etc/passwd", from.fd, "link"), 0);
	assert_int_equal(mkfifoat(from.fd, "fifo", 0600), 0);
	parcel_init(&parcel, to.fd);
	assert_int_equal(parcel_send(&sink, 7, from.fd, ".", NULL), 0);
	parcel_deinit(&parcel);
	assert_int_equal(fstatat(to.fd, "deep/sparse", &st, 0), 0);
	assert_int_equal(st.st_size, (5 << 20) + 3);
	assert_true(st.st_mode & S_IXUSR);
	assert_true(st.st_blocks * 512 < 1 << 20);
	(void)snprintf(path, sizeof(path), "%s/deep/sparse", to.path);
	assert_int_equal(file_read(path, 8 << 20, &read, &len, NULL), 0);
	assert_memory_equal(read + (5 << 20), "end", 3);
	assert_true(faccessat(to.fd, "link", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	assert_true(faccessat(to.fd, "fifo", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	scratch_remove(&from);
	scratch_remove(&to);
}

static void no_name_leads_out(void **state)
{
	static const char *const bad[] = { "",	   "/",	 "/etc/x", "..",    "../x", "a/../b",
					   "a//b", "a/", "./a",	   "a/./b", "." };
	struct scratch to;
	struct parcel parcel;
	struct err err = { 0 };

	(void)state;
	scratch_make(&to);
	parcel_init(&parcel, to.fd);
	assert_int_equal(symlinkat("/tmp", to.fd, "away"), 0);
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		AUTO(strbuf_deinit) struct strbuf payload = { 0 };

		pack_u64(&payload, 1);
		pack_u64(&payload, 0);
		pack_str(&payload, i < ARRAY_SIZE(bad) ? bad[i] : "away/x");
		assert_int_equal(parcel_put(&parcel, FRAME_ENTRY, payload.data, payload.len, &err),
				 -EBADMSG);
	}
	assert_true(parcel_name_is_safe("a/..b/c."));
	parcel_deinit(&parcel);
	scratch_remove(&to);
}

/* ---- what is told ---- */

static void orders_survive_the_journey(void **state)
{
	char null[] = "/dev/null", trials[] = "/case/trials", crumb[] = "^at ";
	char pattern[] = "ERROR|FATAL", a[] = "A=1", b[] = "B=2";
	struct trial_settings settings = { .stdin_path = null,
					   .trials.path = trials,
					   .keep = KEEP_ALL,
					   .timeout_ns = 5,
					   .breadcrumb.given = true,
					   .breadcrumb.text = crumb,
					   .children = true };
	struct fail_on rule = { .pattern = pattern };
	char *env[] = { a, b, NULL };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct orders orders;

	(void)state;
	VEC_PUSH(&settings.fail_on, rule);
	orders_pack(&settings, "/work", env, &sb);
	assert_true(orders_unpack(sb.data, sb.len, &orders));
	assert_int_equal(orders.settings.keep, KEEP_ALL);
	assert_int_equal(orders.settings.timeout_ns, 5);
	assert_true(orders.settings.children);
	assert_string_equal(orders.cwd, "/work");
	assert_int_equal(orders.env.count, 2);
	assert_int_equal(regexec(&orders.settings.breadcrumb.regex, "at 5", 0, NULL, 0), 0);
	assert_int_equal(
		regexec(&orders.settings.fail_on.items[0].regex, "a FATAL one", 0, NULL, 0), 0);
	orders_deinit(&orders);
	for (size_t len = 0; len < sb.len; len++) {
		assert_false(orders_unpack(sb.data, len, &orders));
		orders_deinit(&orders);
	}
	VEC_DEINIT(&settings.fail_on);
}

static void devices_are_the_nodes_own(void **state)
{
	(void)state;
	assert_true(node_owns_variable("CUDA_VISIBLE_DEVICES=3"));
	assert_true(node_owns_variable("SLURM_JOB_ID=1"));
	assert_false(node_owns_variable("CUDA_VISIBLE_DEVICES_X=3"));
	assert_false(node_owns_variable("PATH=/bin"));
}

static void addresses_are_split(void **state)
{
	AUTO(mem_freep) char *host = NULL;
	AUTO(mem_freep) char *port = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(listener_split("[::1]:80", &host, &port, &err), 0);
	assert_string_equal(host, "::1");
	assert_string_equal(port, "80");
	assert_int_equal(listener_split("nowhere", &host, &port, &err), -EINVAL);
	assert_int_equal(listener_split(":5", &host, &port, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_prove_themselves),
		cmocka_unit_test(another_token_is_a_strangers),
		cmocka_unit_test(frames_arrive_as_they_were_sent),
		cmocka_unit_test(nobody_on_the_wire_can_read_frames),
		cmocka_unit_test(frames_of_others_are_refused),
		cmocka_unit_test(frames_have_their_place),
		cmocka_unit_test(another_version_is_known),
		cmocka_unit_test(a_tree_travels),
		cmocka_unit_test(no_name_leads_out),
		cmocka_unit_test(orders_survive_the_journey),
		cmocka_unit_test(devices_are_the_nodes_own),
		cmocka_unit_test(addresses_are_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
