#pragma once

#include "run/job.h"

/*
 * What a worker must know to run trials as they would be run here: the settings that slots get by
 * being forked, where, and with which environment.
 */
struct orders {
	struct trial_settings settings; /* but for what is a matter of the machine: paths */
	struct test_names names;	/* that the settings point to, if `tests` */
	bool tests;
	struct strv env; /* redhand's own */
	char *cwd;	 /* redhand's own, absolute */
	char *trials;	 /* where redhand has its trials; words of jobs may name it */
};

void orders_pack(const struct trial_settings *settings, const char *cwd, char *const *env,
		 struct strbuf *sb);
bool orders_unpack(const char *bytes, size_t len, struct orders *ret);
void orders_deinit(struct orders *orders);
