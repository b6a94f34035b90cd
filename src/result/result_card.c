/*
 * result_card - the agent card of a run, made of its record and its spec.
 *
 * Runs as:  the operator.
 * Reads:    the run's folder.
 * Must not: use a record that none of the operator's keys signed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "result/result_record.h"

/* All of an open file, or why it could not be opened. */
static int read_file(int fd, const char *name, char **ret, size_t *ret_size, struct err *e)
{
	int r = fd < 0 ? fd : file_read_all(fd, RECORD_MAX_SIZE, ret, ret_size);

	if (r == -ENOENT)
		err_set(e, ERR_REFUSED, ENOENT,
			"there is no %s: the run goes on, was interrupted, or was made by an older bawn",
			name);
	else if (r < 0)
		err_sys(e, -r, "cannot read %s", name);
	return r;
}

/* Reads the record's first envelope, which one of the operator's keys must have signed. */
static int read_record(const char *bytes, size_t n, struct arena *arena, struct record_read *ret,
	struct sign_public *ret_key, struct err *e)
{
	const char *end = memchr(bytes, '\n', n), *home = run_home();
	own_fd int state = record_open_state(home, false, e);
	struct record_statement statement;
	struct sign_envelope envelope;
	bool is_own = false;
	int r = sign_read_envelope(bytes, end ? (size_t)(end - bytes) : n, arena, &envelope, e);

	if (r < 0)
		return r;
	for (size_t i = 0; state >= 0 && !is_own && i < envelope.count; i++)
		is_own = sign_find_own(state, envelope.signatures[i].key_id, ret_key, NULL) == 0 &&
			 sign_is_by(&envelope, ret_key);
	if (!is_own)
		return err_set(e, ERR_REFUSED, EKEYREJECTED, "it is not signed by a key of yours");
	return record_read(
		(const char *)envelope.payload, envelope.size, arena, &statement, ret, e);
}

void result_card_done(struct result_card *c)
{
	free(c->record_bytes);
	free(c->spec_bytes);
	spec_done(&c->spec);
	arena_done(&c->arena);
}

int result_make_card(int folder, struct result_card *ret, struct err *e)
{
	struct record_read record = { 0 };
	own_fd int file = -1, spec = -1;
	size_t n = 0, spec_size = 0;
	int r;

	*ret = (struct result_card){ .arena.max = RECORD_READ_MEMORY };
	spec_init(&ret->spec);
	file = file_open_name(folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	r = read_file(file, RECORD_FILE, &ret->record_bytes, &n, e);
	if (r < 0)
		return r;
	sha256_hex(ret->record_bytes, n, ret->digest);
	r = read_record(ret->record_bytes, n, &ret->arena, &record, &ret->key, e);
	if (r < 0)
		err_prefix(e, RECORD_FILE);
	if (r == 0) {
		spec = record_open_part(folder, RECORD_SPEC, record.spec_sha256);
		r = read_file(spec, RECORD_SPEC_FILE, &ret->spec_bytes, &spec_size, e);
	}
	if (r < 0)
		return r;
	if ((r = spec_read_canonical(&ret->spec, ret->spec_bytes, spec_size, e)) < 0)
		err_prefix(e, RECORD_SPEC_FILE);
	/* Only a policy can say this, so the spec that was kept does not have it. */
	if (r == 0 && record.self_governance)
		spec_let_govern(&ret->spec, record.self_governance);
	if (r < 0)
		return r;
	return card_from_record(&ret->spec, &record, ret->digest, ret->key.id, &ret->card, e);
}
