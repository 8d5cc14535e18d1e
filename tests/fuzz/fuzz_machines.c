/*
 * Fuzzer of what comes over the network: greetings, frames, what is in them, files. The first byte
 * says which. Frames have their proofs taken off before: what is tried is what a worker with a key
 * could send.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/tree.h"
#include "run/remote/handshake.h"
#include "run/remote/node.h"
#include "run/remote/orders.h"
#include "run/remote/parcel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void greetings(const uint8_t *data, size_t size, bool worker)
{
	struct trust trust = { .token_known = true };
	struct greeting greeting = { 0 };
	struct link_frame frame;
	struct link link;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		abort();
	link_init(&link, pair[0]);
	(void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
	(void)!write(pair[1], data, size);
	(void)close(pair[1]);
	(void)link_receive(&link);
	if (greeting_go_on(&greeting, &trust, worker, &link) > 0)
		abort(); /* nobody guesses a key */
	while (link_take(&link, &frame) > 0)
		abort();
	link_close(&link);
}

/* Cuts the input into frames: type, length, bytes. Whatever they are, nothing is written outside.
 */
static void files(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/redhand-fuzz.XXXXXX";
	struct err err = { 0 };
	struct parcel parcel;
	int dir;

	if (!mkdtemp(path))
		abort();
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	parcel_init(&parcel, dir);
	while (size >= 2 && (size_t)data[1] + 2 <= size) {
		size_t len = data[1];

		(void)parcel_put(&parcel, data[0] & 1 ? FRAME_ENTRY : FRAME_DATA,
				 (const char *)data + 2, len, &err);
		data += len + 2;
		size -= len + 2;
	}
	parcel_deinit(&parcel);
	(void)close(dir);
	(void)tree_remove_at(AT_FDCWD, path, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trial_result result = { 0 };
	struct trial_job job = { 0 };
	struct orders orders = { 0 };
	struct hello hello = { 0 };
	const char *bytes = (const char *)data + 1;

	if (size == 0)
		return 0;
	switch (data[0] % 7) {
	case 0:
		greetings(data + 1, size - 1, true);
		break;
	case 1:
		greetings(data + 1, size - 1, false);
		break;
	case 2:
		files(data + 1, size - 1);
		break;
	case 3:
		(void)trial_result_unpack(bytes, size - 1, &result);
		trial_result_deinit(&result);
		break;
	case 4:
		(void)trial_job_unpack(bytes, size - 1, &job);
		trial_job_deinit(&job);
		break;
	case 5:
		(void)orders_unpack(bytes, size - 1, &orders);
		orders_deinit(&orders);
		break;
	default:
		(void)hello_unpack(bytes, size - 1, &hello);
		hello_deinit(&hello);
	}
	return 0;
}
