#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/own.h"
#include "worker/worker.h"

int worker_print_request(char *const *arguments, struct buf *out, struct err *e)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_open_list(&j, "arguments");
	for (size_t i = 0; arguments[i]; i++) {
		if (i == WORKER_MAX_ARGUMENTS)
			return err_set(e, ERR_USE, E2BIG,
				"cannot queue the run: it has more than %d arguments",
				WORKER_MAX_ARGUMENTS);
		json_text(&j, NULL, arguments[i]);
	}
	json_close_list(&j);
	json_close_map(&j);
	if (out->failed || out->len > STORE_MAX_REQUEST)
		return err_set(e, ERR_USE, E2BIG,
			"cannot queue the run: its arguments are longer than %zu bytes, as JSON",
			STORE_MAX_REQUEST);
	return 0;
}

/* --- reading --- */

struct request_reader {
	struct json_reader json; /* the first member: see json_field */
};

static bool read_arguments(void *reader, void *into)
{
	struct json_reader *r = &((struct request_reader *)reader)->json;
	struct worker_arguments *a = into;
	const char *text;

	a->words = arena_array(&a->arena, WORKER_MAX_ARGUMENTS + 1, sizeof(*a->words));
	if (!a->words)
		return json_wrong(r, "more memory");
	json_enter_list(r);
	while (json_next_item(r)) {
		if (!json_read_text(r, &text))
			return false;
		if (a->count == WORKER_MAX_ARGUMENTS)
			return json_wrong(r, "fewer arguments");
		a->words[a->count] = arena_copy(&a->arena, text, strlen(text));
		if (!a->words[a->count++])
			return json_wrong(r, "more memory");
	}
	return !r->wrong;
}

static const struct json_field fields[] = {
	{ "arguments", read_arguments, 0, true },
};

int worker_read_request(const char *text, struct worker_arguments *ret, struct err *e)
{
	struct request_reader r = { 0 };
	struct worker_arguments a = { 0 };
	const char *wrong;

	arena_init(&a.arena, 4 * STORE_MAX_REQUEST);
	json_read_init(&r.json, text, strlen(text), STORE_MAX_REQUEST);
	r.json.takes_bytes = true;
	JSON_READ_FIELDS(&r, fields, &a);
	json_read_end(&r.json);
	wrong = r.json.wrong;
	json_reader_done(&r.json);
	if (!wrong) {
		*ret = a;
		return 0;
	}
	worker_arguments_done(&a);
	return err_set(e, ERR_USE, EBADMSG, "cannot read the run's arguments: expected %s", wrong);
}

void worker_arguments_done(struct worker_arguments *a)
{
	arena_done(&a->arena);
	*a = (struct worker_arguments){ 0 };
}
