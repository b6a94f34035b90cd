/* run_request - what a run is asked with, in memory and as JSON; pure. */
#include "run/run_request.h"

#include <errno.h>
#include <string.h>

#include "base/count.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/str.h"

#define ENV_FILE "env.file" /* what JSON calls the key of a file of variables */

void run_request_init(struct run_request *q)
{
	*q = (struct run_request){ 0 };
	arena_init(&q->arena, 8 * RUN_REQUEST_SIZE);
}

void run_request_done(struct run_request *q)
{
	arena_done(&q->arena);
	*q = (struct run_request){ 0 };
}

/* --- filling it in --- */

/* Room for one more of `size` bytes; the array is the arena's, as are those before it. */
static void *request_grow(struct arena *a, void *items, size_t count, size_t *room, size_t size)
{
	size_t wanted = count ? 2 * count : 8;
	void *more;

	if (count < *room)
		return items;
	more = arena_array(a, wanted, size);
	if (!more)
		return NULL;
	if (count)
		memcpy(more, items, count * size);
	*room = wanted;
	return more;
}

static int fail_memory(struct err *e)
{
	return err_set(e, ERR_SYS, ENOMEM, "cannot read the request: out of memory");
}

int run_request_set(struct run_request *q, enum spec_key key, const char *from, const char *value,
	struct err *e)
{
	struct run_setting *more;

	if (q->setting_count == RUN_REQUEST_SETTINGS)
		return err_set(e, ERR_USE, E2BIG, "cannot read the request: more than %d settings",
			RUN_REQUEST_SETTINGS);
	more = request_grow(
		&q->arena, q->settings, q->setting_count, &q->setting_room, sizeof(*more));
	if (!more)
		return fail_memory(e);
	q->settings = more;
	q->settings[q->setting_count++] = (struct run_setting){ key, from, value };
	return 0;
}

int run_request_add(struct run_request *q, struct run_texts *list, const char *text, struct err *e)
{
	const char **more;

	if (list->count == RUN_REQUEST_WORDS)
		return err_set(e, ERR_USE, E2BIG, "cannot read the request: more than %d words",
			RUN_REQUEST_WORDS);
	more = request_grow(&q->arena, list->items, list->count, &list->room, sizeof(*more));
	if (!more)
		return fail_memory(e);
	list->items = more;
	list->items[list->count++] = text;
	return 0;
}

const struct run_setting *run_request_find(const struct run_request *q, enum spec_key key)
{
	for (size_t i = q->setting_count; i-- > 0;)
		if (q->settings[i].key == key)
			return &q->settings[i];
	return NULL;
}

const char *run_request_find_local(const struct run_request *q)
{
	const struct run_request_here *h = &q->here;
	const struct {
		bool is_given;
		const char *option;
	} rows[] = {
		{ h->record != NULL, "record" },
		{ h->status_fd != NULL, "status-fd" },
		{ h->tty == RUN_TTY_ALWAYS, "tty" },
		{ h->is_unfiltered, "raw" },
		{ h->cast != NULL, "cast" },
		{ h->is_timed, "timing" },
		{ h->again != NULL, "again" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].is_given)
			return rows[i].option;
	return NULL;
}

const char *run_request_find_fixed(const struct run_request *q)
{
	const struct run_request_here *h = &q->here;
	const struct {
		bool is_given;
		const char *option;
	} rows[] = {
		{ h->file != NULL, "file" },
		{ h->is_trusted, "trust" },
		{ run_request_find(q, SPEC_PROJECT_PATH) != NULL, "project" },
		{ h->host != NULL, "host" },
		{ run_request_find(q, SPEC_AGENT) != NULL, "agent" },
		{ h->secrets.count > 0, "secret" },
		{ run_request_find(q, SPEC_ENGINE) != NULL, "engine" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].is_given)
			return rows[i].option;
	return NULL;
}

/* --- writing --- */

static bool is_too_long(const struct run_request *q)
{
	bool is_so = false;

	for (size_t i = 0; i < q->command_count; i++)
		is_so |= strlen(q->command[i]) > RUN_REQUEST_TEXT;
	for (size_t i = 0; i < q->setting_count; i++)
		is_so |= strlen(q->settings[i].value) > RUN_REQUEST_TEXT;
	for (size_t i = 0; i < q->subjects.count; i++)
		is_so |= strlen(q->subjects.items[i]) > RUN_REQUEST_TEXT;
	return is_so;
}

static void print_texts(struct json *j, const char *key, const char *const *texts, size_t count)
{
	json_open_list(j, key);
	for (size_t i = 0; i < count; i++)
		json_text(j, NULL, texts[i]);
	json_close_list(j);
}

static void print_settings(struct json *j, const struct run_request *q)
{
	json_open_list(j, "settings");
	for (size_t i = 0; i < q->setting_count; i++) {
		const struct run_setting *x = &q->settings[i];

		json_open_map(j, NULL);
		json_text(j, "key", x->key == SPEC_KEY_COUNT ? ENV_FILE : spec_keys[x->key].path);
		json_text(j, "from", x->from);
		json_text(j, "value", x->value);
		json_close_map(j);
	}
	json_close_list(j);
}

int run_request_print(const struct run_request *q, struct buf *out, struct err *e)
{
	struct json j;

	if (q->command_count > RUN_REQUEST_WORDS)
		return err_set(e, ERR_USE, E2BIG,
			"cannot hand the run over: it has more than %d arguments",
			RUN_REQUEST_WORDS);
	if (is_too_long(q))
		return err_set(e, ERR_USE, E2BIG,
			"cannot hand the run over: one of its arguments is longer than %zu bytes",
			RUN_REQUEST_TEXT);
	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", RUN_REQUEST_VERSION);
	print_texts(&j, "command", q->command, q->command_count);
	print_settings(&j, q);
	print_texts(&j, "subjects", q->subjects.items, q->subjects.count);
	json_bool(&j, "sync", q->is_synced);
	json_close_map(&j);
	if (out->failed || out->len > RUN_REQUEST_SIZE)
		return err_set(e, ERR_USE, E2BIG,
			"cannot hand the run over: it is longer than %zu bytes, as JSON",
			RUN_REQUEST_SIZE);
	return 0;
}

/* --- reading --- */

struct reader {
	struct json_reader json;
	struct run_request *into;
	struct err *e; /* what is wrong, where that is not for the JSON to say */
	int64_t version;
	unsigned seen; /* of the rows of `members` */
};

/* A copy that stays; NULL: something is wrong. */
static const char *request_read_text(struct reader *r)
{
	const char *text, *copy;

	if (!json_read_text(&r->json, &text))
		return NULL;
	copy = arena_copy(&r->into->arena, text, strlen(text));
	if (!copy)
		fail_memory(r->e);
	return copy;
}

static bool request_read_texts(struct reader *r, struct run_texts *ret)
{
	json_enter_list(&r->json);
	while (json_next_item(&r->json)) {
		const char *text = request_read_text(r);

		if (!text || run_request_add(r->into, ret, text, r->e) < 0)
			return false;
	}
	return !r->json.wrong;
}

static bool request_read_version(struct reader *r)
{
	return json_read_int(&r->json, &r->version);
}

static bool request_read_command(struct reader *r)
{
	struct run_texts words = { 0 };
	bool is_read = request_read_texts(r, &words);

	r->into->command = words.items;
	r->into->command_count = words.count;
	return is_read;
}

static bool refuse_key(struct reader *r, const char *where, const char *key)
{
	err_set(r->e, ERR_USE, EBADMSG, "cannot read the request: %s has no key '%.64s'", where,
		key);
	return false;
}

/* A key that an option could name; what is wrong with its value is for the spec to say. */
static bool request_find_key(struct reader *r, const char *path, enum spec_key *ret)
{
	*ret = spec_key_find(path);
	if (str_eq(path, ENV_FILE) ||
		(*ret != SPEC_KEY_COUNT && spec_keys[*ret].tighten != SPEC_OPERATOR_ONLY &&
			*ret != SPEC_COMMAND))
		return true;
	return refuse_key(r, "a spec", path);
}

static bool request_read_setting(struct reader *r)
{
	static const char *const names[] = { "key", "from", "value" };
	const char *got[COUNT_OF(names)] = { 0 }, *name;
	enum spec_key key;

	json_enter_map(&r->json);
	while (json_next_key(&r->json, &name)) {
		size_t i = 0;

		while (i < COUNT_OF(names) && !str_eq(names[i], name))
			i++;
		if (i == COUNT_OF(names))
			return refuse_key(r, "a setting", name);
		if (got[i])
			return json_wrong(&r->json, "each key once");
		got[i] = request_read_text(r);
		if (!got[i])
			return false;
	}
	if (r->json.wrong)
		return false;
	if (!got[0] || !got[2])
		return json_wrong(&r->json, "key and value");
	return request_find_key(r, got[0], &key) &&
	       run_request_set(r->into, key, got[1] ? got[1] : got[0], got[2], r->e) == 0;
}

static bool request_read_settings(struct reader *r)
{
	json_enter_list(&r->json);
	while (json_next_item(&r->json))
		if (!request_read_setting(r))
			return false;
	return !r->json.wrong;
}

static bool request_read_subjects(struct reader *r)
{
	return request_read_texts(r, &r->into->subjects);
}

static bool read_sync(struct reader *r)
{
	return json_read_bool(&r->json, &r->into->is_synced);
}

static const struct {
	const char *key;
	bool (*read)(struct reader *r);
} members[] = {
	{ "version", request_read_version },
	{ "command", request_read_command },
	{ "settings", request_read_settings },
	{ "subjects", request_read_subjects },
	{ "sync", read_sync },
};

static bool request_read_member(struct reader *r, const char *key)
{
	size_t i = 0;

	while (i < COUNT_OF(members) && !str_eq(members[i].key, key))
		i++;
	/* What was queued by a bawn before 1.0: it was never released. */
	if (i == COUNT_OF(members) && str_eq(key, "arguments"))
		return err_hint(r->e,
			       err_set(r->e, ERR_USE, EBADMSG,
				       "cannot read the request: an earlier bawn wrote it"),
			       "queue the run again") == 0;
	if (i == COUNT_OF(members))
		return refuse_key(r, "a request", key);
	if (r->seen & 1U << i)
		return json_wrong(&r->json, "each key once");
	r->seen |= 1U << i;
	return members[i].read(r);
}

static bool read_all(struct reader *r)
{
	const char *key;

	json_enter_map(&r->json);
	while (json_next_key(&r->json, &key))
		if (!request_read_member(r, key))
			return false;
	if (!json_read_end(&r->json))
		return false;
	if (!(r->seen & 1U))
		return json_wrong(&r->json, "a version");
	if (r->version == RUN_REQUEST_VERSION)
		return true;
	err_set(r->e, ERR_USE, EBADMSG,
		"cannot read the request: its version is %lld, and this bawn reads %d",
		(long long)r->version, RUN_REQUEST_VERSION);
	return false;
}

int run_request_read(const char *text, size_t size, struct run_request *ret, struct err *e)
{
	struct err unused = { 0 };
	struct reader r = { .into = ret, .e = e ? e : &unused };

	run_request_init(ret);
	if (size > RUN_REQUEST_SIZE)
		return err_set(e, ERR_USE, EBADMSG,
			"cannot read the request: it is longer than %zu bytes", RUN_REQUEST_SIZE);
	*r.e = (struct err){ 0 };
	json_read_init(&r.json, text, size, RUN_REQUEST_TEXT);
	r.json.takes_bytes = true;
	if (!read_all(&r) && r.e->kind == ERR_NONE)
		err_set(r.e, ERR_USE, EBADMSG, "cannot read the request: expected %s",
			r.json.wrong ? r.json.wrong : "JSON");
	json_reader_done(&r.json);
	return r.e->kind == ERR_NONE ? 0 : -EBADMSG;
}
