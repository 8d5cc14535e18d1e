/*
 * Calls that fill a list of buffers: the list is copied, with the writable view's addresses in the
 * places of those in watched pages. A message has besides it what is written back into its head.
 */
#include <sys/socket.h>
#include <sys/uio.h>

#include "agent/calls/call.h"

#define IOVECS_MOST 1024u
#define MESSAGES_MOST 16u

/* Reads the target's list and moves what is in watched pages. False: nothing is, or it cannot be
 * read; then the kernel is to say so. */
static bool iovecs_take(long at, long count, struct iovec *ret)
{
	bool any = false;
	long i;

	if (count < 0 || count > (long)IOVECS_MOST ||
	    !watch_read_sigsafe(ret, (uint64_t)at, (uint32_t)(count * (long)sizeof(*ret))))
		return false;
	for (i = 0; i < count; i++) {
		any |= call_held((long)ret[i].iov_base) && ret[i].iov_len;
		ret[i].iov_base = (void *)call_writable((long)ret[i].iov_base);
	}
	return any;
}

/* `list` is as the kernel saw it. */
static void iovecs_outputs(const struct iovec *list, long count, long result, struct outputs *ret)
{
	uint64_t left = result < 0 ? 0 : (uint64_t)result, bytes;
	long i;

	for (i = 0; i < count && left; i++) {
		bytes = list[i].iov_len < left ? list[i].iov_len : left;
		outputs_add(ret, (long)list[i].iov_base - (long)pages.distance, bytes,
			    result != CALL_NOT_MADE);
		if (result != CALL_NOT_MADE)
			left -= bytes;
	}
}

static void list_outputs(const struct call *call, long result, struct outputs *ret)
{
	iovecs_outputs((const struct iovec *)call->made[call->list_at],
		       call->made[call->list_at + 1], result, ret);
}

__attribute__((noinline)) void call_list(struct call *call, unsigned at)
{
	struct iovec list[IOVECS_MOST];

	if (!iovecs_take(call->given[at], call->given[at + 1], list)) {
		call_pass(call);
		return;
	}
	call->list_at = at;
	call->made[at] = (long)list;
	call_redirect(call, list_outputs);
}

/* A message: its own buffers, and what is written back into it. */
static bool message_take(const struct msghdr *from, struct msghdr *ret, struct iovec *list,
			 uint64_t room)
{
	bool any = call_held((long)from->msg_name) || call_held((long)from->msg_control);

	*ret = *from;
	ret->msg_name = (void *)call_writable((long)from->msg_name);
	ret->msg_control = (void *)call_writable((long)from->msg_control);
	if (from->msg_iovlen > room ||
	    !watch_read_sigsafe(list, (uint64_t)from->msg_iov,
				(uint32_t)(from->msg_iovlen * sizeof(*list))))
		return false;
	any |= iovecs_take((long)from->msg_iov, (long)from->msg_iovlen, list);
	ret->msg_iov = list;
	return any;
}

static void message_outputs(const struct msghdr *message, long result, struct outputs *ret)
{
	iovecs_outputs(message->msg_iov, (long)message->msg_iovlen, result, ret);
	if (result < 0)
		return;
	outputs_add(ret, (long)message->msg_name - (long)pages.distance, message->msg_namelen,
		    false);
	outputs_add(ret, (long)message->msg_control - (long)pages.distance, message->msg_controllen,
		    false);
}

static void message_back(uint64_t to, const struct msghdr *from)
{
	struct msghdr *message = (void *)call_writable((long)to);

	message->msg_namelen = from->msg_namelen;
	message->msg_controllen = from->msg_controllen;
	message->msg_flags = from->msg_flags;
}

static void recvmsg_outputs(const struct call *call, long result, struct outputs *ret)
{
	message_outputs((const struct msghdr *)call->made[1], result, ret);
	outputs_add(ret, call->given[1], sizeof(struct msghdr), false);
	if (result >= 0 && result != CALL_NOT_MADE)
		message_back((uint64_t)call->given[1], (const struct msghdr *)call->made[1]);
}

__attribute__((noinline)) void call_recvmsg(struct call *call)
{
	struct iovec list[IOVECS_MOST];
	struct msghdr given, made;

	if (!watch_read_sigsafe(&given, (uint64_t)call->given[1], sizeof(given)) ||
	    (!message_take(&given, &made, list, IOVECS_MOST) && !call_held(call->given[1]))) {
		call_pass(call);
		return;
	}
	call->made[1] = (long)&made;
	call_redirect(call, recvmsg_outputs);
}

static void recvmmsg_outputs(const struct call *call, long result, struct outputs *ret)
{
	const struct mmsghdr *made = (const void *)call->made[1];
	struct mmsghdr *given = (void *)call_writable(call->given[1]);
	long count = result == CALL_NOT_MADE ? call->made[2] : result, i;

	outputs_add(ret, call->given[1], (uint64_t)call->made[2] * sizeof(*made), false);
	for (i = 0; i < count; i++) {
		message_outputs(&made[i].msg_hdr,
				result == CALL_NOT_MADE ? CALL_NOT_MADE : (long)made[i].msg_len,
				ret);
		if (result == CALL_NOT_MADE)
			continue;
		message_back((uint64_t)(call->given[1] + i * (long)sizeof(*made)),
			     &made[i].msg_hdr);
		given[i].msg_len = made[i].msg_len;
	}
}

__attribute__((noinline)) void call_recvmmsg(struct call *call)
{
	struct mmsghdr given[MESSAGES_MOST], made[MESSAGES_MOST];
	struct iovec list[IOVECS_MOST];
	uint64_t used = 0;
	bool any = call_held(call->given[1]);
	long i, count = call->given[2];

	if (count < 0 || count > (long)MESSAGES_MOST)
		count = MESSAGES_MOST;
	if (!watch_read_sigsafe(given, (uint64_t)call->given[1],
				(uint32_t)(count * (long)sizeof(given[0])))) {
		call_pass(call);
		return;
	}
	for (i = 0; i < count; i++) {
		made[i] = given[i];
		any |= message_take(&given[i].msg_hdr, &made[i].msg_hdr, list + used,
				    IOVECS_MOST - used);
		used += given[i].msg_hdr.msg_iovlen;
		if (used > IOVECS_MOST)
			break;
	}
	if (!any || i < count) {
		call_pass(call);
		return;
	}
	call->made[1] = (long)made;
	call->made[2] = count;
	call->made[4] = call_writable(call->given[4]);
	call_redirect(call, recvmmsg_outputs);
}
