#include "model/signature.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cstr.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "model/test_name.h"

static const char *const kind_names[FAILURE_KINDS] = {
	[FAILURE_SIGNAL] = "signal", [FAILURE_TIMEOUT] = "timeout", [FAILURE_OUTPUT] = "output",
	[FAILURE_TEST] = "test",     [FAILURE_EXIT] = "exit",
};

const char *failure_kind_name(enum failure_kind kind)
{
	return kind < FAILURE_KINDS ? kind_names[kind] : "unknown";
}

const char *signal_name(int signal)
{
	static char text[32];
	const char *abbreviation = sigabbrev_np(signal);

	if (abbreviation)
		(void)snprintf(text, sizeof(text), "SIG%s", abbreviation);
	else
		(void)snprintf(text, sizeof(text), "signal %d", signal);
	return text;
}

static bool crash_signal(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL ||
	       signal == SIGFPE || signal == SIGTRAP;
}

/* "(null)" is what printf() makes of a string that is not there. */
const char *fault_told(const char *fault)
{
	return strcmp(fault, "null") == 0 ? "NULL pointer" : fault;
}

static void summarise(const struct signature *s, struct strbuf *sb)
{
	switch (s->kind) {
	case FAILURE_SIGNAL:
		strbuf_addf(sb, "%s%s", signal_name(s->signal),
			    s->stray ? " in a child process" : "");
		break;
	case FAILURE_TIMEOUT:
		strbuf_adds(sb, "timeout");
		break;
	case FAILURE_OUTPUT:
		strbuf_adds(sb, "output matches --fail-on");
		break;
	case FAILURE_TEST:
		strbuf_adds(sb, "test fails:");
		break;
	case FAILURE_EXIT:
	case FAILURE_KINDS:
		strbuf_addf(sb, "exit %d", s->exit_status);
		/* What a shell makes of a crash in the command it ran. */
		if (s->exit_status > 128 && crash_signal(s->exit_status - 128))
			strbuf_addf(sb, " (a shell's word for %s)",
				    signal_name(s->exit_status - 128));
		break;
	}
	if (s->test)
		strbuf_addf(sb, "%s%s", s->kind == FAILURE_TEST ? " " : " in ", s->test);
	if (s->site)
		strbuf_addf(sb, " at %s", s->site);
	if (s->fault)
		strbuf_addf(sb, " (%s)", fault_told(s->fault));
	if (s->crumb)
		strbuf_addf(sb, " after \"%s\"", s->crumb);
}

/* FNV-1a with a final mix: the bits we keep must depend on every byte. */
static uint64_t hash_text(const char *text)
{
	uint64_t h = hash_bytes(HASH_START, text, strlen(text));

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	h ^= h >> 32;
	return h;
}

void signature_seal(struct signature *s)
{
	AUTO(strbuf_deinit) struct strbuf identity = { 0 };
	AUTO(strbuf_deinit) struct strbuf summary = { 0 };
	AUTO(strbuf_deinit) struct strbuf test = { 0 };

	if (s->test) {
		char *dotted = test_name_dotted(s->test);

		test_name_spell(s->test, &test);
		if (dotted) {
			mem_free(s->test);
			s->test = dotted;
		}
	}
	strbuf_addf(&identity, "%s\n%d\n%d\n%d\n%s\n%s\n", failure_kind_name(s->kind), s->signal,
		    s->kind == FAILURE_EXIT ? s->exit_status : 0, s->stray, strbuf_str(&test),
		    s->crumb ? s->crumb : "");
	/* Not part of the identity where nobody looked, so that ids stay what they were. */
	if (s->fault || s->site)
		strbuf_addf(&identity, "%s\n%s\n", s->fault ? s->fault : "",
			    s->site ? s->site : "");
	(void)snprintf(s->id, sizeof(s->id), "%010llx",
		       (unsigned long long)(hash_text(strbuf_str(&identity)) & 0xffffffffffu));
	summarise(s, &summary);
	mem_free(s->summary);
	s->summary = strbuf_take(&summary);
}

static char *copy_text(const char *text)
{
	return cstr_dup(text);
}

void signature_copy(struct signature *to, const struct signature *from)
{
	*to = *from;
	to->test = copy_text(from->test);
	to->crumb = copy_text(from->crumb);
	to->fault = copy_text(from->fault);
	to->site = copy_text(from->site);
	to->summary = copy_text(from->summary);
}

void signature_deinit(struct signature *s)
{
	MEM_FREE(s->test, s->crumb, s->fault, s->site, s->summary);
	*s = (struct signature){ 0 };
}

void signatures_deinit(struct signatures *signatures)
{
	VEC_FREE(&signatures->list, s, signature_deinit(s));
}

const char *signature_next_id(const char *at, char id[SIGNATURE_ID_LEN + 1])
{
	size_t len = strcspn(at, " ");

	if (len == 0 || len > SIGNATURE_ID_LEN)
		return NULL;
	memcpy(id, at, len);
	id[len] = '\0';
	at += len;
	return at + (*at == ' ');
}
