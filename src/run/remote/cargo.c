#include "run/remote/cargo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pack.h"
#include "run/remote/parcel.h"

/* Which frames of the cargo are being made. */
struct loading {
	struct cargo *cargo;
	bool agent;
};

static int load_frame(void *ctx, enum frame_type type, const struct strbuf *payload)
{
	struct loading *loading = ctx;
	struct cargo_frame frame = { .type = type, .agent = loading->agent };

	strbuf_add(&frame.payload, payload->data, payload->len);
	VEC_PUSH(&loading->cargo->frames, frame);
	return 0;
}

static int load_directory(struct loading *loading, const char *name)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	pack_u64(&payload, 0);
	pack_u64(&payload, 0);
	pack_u64(&payload, 0);
	pack_str(&payload, name);
	return load_frame(loading, FRAME_ENTRY, &payload);
}

/* Where it is to lie below ship/: as seen from here, or its last name when it lies elsewhere. */
static char *shipped_name(const char *path)
{
	const char *slash;

	while (path[0] == '.' && path[1] == '/')
		path += 2 + strspn(path + 2, "/");
	if (parcel_name_is_safe(path))
		return mem_strdup(path);
	slash = strrchr(path, '/');
	return slash && parcel_name_is_safe(slash + 1) ? mem_strdup(slash + 1) : NULL;
}

static int load_one(struct loading *loading, const char *path, struct err *err)
{
	struct parcel_sink sink = { .frame = load_frame, .ctx = loading };
	AUTO(mem_freep) char *trimmed = mem_strdup(path);
	AUTO(mem_freep) char *name = NULL;
	AUTO(mem_freep) char *as = NULL;

	while (strlen(trimmed) > 1 && trimmed[strlen(trimmed) - 1] == '/')
		trimmed[strlen(trimmed) - 1] = '\0';
	name = shipped_name(trimmed);
	if (access(path, R_OK) < 0)
		return err_set_errno(err, -errno, "--ship '%s' cannot be read", path);
	if (!name)
		return err_set(err, -EINVAL, "--ship '%s' has no name", path);
	as = mem_printf("ship/%s", name);
	for (char *at = strchr(as + 5, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)load_directory(loading, as);
		*at = '/';
	}
	return parcel_send(&sink, 0, AT_FDCWD, path, as);
}

int cargo_load(struct cargo *cargo, const struct strv *ship, const char *agent_dir, struct err *err)
{
	static const char *const libraries[] = { "libredhand-agent.so",
						 "libredhand-agent-crash.so" };
	struct loading loading = { .cargo = cargo };
	int r = 0;

	if (ship && ship->count > 0)
		r = load_directory(&loading, "ship");
	for (size_t i = 0; r == 0 && ship && i < ship->count; i++)
		r = load_one(&loading, ship->items[i], err);
	loading.agent = true;
	if (r == 0 && agent_dir)
		r = load_directory(&loading, "agent");
	for (size_t i = 0; r == 0 && agent_dir && i < ARRAY_SIZE(libraries); i++) {
		AUTO(mem_freep) char *path = mem_printf("%s/%s", agent_dir, libraries[i]);
		AUTO(mem_freep) char *as = mem_printf("agent/%s", libraries[i]);
		struct parcel_sink sink = { .frame = load_frame, .ctx = &loading };

		r = parcel_send(&sink, 0, AT_FDCWD, path, as);
	}
	return r;
}

void cargo_deinit(struct cargo *cargo)
{
	VEC_FREE(&cargo->frames, frame, strbuf_deinit(&frame->payload));
}
