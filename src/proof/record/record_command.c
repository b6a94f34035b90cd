/* record_command - the command of a run, from the plan in its folder. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_read.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "proof/record/record_read.h"

#define MOST_PLAN ((size_t)64 << 20)
#define MOST_WORD ((size_t)4 << 20)

/* As a shell would take it. */
static void add_word(struct buf *out, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_@%+=:,./-";

	if (out->len)
		buf_putc(out, ' ');
	if (word[0] && strspn(word, plain) == strlen(word)) {
		buf_puts(out, word);
		return;
	}
	buf_putc(out, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *word);
	buf_putc(out, '\'');
}

/* One operation of the plan: its word, if it is an argument. */
static void read_operation(struct json_reader *r, struct buf *out)
{
	bool is_argument = false;
	const char *key, *text;

	if (!json_enter_map(r))
		return;
	while (json_next_key(r, &key)) {
		bool is_op = str_eq(key, "op"), is_a = str_eq(key, "a");

		if ((!is_op && !is_a) || json_peek(r) != '"')
			json_skip(r);
		else if (json_read_text(r, &text) && is_op)
			is_argument = str_eq(text, "argument");
		else if (!r->wrong && is_argument)
			add_word(out, text);
	}
}

static void read_plan(const char *bytes, size_t n, struct buf *out)
{
	struct json_reader r;
	const char *key;

	json_read_init(&r, bytes, n, MOST_WORD);
	r.takes_bytes = true;
	json_enter_map(&r);
	while (json_next_key(&r, &key)) {
		if (!str_eq(key, "operations")) {
			json_skip(&r);
			continue;
		}
		json_enter_list(&r);
		while (json_next_item(&r))
			read_operation(&r, out);
	}
	if (r.wrong)
		out->len = 0;
	json_reader_done(&r);
}

void record_read_command(int folder, const char *plan_sha256, struct buf *out)
{
	char found[SHA256_HEX_SIZE], digest[SHA256_HEX_SIZE];
	const char *wanted = plan_sha256                                    ? plan_sha256
			     : record_find_part(folder, RECORD_PLAN, found) ? found
									    : NULL;
	own_fd int fd = record_open_part(folder, RECORD_PLAN, wanted);
	own_free char *bytes = NULL;
	size_t n = 0;

	if (fd < 0 || file_read_all(fd, MOST_PLAN, &bytes, &n) < 0)
		return;
	sha256_hex(bytes, n, digest);
	if (!wanted || str_eq(digest, wanted))
		read_plan(bytes, n, out);
}
