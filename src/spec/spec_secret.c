#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "spec/spec_grammar.h"

#define BAD(e, ...)  (err_set((e), ERR_SPEC, 0, __VA_ARGS__), -EINVAL)
#define NO_MEMORY(e) (err_set((e), ERR_SYS, ENOMEM, "not enough memory"), -ENOMEM)

#define HEADER_MAX 64
#define SCHEME_MAX 32

const char *const spec_secret_parts[SPEC_SECRET_PARTS] = {
	[SPEC_SECRET_NAME] = "name",
	[SPEC_SECRET_HOST] = "host",
	[SPEC_SECRET_HEADER] = "header",
	[SPEC_SECRET_SCHEME] = "scheme",
	[SPEC_SECRET_FROM] = "from",
	[SPEC_SECRET_CA] = "ca",
};

static int secret_read_name(
	struct arena *arena, const char *text, struct spec_secret *ret, struct err *e)
{
	struct spec_item item = { 0 };
	int r = spec_grammar_name(arena, text, &item, e);

	ret->name = item.text;
	return r;
}

/* The name of a host and a port; what is spoken there is always TLS. */
static int secret_read_host(
	struct arena *arena, const char *text, struct spec_secret *ret, struct err *e)
{
	struct spec_item item = { 0 };
	int r = spec_grammar_egress(arena, text, &item, e);

	if (r < 0)
		return r;
	if (strrchr(text, '/'))
		return BAD(e, "'%.200s': write HOST:PORT; what is spoken there is TLS", text);
	if (item.egress.is_wildcard || !item.egress.host)
		return BAD(e, "'%.200s': a secret is for one host, by its name", text);
	ret->host = item.egress.host;
	ret->port = item.egress.port;
	return 0;
}

static bool is_token(const char *text, size_t max)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (!str_is_letter(text[i]) && !str_is_digit(text[i]) &&
			!strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	return n > 0 && n <= max;
}

/* Fields that say where a request goes or where it ends; bawn writes them itself. */
static bool is_framing(const char *header)
{
	static const char *const own[] = { "host", "content-length", "transfer-encoding",
		"connection", "keep-alive", "te", "trailer", "upgrade", "expect", "accept-encoding",
		"http2-settings" };

	for (size_t i = 0; i < COUNT_OF(own); i++)
		if (str_eq(header, own[i]))
			return true;
	return str_starts(header, "proxy-");
}

static int secret_read_header(
	struct arena *arena, const char *text, struct spec_secret *ret, struct err *e)
{
	char *lower = arena_copy(arena, text, strlen(text));

	if (!lower)
		return NO_MEMORY(e);
	if (!is_token(text, HEADER_MAX))
		return BAD(e,
			"'%.80s' is not the name of a header: write letters, digits and -, at most "
			"%d",
			text, HEADER_MAX);
	for (char *p = lower; *p; p++)
		*p = str_lower(*p);
	if (is_framing(lower))
		return BAD(e, "the header '%s' is written by bawn itself: name another", lower);
	ret->header = lower;
	return 0;
}

static int read_scheme(
	struct arena *arena, const char *text, struct spec_secret *ret, struct err *e)
{
	if (!is_token(text, SCHEME_MAX))
		return BAD(e, "'%.80s' is not a scheme: write one word, such as Bearer", text);
	ret->scheme = arena_copy(arena, text, strlen(text));
	return ret->scheme ? 0 : NO_MEMORY(e);
}

/* A file that lies still: not in the project, where it would be the agent's to read. */
static int secret_read_path(struct arena *arena, const char *text, const char **ret, struct err *e)
{
	struct spec_item item = { 0 };
	int r = spec_grammar_trusted(arena, text, &item, e);

	if (r < 0)
		return r;
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return BAD(e, "a path has a control character");
	*ret = item.text;
	return 0;
}

static int read_from(struct arena *arena, const char *text, struct spec_secret *ret, struct err *e)
{
	struct spec_item item = { 0 };
	int r;

	if (str_starts(text, "env:")) {
		r = spec_grammar_variable(arena, text + strlen("env:"), &item, e);
		ret->source = item.text;
	} else if (str_starts(text, "file:")) {
		ret->is_file = true;
		r = secret_read_path(arena, text + strlen("file:"), &ret->source, e);
	} else {
		/* Whatever it is, it may be the key itself. */
		r = BAD(e, "'from' says where the key is kept, env:NAME or file:PATH, and is never "
			   "the key itself");
	}
	return r;
}

static int read_ca(struct arena *arena, const char *text, struct spec_secret *ret, struct err *e)
{
	return secret_read_path(arena, text, &ret->ca, e);
}

static int (*const readers[SPEC_SECRET_PARTS])(
	struct arena *, const char *, struct spec_secret *, struct err *) = {
	[SPEC_SECRET_NAME] = secret_read_name,
	[SPEC_SECRET_HOST] = secret_read_host,
	[SPEC_SECRET_HEADER] = secret_read_header,
	[SPEC_SECRET_SCHEME] = read_scheme,
	[SPEC_SECRET_FROM] = read_from,
	[SPEC_SECRET_CA] = read_ca,
};

/* --- the one line --- */

/* A value, with what splits the line kept from doing so. */
static void secret_put_value(struct buf *out, const char *value)
{
	for (; *value; value++) {
		if (*value == ' ' || *value == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *value);
	}
}

void spec_print_secret(const struct spec_secret *s, struct buf *out)
{
	buf_printf(out, "%s=%s", spec_secret_parts[SPEC_SECRET_NAME], s->name);
	buf_printf(out, " %s=%s:%u", spec_secret_parts[SPEC_SECRET_HOST], s->host, s->port);
	buf_printf(out, " %s=%s", spec_secret_parts[SPEC_SECRET_HEADER], s->header);
	if (s->scheme)
		buf_printf(out, " %s=%s", spec_secret_parts[SPEC_SECRET_SCHEME], s->scheme);
	buf_printf(
		out, " %s=%s:", spec_secret_parts[SPEC_SECRET_FROM], s->is_file ? "file" : "env");
	secret_put_value(out, s->source);
	if (s->ca) {
		buf_printf(out, " %s=", spec_secret_parts[SPEC_SECRET_CA]);
		secret_put_value(out, s->ca);
	}
}

int spec_make_secret(struct arena *arena, const char *const parts[static SPEC_SECRET_PARTS],
	struct spec_item *ret, enum spec_secret_part *ret_wrong, struct err *e)
{
	struct spec_secret *s = &ret->secret;
	own(buf) struct buf line = { .max = (size_t)1 << 16 };

	*s = (struct spec_secret){ 0 };
	*ret_wrong = SPEC_SECRET_PARTS;
	for (enum spec_secret_part i = 0; i < SPEC_SECRET_PARTS; i++)
		if (!parts[i] && i != SPEC_SECRET_SCHEME && i != SPEC_SECRET_CA)
			return BAD(e, "a secret needs name, host, header and from; '%s' is missing",
				spec_secret_parts[i]);
	for (enum spec_secret_part i = 0; i < SPEC_SECRET_PARTS; i++) {
		int r = parts[i] ? readers[i](arena, parts[i], s, e) : 0;

		*ret_wrong = i;
		if (r < 0)
			return r;
	}
	spec_print_secret(s, &line);
	ret->text = line.failed ? NULL : arena_copy(arena, buf_text(&line), line.len);
	return ret->text ? 0 : NO_MEMORY(e);
}

/* Takes "key=value" off the front, up to a blank that nothing keeps from splitting. */
static char *secret_take_part(struct arena *arena, const char **at, struct err *e)
{
	char *out = arena_copy(arena, *at, strlen(*at));
	const char *p = *at;
	size_t n = 0;

	if (!out) {
		err_set(e, ERR_SYS, ENOMEM, "not enough memory");
		return NULL;
	}
	for (; *p && *p != ' '; p++) {
		if (*p == '\\' && p[1])
			p++;
		out[n++] = *p;
	}
	out[n] = '\0';
	*at = p + strspn(p, " ");
	return out;
}

static int place_part(char *part, const char *parts[static SPEC_SECRET_PARTS], struct err *e)
{
	char *equals = strchr(part, '=');

	if (!equals)
		return BAD(e, "a secret is written as name=… host=… header=… from=…, or as a map");
	*equals = '\0';
	for (enum spec_secret_part i = 0; i < SPEC_SECRET_PARTS; i++) {
		if (!str_eq(part, spec_secret_parts[i]))
			continue;
		if (parts[i])
			return BAD(e, "'%s' stands twice in a secret", part);
		parts[i] = equals + 1;
		return 0;
	}
	return BAD(
		e, "'%.40s' is not a part of a secret: name, host, header, scheme, from, ca", part);
}

int spec_grammar_secret(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	const char *parts[SPEC_SECRET_PARTS] = { NULL };
	enum spec_secret_part wrong;
	int r = 0;

	text += strspn(text, " ");
	while (r == 0 && *text) {
		char *part = secret_take_part(arena, &text, e);

		r = part ? place_part(part, parts, e) : -ENOMEM;
	}
	return r < 0 ? r : spec_make_secret(arena, parts, ret, &wrong, e);
}
