#include <string.h>

#include "cli/cli_show.h"

static const char letters[] = "abtnvfr"; /* from \a to \r, as C has them */

static bool is_special(unsigned char c)
{
	return c < ' ' || c >= 0x7f || c == '"' || c == '\\';
}

static void add_byte(struct buf *out, unsigned char c)
{
	if (!is_special(c))
		buf_putc(out, (char)c);
	else if (c == '"' || c == '\\')
		buf_printf(out, "\\%c", c);
	else if (c >= '\a' && c <= '\r')
		buf_printf(out, "\\%c", letters[c - '\a']);
	else
		buf_printf(out, "\\%03o", c);
}

static void quote_add(struct buf *out, const char *prefix, const char *path, bool quotes_blanks)
{
	bool is_quoted = quotes_blanks && strchr(path, ' ');

	for (const char *p = path; *p && !is_quoted; p++)
		is_quoted = is_special((unsigned char)*p);
	if (is_quoted)
		buf_putc(out, '"');
	buf_puts(out, prefix);
	if (!is_quoted)
		buf_puts(out, path);
	for (const char *p = path; is_quoted && *p; p++)
		add_byte(out, (unsigned char)*p);
	if (is_quoted)
		buf_putc(out, '"');
}

void cli_add_quoted(struct buf *out, const char *prefix, const char *path)
{
	quote_add(out, prefix, path, false);
}

void cli_add_quoted_blanks(struct buf *out, const char *prefix, const char *path)
{
	quote_add(out, prefix, path, true);
}
