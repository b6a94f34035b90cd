/* client_read - from what a client prints to destinations. Pure; the bytes may be anybody's. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git.h"
#include "client/client.h"

/* Bytes that end an address in any of the answers. */
static const char ends[] = " \t\r\n\"'\\,|)<>";

static const struct {
	const char *name, *port, *protocol;
} schemes[] = { { "https", "443", "tls" }, { "http", "80", "http" }, { "ssh", "22", "tcp" },
	{ "git", "9418", "tcp" } };

/* git@host:path, which is neither a path nor a URL. */
static int read_short(struct arena *arena, const char *text, size_t n, const char **ret)
{
	const char *at = memchr(text, '@', n), *colon = memchr(text, ':', n);

	if (!at || !colon || colon < at || memchr(text, '/', (size_t)(at - text)))
		return -ENOENT;
	*ret = arena_printf(arena, "%.*s:22/tcp", (int)(colon - at - 1), at + 1);
	return *ret ? 0 : -ENOMEM;
}

/* The end of an address's host: its port, or `end`. */
static const char *end_of_host(const char *host, const char *end)
{
	const char *bracket = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
	const char *colon = bracket ? bracket + 1 : memchr(host, ':', (size_t)(end - host));

	return colon && colon < end ? colon : end;
}

int client_read_address(struct arena *arena, const char *text, size_t n, const char **ret)
{
	const char *host = memmem(text, n, "://", 3), *end, *at, *colon, *scheme;
	size_t scheme_size;

	if (!host)
		return read_short(arena, text, n, ret);
	/* sparse+https, git+ssh, mirror+http */
	scheme = memrchr(text, '+', (size_t)(host - text));
	scheme = scheme ? scheme + 1 : text;
	scheme_size = (size_t)(host - scheme);
	host += 3;
	for (end = host; end < text + n && !strchr("/?#", *end);)
		end++;
	at = memrchr(host, '@', (size_t)(end - host));
	host = at ? at + 1 : host;
	colon = end_of_host(host, end);
	for (size_t i = 0; colon > host && i < COUNT_OF(schemes); i++) {
		const char *port = colon + 1 < end ? colon + 1 : schemes[i].port;

		if (strlen(schemes[i].name) != scheme_size ||
			strncasecmp(schemes[i].name, scheme, scheme_size) != 0)
			continue;
		*ret = arena_printf(arena, "%.*s:%.*s/%s", (int)(colon - host), host,
			colon + 1 < end ? (int)(end - port) : (int)strlen(port), port,
			schemes[i].protocol);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

static bool add_host(struct client_found *ret, const char *host)
{
	for (size_t i = 0; i < ret->host_count; i++)
		if (str_eq(ret->hosts[i], host))
			return true;
	if (ret->host_count == CLIENT_MAX_HOSTS)
		return false;
	ret->hosts[ret->host_count++] = host;
	return true;
}

static bool has_host(const struct client_found *found, const char *host)
{
	for (size_t i = 0; i < found->host_count; i++)
		if (str_eq(found->hosts[i], host))
			return true;
	return false;
}

/* All addresses in a piece of text. */
static bool add_addresses(struct arena *arena, const char *text, size_t n, struct client_found *ret)
{
	for (const char *p = text, *end = text + n; p < end;) {
		size_t size = 0;
		const char *host;
		int r;

		while (p + size < end && !strchr(ends, p[size]))
			size++;
		r = memmem(p, size, "://", 3) ? client_read_address(arena, p, size, &host)
					      : -ENOENT;
		if (r == -ENOMEM || (r == 0 && !add_host(ret, host)))
			return false;
		p += size + 1;
	}
	return true;
}

/* --- keys and values --- */

/* The text between quotes, or all of it, without what surrounds it. */
static void read_trim(const char **text, size_t *n)
{
	while (*n && strchr(" \t\r,\"'", (*text)[*n - 1]))
		--*n;
	while (*n && strchr(" \t\"'", **text))
		++*text, --*n;
}

/* A value as a file has it: pip prints lists as Python does, with \n between two. */
static const char *read_unescape(struct arena *arena, const char *value, size_t n)
{
	own(buf) struct buf out = { .max = 1 << 16 };

	for (size_t i = 0; i < n; i++) {
		if (value[i] == '\\' && i + 1 < n && value[i + 1] == 'n')
			buf_puts(&out, "\n    "), i++;
		else
			buf_putc(&out, value[i]);
	}
	return out.failed ? NULL : arena_copy(arena, buf_text(&out), out.len);
}

/* Keeps a value for the client in the cage; one with a password in it is only noted. */
static bool keep_setting(struct arena *arena, const char *key, size_t key_size, const char *value,
	struct client_found *ret)
{
	struct client_setting *to = &ret->settings[ret->setting_count];
	const char *point = memrchr(key, '.', key_size);

	if (ret->setting_count == CLIENT_MAX_HOSTS)
		return false;
	/* global.index-url, :env:.index-url and install.index-url; @scope:registry stays. */
	if (point && key[0] != '@') {
		key_size -= (size_t)(point + 1 - key);
		key = point + 1;
	}
	to->key = arena_copy(arena, key, key_size);
	to->value = strchr(value, '@') ? NULL : value;
	if (!to->key)
		return false;
	for (size_t i = 0; i < ret->setting_count; i++)
		if (str_eq(ret->settings[i].key, to->key))
			return true;
	ret->setting_count++;
	return true;
}

/* sum.example.org, or off: what has no scheme is the name of a host if it has a point. */
static bool add_bare(struct arena *arena, const char *value, size_t n, struct client_found *ret)
{
	size_t size = 0;
	const char *host;

	while (size < n && !strchr("+ ", value[size]))
		size++;
	if (memmem(value, n, "://", 3) || !memchr(value, '.', size))
		return true;
	host = arena_printf(arena, "%.*s:443/tls", (int)size, value);
	return host && add_host(ret, host);
}

static bool add_pair(struct arena *arena, const struct client_question *q, const char *line,
	size_t n, struct client_found *ret)
{
	const char *json = memmem(line, n, "\": ", 3), *equals = memchr(line, '=', n);
	const char *middle = json ? json : equals, *key = line, *value;
	size_t key_size, size;

	if (!middle)
		return true;
	key_size = (size_t)(middle - key);
	value = middle + (json ? 3 : 1);
	size = n - (size_t)(value - line);
	read_trim(&key, &key_size);
	read_trim(&value, &size);
	if (q->key && (key_size < strlen(q->key) ||
			      memcmp(key + key_size - strlen(q->key), q->key, strlen(q->key)) != 0))
		return true;
	if (!q->key && !add_bare(arena, value, size, ret))
		return false;
	/* A key without a value that leads anywhere, such as omit-lockfile-registry, is another. */
	if (q->key && !memmem(value, size, "://", 3))
		return true;
	value = read_unescape(arena, value, size);
	return value && add_addresses(arena, value, strlen(value), ret) &&
	       keep_setting(arena, key, key_size, value, ret);
}

/* --- cargo's file --- */

/* Tables that say where crates come from go into the cage line by line, without tokens. */
static bool add_toml(
	struct arena *arena, const char *line, size_t n, bool *is_inside, struct client_found *ret)
{
	const char *text = line;
	struct client_setting *to = &ret->settings[ret->setting_count];

	while (n && strchr(" \t", *text))
		text++, n--;
	while (n && strchr(" \t\r", text[n - 1]))
		n--;
	if (n && *text == '[')
		*is_inside = str_starts(text, "[source.") || str_starts(text, "[registries.") ||
			     str_starts(text, "[registry]");
	if (!n || *text == '#' || !*is_inside || memmem(text, n, "token", 5) ||
		memmem(text, n, "credential", 10) || memchr(text, '@', n))
		return true;
	if (ret->setting_count == CLIENT_MAX_HOSTS)
		return false;
	to->key = arena_copy(arena, text, n);
	to->value = "";
	ret->setting_count++;
	return to->key && add_addresses(arena, text, n, ret);
}

static bool add_remotes(struct arena *arena, const char *text, struct client_found *ret)
{
	char value[4096];
	struct check_git_values v;

	check_git_values_init(&v, text, strlen(text));
	while (check_git_values_any(&v, value, sizeof(value))) {
		const char *host;
		int r;

		if (!v.has_subsection || !str_eq(v.section, "remote") ||
			(!str_eq(v.key, "url") && !str_eq(v.key, "pushurl")))
			continue;
		r = client_read_address(arena, value, strlen(value), &host);
		if (r == -ENOMEM || (r == 0 && !add_host(ret, host)))
			return false;
	}
	return true;
}

static bool has_setting(const struct client_found *found, const char *key)
{
	for (size_t i = 0; i < found->setting_count; i++)
		if (str_eq(found->settings[i].key, key))
			return true;
	return false;
}

/* The default counts where its key is not set; what belongs to it, where it is used. */
static bool add_default(struct arena *arena, const struct client_question *q, const char *text,
	struct client_found *ret)
{
	struct client_found said = { 0 };

	if (!add_addresses(arena, text, strlen(text), &said) || !said.host_count)
		return said.host_count == 0;
	if (!has_setting(ret, q->key) && !add_host(ret, said.hosts[0]))
		return false;
	for (size_t i = 1; has_host(ret, said.hosts[0]) && i < said.host_count; i++)
		if (!add_host(ret, said.hosts[i]))
			return false;
	return true;
}

bool client_read(struct arena *arena, const struct client_question *q, const char *text,
	struct client_found *ret)
{
	bool is_inside = false, is_good = true;

	if (q->answer == CLIENT_REMOTES)
		return add_remotes(arena, text, ret);
	if (q->answer == CLIENT_DEFAULT)
		return add_default(arena, q, text, ret);
	for (size_t n; is_good && *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		if (q->answer == CLIENT_PAIRS)
			is_good = add_pair(arena, q, text, n, ret);
		else if (q->answer == CLIENT_TOML)
			is_good = add_toml(arena, text, n, &is_inside, ret);
		else
			is_good = add_addresses(arena, text, n, ret);
	}
	return is_good;
}
