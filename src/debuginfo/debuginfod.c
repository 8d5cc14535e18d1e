#include "debuginfo/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/tmpdir.h"

/* The library is loaded, not linked, as libdw does it too: without servers nobody needs it, and it
 * brings an HTTP client along. */
struct debuginfod_api {
	void *(*begin)(void);
	int (*find_debuginfo)(void *client, const unsigned char *build_id, int len, char **path);
	void (*end)(void *client);
};

static int api_load(struct debuginfod_api *ret, struct err *err)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library) {
		*(void **)&ret->begin = dlsym(library, "debuginfod_begin");
		*(void **)&ret->find_debuginfo = dlsym(library, "debuginfod_find_debuginfo");
		*(void **)&ret->end = dlsym(library, "debuginfod_end");
	}
	if (library && ret->begin && ret->find_debuginfo && ret->end)
		return 0;
	(void)err_set(err, -ENOENT, "the library libdebuginfod.so.1 is not installed");
	return err_set_remedy(err, "install it (Debian: libdebuginfod1)");
}

int debuginfod_ask(unsigned int timeout_s, struct err *err)
{
	static const unsigned char nobody[20] = { 0 };
	AUTO(mem_freep) char *cache = NULL;
	struct debuginfod_api api = { 0 };
	char seconds[16];
	void *client;
	int r = api_load(&api, err);

	if (r < 0)
		return r;
	r = tmpdir_make(NULL, "doctor-", &cache, err);
	if (r < 0)
		return r;
	(void)snprintf(seconds, sizeof(seconds), "%u", timeout_s);
	(void)setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	(void)setenv("DEBUGINFOD_TIMEOUT", seconds, 1);
	(void)setenv("DEBUGINFOD_MAXTIME", seconds, 1);
	(void)setenv("DEBUGINFOD_RETRY_LIMIT", "1", 1);
	(void)unsetenv("DEBUGINFOD_PROGRESS");
	client = api.begin();
	r = client ? api.find_debuginfo(client, nobody, (int)sizeof(nobody), NULL) : -ENOMEM;
	if (client)
		api.end(client);
	tmpdir_remove(cache);
	/* "No such file" is an answer. */
	if (r >= 0 || r == -ENOENT)
		return 0;
	(void)err_set_errno(err, r, "no server answers");
	return err_set_remedy(err, "check DEBUGINFOD_URLS, the network and the proxy settings");
}
