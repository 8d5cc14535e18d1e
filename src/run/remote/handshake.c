#include "run/remote/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_MUNGE
#include <munge.h>
#endif

#include "base/mem.h"

/* A worker's word: what it is about, its number, its proof, a credential with its length before. */
static const char magic[8] = { 'r', 'e', 'd', 'h', 'a', 'n', 'd', '3' };
#define PROOF_BYTES LINK_KEY
#define CREDENTIAL_MAX 4096u

struct introduction {
	char magic[8];
	uint8_t nonce[TRUST_NONCE], proof[PROOF_BYTES];
	uint32_t credential; /* bytes that follow; 0: it has a token */
};

void trust_deinit(struct trust *trust)
{
	mem_free(trust->munge_socket);
	sodium_memzero(trust->token, sizeof(trust->token));
}

/* Before anything else of it is called. */
static int sodium_ready(struct err *err)
{
	return sodium_init() >= 0 ? 0 : err_set(err, -ENOTSUP, "libsodium does not start");
}

#ifdef HAVE_MUNGE
static munge_ctx_t context(const struct trust *trust)
{
	munge_ctx_t ctx = munge_ctx_create();

	if (ctx && trust->munge_socket[0] != '\0' &&
	    munge_ctx_set(ctx, MUNGE_OPT_SOCKET, trust->munge_socket) != EMUNGE_SUCCESS) {
		munge_ctx_destroy(ctx);
		return NULL;
	}
	return ctx;
}

/* A credential that holds the key, for this user alone. The caller's to free. */
static char *credential_make(const struct trust *trust, const uint8_t key[LINK_KEY])
{
	munge_ctx_t ctx = context(trust);
	char *credential = NULL, *copy;

	if (!ctx)
		return NULL;
	if (munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, geteuid()) != EMUNGE_SUCCESS ||
	    munge_encode(&credential, ctx, key, LINK_KEY) != EMUNGE_SUCCESS) {
		munge_ctx_destroy(ctx);
		return NULL;
	}
	munge_ctx_destroy(ctx);
	copy = mem_strdup(credential);
	free(credential);
	return copy;
}

static bool credential_open(const struct trust *trust, const char *credential,
			    uint8_t ret[LINK_KEY])
{
	munge_ctx_t ctx = context(trust);
	void *payload = NULL;
	uid_t uid = (uid_t)-1;
	gid_t gid;
	int len = 0;
	bool good;

	if (!ctx)
		return false;
	good = munge_decode(credential, ctx, &payload, &len, &uid, &gid) == EMUNGE_SUCCESS &&
	       uid == geteuid() && len == LINK_KEY;
	if (good)
		memcpy(ret, payload, LINK_KEY);
	free(payload);
	munge_ctx_destroy(ctx);
	return good;
}
#else
static char *credential_make(const struct trust *trust, const uint8_t key[LINK_KEY])
{
	(void)trust;
	(void)key;
	return NULL;
}

static bool credential_open(const struct trust *trust, const char *credential,
			    uint8_t ret[LINK_KEY])
{
	(void)trust;
	(void)credential;
	(void)ret;
	return false;
}
#endif

int trust_make(struct trust *trust, const char *munge_socket, struct err *err)
{
	struct trust t = { 0 };
	int r = sodium_ready(err);

	if (r < 0)
		return r;
	randombytes_buf(t.token, sizeof(t.token));
	if (munge_socket) {
		AUTO(mem_freep) char *tried = NULL;

		t.munge_socket = mem_strdup(munge_socket);
		tried = credential_make(&t, t.token);
		if (!tried) {
			mem_free(t.munge_socket);
			t.munge_socket = NULL;
		}
	}
	t.token_known = !t.munge_socket;
	*trust = t;
	return 0;
}

static bool parse_token(const char *text, uint8_t ret[LINK_KEY])
{
	size_t len = 0;

	return sodium_hex2bin(ret, LINK_KEY, text, strlen(text), NULL, &len, NULL) == 0 &&
	       len == LINK_KEY;
}

int trust_find(struct trust *trust, const char *text, struct err *err)
{
	char *given = getenv(TRUST_TOKEN_VARIABLE);
	const char *token = text ? text : given;
	const char *munge = getenv(TRUST_MUNGE_VARIABLE);
	int r = sodium_ready(err);

	*trust = (struct trust){ 0 };
	if (r < 0)
		return r;
	if (token) {
		trust->token_known = parse_token(token, trust->token);
		if (!trust->token_known)
			r = err_set(err, -EINVAL, "the worker's token is not what redhand gave it");
	} else if (munge) {
		trust->munge_socket = mem_strdup(munge);
	} else {
		(void)err_set(err, -EACCES, "the worker has no token");
		r = err_set_remedy(
			err,
			"redhand --runner starts workers and gives them one in " TRUST_TOKEN_VARIABLE);
	}
	/* Trials are not to know it: not from their parent's first environment either. */
	if (given)
		sodium_memzero(given, strlen(given));
	(void)unsetenv(TRUST_TOKEN_VARIABLE);
	(void)unsetenv(TRUST_MUNGE_VARIABLE);
	return r;
}

char *trust_variable(const struct trust *trust)
{
	char hex[2 * LINK_KEY + 1];

	if (trust->munge_socket)
		return mem_printf(TRUST_MUNGE_VARIABLE "=%s", trust->munge_socket);
	(void)sodium_bin2hex(hex, sizeof(hex), trust->token, LINK_KEY);
	return mem_printf(TRUST_TOKEN_VARIABLE "=%s", hex);
}

static void prove(const struct greeting *g, const char *who, uint8_t ret[PROOF_BYTES])
{
	link_derive(g->key, who, g->nonces, sizeof(g->nonces), ret);
}

void greeting_begin(struct greeting *greeting, struct link *link)
{
	randombytes_buf(greeting->nonces, TRUST_NONCE);
	link_put(link, greeting->nonces, TRUST_NONCE);
}

static int worker_introduces(struct greeting *g, const struct trust *trust, struct link *link)
{
	struct introduction intro = { 0 };
	AUTO(mem_freep) char *credential = NULL;
	const char *bytes;

	if (link_received(link, &bytes) < TRUST_NONCE)
		return 0;
	memcpy(g->nonces, bytes, TRUST_NONCE);
	link_skip(link, TRUST_NONCE);
	randombytes_buf(g->nonces + TRUST_NONCE, TRUST_NONCE);
	memcpy(g->key, trust->token, sizeof(g->key));
	if (!trust->token_known) {
		randombytes_buf(g->key, sizeof(g->key));
		credential = credential_make(trust, g->key);
		if (!credential)
			return -EACCES;
	}
	memcpy(intro.magic, magic, sizeof(magic));
	memcpy(intro.nonce, g->nonces + TRUST_NONCE, TRUST_NONCE);
	prove(g, "worker", intro.proof);
	intro.credential = credential ? (uint32_t)strlen(credential) : 0;
	link_put(link, &intro, sizeof(intro));
	if (credential)
		link_put(link, credential, intro.credential);
	g->step = 1;
	return 0;
}

static int worker_believes(struct greeting *g, struct link *link)
{
	uint8_t proof[PROOF_BYTES];
	const char *bytes;

	if (link_received(link, &bytes) < PROOF_BYTES)
		return 0;
	prove(g, "redhand", proof);
	if (sodium_memcmp(proof, bytes, PROOF_BYTES) != 0)
		return -EACCES;
	link_skip(link, PROOF_BYTES);
	link_key(link, true, g->key, g->nonces, sizeof(g->nonces));
	return 1;
}

static bool learn_key(struct greeting *g, const struct trust *trust, const char *credential,
		      size_t len)
{
	AUTO(mem_freep) char *text = NULL;

	if (len == 0 && trust->token_known) {
		memcpy(g->key, trust->token, sizeof(g->key));
		return true;
	}
	if (len == 0 || !trust->munge_socket)
		return false;
	text = mem_strndup(credential, len);
	return credential_open(trust, text, g->key);
}

static int redhand_believes(struct greeting *g, const struct trust *trust, struct link *link)
{
	struct introduction intro;
	uint8_t proof[PROOF_BYTES];
	const char *bytes;
	size_t len = link_received(link, &bytes);

	/* The last character is the version of all that follows. */
	if (len >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) != 0)
		return memcmp(bytes, magic, sizeof(magic) - 1) == 0 ? -EPROTO : -EACCES;
	if (len < sizeof(intro))
		return 0;
	memcpy(&intro, bytes, sizeof(intro));
	if (intro.credential > CREDENTIAL_MAX)
		return -EACCES;
	if (len < sizeof(intro) + intro.credential)
		return 0;
	memcpy(g->nonces + TRUST_NONCE, intro.nonce, TRUST_NONCE);
	if (!learn_key(g, trust, bytes + sizeof(intro), intro.credential))
		return -EACCES;
	prove(g, "worker", proof);
	if (sodium_memcmp(proof, intro.proof, PROOF_BYTES) != 0)
		return -EACCES;
	link_skip(link, sizeof(intro) + intro.credential);
	prove(g, "redhand", proof);
	link_put(link, proof, sizeof(proof));
	link_key(link, false, g->key, g->nonces, sizeof(g->nonces));
	return 1;
}

int greeting_go_on(struct greeting *greeting, const struct trust *trust, bool worker,
		   struct link *link)
{
	int r = 0;

	if (!worker)
		return redhand_believes(greeting, trust, link);
	if (greeting->step == 0)
		r = worker_introduces(greeting, trust, link);
	return r == 0 && greeting->step == 1 ? worker_believes(greeting, link) : r;
}
