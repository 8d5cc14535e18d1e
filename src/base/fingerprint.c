#include "base/fingerprint.h"

#include <stdint.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/mem.h"

/* Larger files are told apart by size and time: reading them would take noticeably long. */
#define FINGERPRINT_MAX (32 << 20)

void file_fingerprint(const char *path, struct strbuf *ret)
{
	AUTO(mem_freep) char *content = NULL;
	struct stat st = { 0 };
	size_t len = 0;
	uint64_t hash;

	(void)stat(path, &st);
	strbuf_addf(ret, "%lld:", (long long)st.st_size);
	if (st.st_size > FINGERPRINT_MAX ||
	    file_read(path, FINGERPRINT_MAX, &content, &len, NULL) < 0) {
		strbuf_addf(ret, "%lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		return;
	}
	hash = hash_bytes(HASH_START, content, len);
	strbuf_addf(ret, "%016llx", (unsigned long long)hash);
}
