#pragma once

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "run/remote/link.h"

/*
 * What every worker gets before it works: the files of --ship, and the agent for those that have
 * another one. Read once, as frames that are sent as they are.
 */
struct cargo_frame {
	enum frame_type type;
	bool agent; /* for those alone that have another one */
	struct strbuf payload;
};

struct cargo {
	VEC(struct cargo_frame) frames;
};

/* `ship`: files and directories, or NULL; `agent_dir`: where the agent's libraries lie, or NULL. */
int cargo_load(struct cargo *cargo, const struct strv *ship, const char *agent_dir,
	       struct err *err);
void cargo_deinit(struct cargo *cargo);
