#include "run/remote/node.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/fingerprint.h"

#define TEXT_MOST 256u

static char *cpuinfo(const char *name)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	char line[512];
	char *found = NULL;

	while (in && !found && fgets(line, sizeof(line), in)) {
		char *colon = strchr(line, ':');

		if (colon && strncmp(line, name, strlen(name)) == 0) {
			colon++;
			colon += strspn(colon, " \t");
			colon[strcspn(colon, "\n")] = '\0';
			found = mem_strdup(colon);
		}
	}
	if (in)
		(void)fclose(in);
	return found ? found : mem_strdup("");
}

static char *cores(void)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return mem_strdup("");
	for (int i = 0; i < CPU_SETSIZE; i++) {
		int first = i;

		if (!CPU_ISSET(i, &set))
			continue;
		while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, &set))
			i++;
		strbuf_addf(&sb, "%s%d", sb.len > 0 ? "," : "", first);
		if (i > first)
			strbuf_addf(&sb, "-%d", i);
	}
	return mem_strdup(strbuf_str(&sb));
}

/* Ends in '*': all that begin so. */
static const char *const node_variables[] = {
	"CUDA_VISIBLE_DEVICES",
	"ROCR_VISIBLE_DEVICES",
	"HIP_VISIBLE_DEVICES",
	"ZE_AFFINITY_MASK",
	"GPU_DEVICE_ORDINAL",
	"NVIDIA_*",
	"SLURM_*",
	"SLURMD_*",
	"KUBERNETES_*",
	"_CONDOR_*",
	"HOSTNAME",
	"XDG_RUNTIME_DIR",
	"TMPDIR",
};

bool node_owns_variable(const char *assignment)
{
	size_t len = strcspn(assignment, "=");

	for (size_t i = 0; i < ARRAY_SIZE(node_variables); i++) {
		size_t n = strlen(node_variables[i]);
		bool begins = node_variables[i][n - 1] == '*';

		if (begins ? strncmp(assignment, node_variables[i], n - 1) == 0
			   : len == n && strncmp(assignment, node_variables[i], n) == 0)
			return true;
	}
	return false;
}

/* The scheduler's name of the node where there is one: several may share a host name. */
static char *node_name(void)
{
	const char *slurm = getenv("SLURMD_NODENAME");
	const char *kubernetes = getenv("REDHAND_NODE");
	struct utsname name;

	if (kubernetes && kubernetes[0] != '\0')
		return mem_strdup(kubernetes);
	if (slurm && slurm[0] != '\0')
		return mem_strdup(slurm);
	return mem_strdup(uname(&name) == 0 ? name.nodename : "");
}

char *agent_fingerprint(const char *dir)
{
	static const char *const libraries[] = { "libredhand-agent.so",
						 "libredhand-agent-crash.so" };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	for (size_t i = 0; dir && i < ARRAY_SIZE(libraries); i++) {
		AUTO(mem_freep) char *path = mem_printf("%s/%s", dir, libraries[i]);

		file_fingerprint(path, &sb);
		strbuf_addc(&sb, ' ');
	}
	return mem_strdup(strbuf_str(&sb));
}

void hello_make(struct hello *hello, const char *agent_dir)
{
	const char *gpu = getenv("CUDA_VISIBLE_DEVICES");
	struct utsname name;

	if (!gpu)
		gpu = getenv("ROCR_VISIBLE_DEVICES");
	*hello = (struct hello){ .version = mem_strdup(REDHAND_WIRE_VERSION),
				 .agent = agent_fingerprint(agent_dir),
				 .machine = { .node = node_name(),
					      .cores = cores(),
					      .cpu = cpuinfo("model name"),
					      .microcode = cpuinfo("microcode"),
					      .kernel = mem_strdup(uname(&name) == 0 ? name.release
										     : ""),
					      .gpu = mem_strdup(gpu ? gpu : "") } };
}

void hello_deinit(struct hello *hello)
{
	mem_free(hello->version);
	mem_free(hello->agent);
	machine_deinit(&hello->machine);
}

void hello_pack(const struct hello *hello, struct strbuf *sb)
{
	pack_str(sb, hello->version);
	pack_str(sb, hello->agent);
	pack_str(sb, hello->machine.node);
	pack_str(sb, hello->machine.cores);
	pack_str(sb, hello->machine.cpu);
	pack_str(sb, hello->machine.microcode);
	pack_str(sb, hello->machine.kernel);
	pack_str(sb, hello->machine.gpu);
}

static char *take_text(struct unpacker *u)
{
	AUTO(mem_freep) char *text = unpack_str(u);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (!text) {
		u->broken = true;
		return NULL;
	}
	strbuf_add_printable(&sb, text, strnlen(text, TEXT_MOST));
	return mem_strdup(strbuf_str(&sb));
}

bool hello_unpack(const char *bytes, size_t len, struct hello *ret)
{
	struct unpacker u = { .at = bytes, .left = len };

	ret->version = take_text(&u);
	ret->agent = take_text(&u);
	ret->machine.node = take_text(&u);
	ret->machine.cores = take_text(&u);
	ret->machine.cpu = take_text(&u);
	ret->machine.microcode = take_text(&u);
	ret->machine.kernel = take_text(&u);
	ret->machine.gpu = take_text(&u);
	return !u.broken && u.left == 0;
}
