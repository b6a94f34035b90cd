/* From rows to structs, and back to nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/store/store_inside.h"

int store_copy_text(const struct store_value *v, char *ret, size_t size)
{
	if (v->size >= size)
		return -EOVERFLOW;
	memcpy(ret, v->size ? v->bytes : "", v->size);
	ret[v->size] = '\0';
	return 0;
}

int store_copy_bytes(const struct store_value *v, char **ret, size_t *ret_size)
{
	char *copy = malloc(v->size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, v->size ? v->bytes : "", v->size);
	copy[v->size] = '\0';
	free(*ret);
	*ret = copy;
	if (ret_size)
		*ret_size = v->size;
	return 0;
}

/* A state that a newer bawn wrote is none that can be acted upon. */
static int copy_state(const struct store_value *v, int count, unsigned *ret)
{
	if (v->num < 0 || v->num >= count)
		return -EPROTO;
	*ret = (unsigned)v->num;
	return 0;
}

int store_see_session(void *of, const struct store_value *v)
{
	struct store_session *x = of;
	unsigned state = 0;
	int r = store_copy_text(&v[0], x->id, sizeof(x->id));

	if (!r)
		r = store_copy_text(&v[1], x->name, sizeof(x->name));
	if (!r)
		r = store_copy_text(&v[2], x->place, sizeof(x->place));
	if (!r)
		r = copy_state(&v[4], STORE_SESSION_STATE_COUNT, &state);
	if (!r)
		r = store_copy_text(&v[8], x->worker, sizeof(x->worker));
	if (!r)
		r = store_copy_bytes(&v[15], &x->spec, NULL);
	if (!r)
		r = store_copy_bytes(&v[16], &x->project, NULL);
	x->workspace = (uint64_t)v[3].num;
	x->state = (enum store_session_state)state;
	x->created_ms = v[5].num;
	x->used_ms = v[6].num;
	x->ttl_ms = v[7].num;
	x->token = (uint64_t)v[9].num;
	x->lease_ms = v[10].num;
	x->is_lease_over = v[11].num;
	x->is_expired = v[12].num;
	x->queued = (uint64_t)v[13].num;
	x->running = (uint64_t)v[14].num;
	return r;
}

void store_session_done(struct store_session *x)
{
	free(x->spec);
	free(x->project);
	*x = (struct store_session){ 0 };
}

int store_see_run_short(void *of, const struct store_value *v)
{
	struct store_run *x = of;
	unsigned state = 0;
	int r = store_copy_text(&v[0], x->id, sizeof(x->id));

	if (!r)
		r = store_copy_text(&v[1], x->session, sizeof(x->session));
	if (!r)
		r = store_copy_text(&v[2], x->worker, sizeof(x->worker));
	if (!r)
		r = copy_state(&v[3], STORE_RUN_STATE_COUNT, &state);
	if (!r)
		r = store_copy_bytes(&v[9], &x->request, NULL);
	if (!r)
		r = store_copy_bytes(&v[10], &x->error, NULL);
	if (!r)
		r = store_copy_bytes(&v[11], &x->record, NULL);
	x->state = (enum store_run_state)state;
	x->token = (uint64_t)v[4].num;
	x->queued_ms = v[5].num;
	x->taken_ms = v[6].num;
	x->ended_ms = v[7].num;
	x->status = (int)v[8].num;
	return r;
}

int store_see_run(void *of, const struct store_value *v)
{
	struct store_run *x = of;
	int r = store_see_run_short(x, v);

	if (!r)
		r = store_copy_bytes(&v[13], &x->out, &x->out_size);
	if (!r)
		r = store_copy_bytes(&v[14], &x->err, &x->err_size);
	return r;
}

void store_run_done(struct store_run *x)
{
	free(x->request);
	free(x->error);
	free(x->record);
	free(x->out);
	free(x->err);
	*x = (struct store_run){ 0 };
}

void store_taken_done(struct store_taken *t)
{
	store_run_done(&t->run);
	store_session_done(&t->session);
	*t = (struct store_taken){ 0 };
}
