/* Workspaces that were saved, as one piece of bytes each. */
#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "session/store/store_inside.h"

struct saving {
	const char *session;
	uint64_t token;
	const void *bytes;
	size_t n;
};

static int saved_save(struct store *s, void *of, struct err *e)
{
	const struct saving *x = of;
	int r = store_hold_lease(s, x->session, x->token, e);

	if (r < 0)
		return r;
	return store_tell(s, e,
		"INSERT INTO bawn_saved (session, token, saved_ms, bytes) "
		"VALUES ($1, $2, {now}, $3) ON CONFLICT (session) DO UPDATE SET "
		"token = excluded.token, saved_ms = excluded.saved_ms, bytes = excluded.bytes",
		VALUE_TEXT(x->session), VALUE_NUM(x->token), VALUE_BYTES(x->bytes, x->n));
}

int store_save(struct store *s, const char *session, uint64_t token, const void *bytes, size_t n,
	struct err *e)
{
	struct saving x = { session, token, bytes, n };
	int r;

	s->doing = "save a workspace";
	if (n > STORE_MAX_SAVED)
		return err_set(e, ERR_REFUSED, EFBIG,
			"cannot save a workspace: it is larger than %zu MB", STORE_MAX_SAVED >> 20);
	r = store_within(s, true, saved_save, &x, e);
	return r < 0 ? r : 0;
}

struct loading {
	char *bytes;
	size_t n;
};

static int see_bytes(void *of, const struct store_value *v)
{
	struct loading *l = of;

	return store_copy_bytes(&v[0], &l->bytes, &l->n);
}

int store_load(struct store *s, const char *session, char **ret, size_t *ret_size, struct err *e)
{
	struct loading l = { 0 };
	int r;

	s->doing = "load a saved workspace";
	r = store_ask(s, see_bytes, &l, e, "SELECT bytes FROM bawn_saved WHERE session = $1",
		VALUE_TEXT(session));
	if (r > 0) {
		*ret = l.bytes;
		*ret_size = l.n;
		return 0;
	}
	free(l.bytes);
	if (r == 0)
		return err_set(e, ERR_USE, ENOENT,
			"cannot load a saved workspace: none was saved of session %s", session);
	return r;
}
