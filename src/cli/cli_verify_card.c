/*
 * cli_verify_card - is a card signed, and is it the card of a record?
 *
 * Runs as: whoever wants to know.
 * Reads:   the card's file, which may be anybody's.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_verify.h"
#include "proof/card/card.h"

/*
 * A key that counts and has signed it; otherwise one that counts and is named, so that it can be
 * said what is wrong. False: there is none.
 */
static bool verify_card_find_key(const struct cli_verifier *x, const struct card_read *c,
	struct arena *arena, struct sign_public *ret)
{
	struct sign_public key;
	const char *whose;
	bool is_found = false;

	for (size_t i = 0; i < c->signature_count; i++) {
		if (!verify_find_key(&x->keys, c->signatures[i].key_id, &key, arena, &whose))
			continue;
		*ret = key;
		is_found = true;
		if (card_find_signature(c, &key) >= 0)
			break;
	}
	return is_found;
}

static void verify_card_say_all(const struct card_report *from, struct verify_report *report)
{
	static const enum verify_result results[] = {
		[CARD_YES] = VERIFY_YES,
		[CARD_NO] = VERIFY_NO,
		[CARD_ABSENT] = VERIFY_ABSENT,
	};

	for (size_t i = 0; i < from->count; i++)
		verify_say(report, from->items[i].name, results[from->items[i].result], "%s",
			from->items[i].text);
	report->has_failed |= from->has_failed;
}

static int read_card(const char *path, char **ret, size_t *ret_size, struct err *e)
{
	own_fd int fd =
		str_eq(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : file_open_input(path);
	int r = fd < 0 ? fd : file_read_all(fd, CARD_MAX_SIZE, ret, ret_size);

	if (r < 0)
		err_set(e, ERR_USE, -r, "cannot read the card '%s': %s", path, strerror(-r));
	return r;
}

int cli_judge_card(const struct cli_verifier *x, const char *path, const struct verify_record *v,
	struct verify_report *report, struct err *e)
{
	own_free char *bytes = NULL;
	struct card_report said = { 0 };
	struct sign_public key;
	struct card_read card;
	size_t n = 0;
	int r = read_card(path, &bytes, &n, e);

	if (r == 0) {
		r = card_read(bytes, n, &card, e);
		if (r < 0)
			err_prefix(e, "cannot use the card '%s'", path);
		else
			card_verify(&card,
				verify_card_find_key(x, &card, report->arena, &key) ? &key : NULL,
				&said);
		/* Of what nobody signed nothing is compared. */
		if (r == 0 && !said.has_failed && v && v->is_signed)
			card_verify_record(&card, &v->record, v->sha256, v->key.id, &said);
		card_read_done(&card);
	}
	if (r < 0)
		cli_complain_err(e);
	verify_card_say_all(&said, report);
	return r < 0 ? CLI_NO : CLI_OK;
}

int cli_verify_card(struct cli_verifier *x)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct verify_report report = { .arena = &x->arena };
	struct err e = { 0 };
	bool is_good =
		cli_judge_card(x, cli_value(x->cli, CLI_OPT_CARD), NULL, &report, &e) == CLI_OK &&
		!report.has_failed;
	int status = is_good ? CLI_OK : CLI_NO;
	struct json j;

	cli_hide_values(e.text, sizeof(e.text));
	if (x->cli->is_json) {
		json_init(&j, &out, 0);
		json_open_map(&j, NULL);
		json_int(&j, "version", 1);
		json_bool(&j, "good", is_good);
		if (e.text[0])
			json_text(&j, "error", e.text);
		verify_print_json(&report, &j);
		json_close_map(&j);
		buf_putc(&out, '\n');
		return cli_write(&out, status);
	}
	if (e.text[0] || (x->cli->is_quiet && is_good))
		return status;
	verify_print(&report, x->cli->has_color, &out);
	buf_puts(&out, is_good ? "good\n" : "not good\n");
	return cli_write(&out, status);
}
