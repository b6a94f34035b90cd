/*
 * run_create - makes a session.
 *
 * Runs as:  the operator.
 * Leaves:   the session's folder, and then its row in the store: whoever finds the row finds the
 *           folder, and a folder that never got a row is removed by a sweep.
 * Must not: make a session whose commands could not be caged as its spec says.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "keeper/keeper.h"
#include "run/run_sessions.h"

#define MOST_SPEC ((size_t)4 << 20)

/* --- can it be done? --- */

static int create_build(struct run_creation *c, struct err *e)
{
	own_free struct plan *plan = NULL;
	struct record notes = { 0 };
	int r;

	run_tell_host(&c->place, &c->host);
	run_look_at_project(&c->host, &c->place);
	r = plan_build(&c->spec, &c->host, &plan, &c->choice, e);
	/* Each run has a command of its own. */
	return r == 0 ? keeper_check_plan(plan, false, &notes, e) : r;
}

/* For a host that can do everything, as `bawn run` does; why not is for the real one to say. */
static int check_plan(struct run_creation *c, struct err *e)
{
	struct err probing = { 0 };
	int r;

	/* In a cage there is no need to try. */
	host_assume(&c->host, NULL);
	r = run_is_in_cage() ? err_set(e, ERR_REFUSED, EOPNOTSUPP, "cannot make a cage in a cage")
			     : create_build(c, e);
	if (r < 0 && e->kind == ERR_REFUSED && host_probe(&c->host, &probing) == 0) {
		*e = (struct err){ 0 };
		r = create_build(c, e);
	}
	return r;
}

int run_prepare_session(struct run_creation *c, struct err *e)
{
	int r = run_load_spec(c->request, &c->spec, &c->place, e);

	c->is_loaded = r == 0;
	return r == 0 ? check_plan(c, e) : r;
}

void run_creation_done(struct run_creation *c)
{
	spec_done(&c->spec);
}

/* --- making it --- */

/* How long it is kept: what somebody said, or what is usual for who makes it. */
static int64_t choose_ttl(const struct run_creation *c)
{
	for (enum spec_layer i = SPEC_LAYER_SYSTEM; i <= SPEC_LAYER_OPTIONS; i++)
		if (c->spec.layers[i].v[SPEC_SESSION_TTL].is_set)
			return (int64_t)spec_number(&c->spec, SPEC_SESSION_TTL);
	return c->usual_ttl_ms ? c->usual_ttl_ms : (int64_t)spec_number(&c->spec, SPEC_SESSION_TTL);
}

static int create_describe(const struct run_creation *c, const struct run_sessions *at,
	struct store_session *x, struct err *e)
{
	const char *name = c->name;
	own(buf) struct buf spec = { .max = MOST_SPEC }, project = { .max = PATH_MAX };

	snprintf(x->name, sizeof(x->name), "%s", name ? name : "");
	memcpy(x->place, at->place, sizeof(x->place));
	x->workspace = 1;
	x->state = STORE_OPEN;
	x->ttl_ms = choose_ttl(c);
	spec_print_canonical(&c->spec, &spec);
	buf_puts(&project, c->place.project);
	if (spec.failed || project.failed)
		return err_set(e, ERR_SYS, ENOMEM, "cannot keep the spec: it is too large");
	x->spec = take_ptr(spec.data);
	x->project = take_ptr(project.data);
	return session_make_id(x->id, e);
}

static int create_make(const struct run_sessions *at, struct store_session *x, struct err *e)
{
	struct err undoing = { 0 };
	int r = session_make_folder(at->root, x->id, x->spec, e);

	if (r < 0)
		return r;
	r = store_add_session(at->store, x, e);
	if (r == 0)
		return session_confirm_folder(at->root, x->id, e);
	if (r == -EEXIST)
		err_set(e, ERR_REFUSED, EEXIST,
			"cannot create session '%s': there is one of that name", x->name);
	session_remove_folder(at->root, x->id, &undoing);
	return r;
}

int run_create_session(
	struct run_creation *c, struct run_sessions *at, struct store_session *ret, struct err *e)
{
	int r = run_sessions_open(at, true, e);

	if (r == 0)
		r = create_describe(c, at, ret, e);
	return r == 0 ? create_make(at, ret, e) : r;
}
