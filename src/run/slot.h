#pragma once

#include "run/job.h"

/*
 * The process behind a slot.
 *
 * It runs trials one after another, each told by a message on its socket, and
 * answers with what it saw. It is the subreaper of all that a trial starts, so
 * nothing outlives its trial. When the socket closes, because redhand is done,
 * was interrupted or was killed, it ends the running trial and itself.
 *
 * Never returns.
 */
void slot_main(int socket, unsigned int slot, const struct trial_settings *settings)
	__attribute__((noreturn));

/* Messages on the socket: a length, then that many bytes. Used by both ends. */
int message_send(int socket, const struct strbuf *message);

/* 1: a message is in `ret`; 0: the other end has closed; negative: -errno. */
int message_receive(int socket, struct strbuf *ret);
