/* Parses and prints destinations, published ports and secrets. */
#include "spec/spec_grammar.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"

#define HOST_LIMIT 253

#define BAD(e, ...)  (err_set((e), ERR_SPEC, 0, __VA_ARGS__), -EINVAL)
#define NO_MEMORY(e) (err_set((e), ERR_SYS, ENOMEM, "not enough memory"), -ENOMEM)

const char *const spec_protocol_names[] = { "tls", "http", "tcp" };

#define PROTOCOLS COUNT_OF(spec_protocol_names)

/* Splits "host:port" or "[address]:port" at its last colon; both parts are copies. */
static int split_port(
	struct arena *arena, const char *text, char **ret_host, uint16_t *ret_port, struct err *e)
{
	const char *colon = strrchr(text, ':');
	int64_t port = 0;

	if (text[0] == '[') {
		const char *bracket = strchr(text, ']');

		if (!bracket || bracket[1] != ':')
			return BAD(e, "'%.200s' must be [ADDRESS]:PORT", text);
		colon = bracket + 1;
	}
	if (!text[0] || colon == text || str_eq(text, ".") || str_starts(text, ".:"))
		return BAD(
			e, "'%.200s' has no host: write HOST:PORT, such as example.org:443", text);
	if (!colon)
		return BAD(e, "'%.200s' has no port: write it as %.100s:443", text, text);
	if (text[0] != '[' && memchr(text, ':', (size_t)(colon - text)))
		return BAD(e, "'%.200s': write an IPv6 address in brackets, as [2001:db8::1]:443",
			text);
	if (num_parse_int(colon + 1, 1, 65535, &port, NULL) < 0)
		return BAD(e, "'%.200s': the port '%.20s' is not a number from 1 to 65535", text,
			colon + 1);
	*ret_port = (uint16_t)port;
	if (text[0] == '[')
		*ret_host = arena_copy(arena, text + 1, (size_t)(colon - 1 - text) - 1);
	else
		*ret_host = arena_copy(arena, text, (size_t)(colon - text));
	return *ret_host ? 0 : NO_MEMORY(e);
}

/* Takes "/tls", "/http" or "/tcp" off the end, or chooses by the port. */
static int take_protocol(char *text, struct spec_egress *ret, bool *ret_is_given, struct err *e)
{
	char *colon = strrchr(text, ':'), *slash = colon ? strchr(colon, '/') : NULL;

	*ret_is_given = slash != NULL;
	if (!slash)
		return 0;
	for (size_t i = 0; i < PROTOCOLS; i++) {
		if (str_eq(slash + 1, spec_protocol_names[i])) {
			ret->protocol = (enum spec_protocol)i;
			*slash = '\0';
			return 0;
		}
	}
	return BAD(e, "'%.200s': the protocol '%.20s' is not tls, http or tcp", text, slash + 1);
}

static int check_label(const char *label, size_t n, const char *host, struct err *e)
{
	if (n == 0)
		return BAD(e, "host '%.200s' has an empty part between two points", host);
	if (n > 63)
		return BAD(e, "host '%.200s' has a part longer than 63 characters", host);
	if (label[0] == '-' || label[n - 1] == '-')
		return BAD(e, "host '%.200s' has a part that starts or ends with '-'", host);
	for (size_t i = 0; i < n; i++) {
		if (label[i] == '*')
			return BAD(e,
				"host '%.200s': * stands alone at the front only, as in "
				"*.example.org",
				host);
		if ((unsigned char)label[i] >= 0x80)
			return BAD(e, "host '%.200s': write international names in their xn-- form",
				host);
		if (!str_is_letter(label[i]) && !str_is_digit(label[i]) && !strchr("-_", label[i]))
			return BAD(e, "host '%.200s' has a character that no host name has", host);
	}
	return 0;
}

/* Digits, or 0x and what follows: old resolvers take these for an address. */
static bool is_number(const char *label)
{
	return strspn(label, "0123456789") == strlen(label) ||
	       (label[0] == '0' && str_lower(label[1]) == 'x');
}

/* A name, lower-cased in place; the last label of a name is never all digits. */
static int parse_host_name(char *host, struct spec_egress *ret, struct err *e)
{
	size_t n = strlen(host), last = 0, labels = 0;

	if (n && host[n - 1] == '.')
		host[--n] = '\0';
	if (str_starts(host, "*.")) {
		ret->is_wildcard = true;
		host += 2;
		n -= 2;
	}
	if (str_eq(host, "*") || n == 0)
		return BAD(e,
			"'%s' would allow every host; name the hosts, or use network.mode host",
			ret->is_wildcard ? "*." : host);
	if (n > HOST_LIMIT)
		return BAD(e, "host '%.60s…' is longer than %d characters", host, HOST_LIMIT);
	for (size_t at = 0; at <= n; at += strcspn(host + at, ".") + 1) {
		int r = check_label(host + at, strcspn(host + at, "."), host, e);

		if (r < 0)
			return r;
		last = at;
		labels++;
	}
	if (ret->is_wildcard && labels < 2)
		return BAD(e, "'*.%s' would allow a whole top-level domain; name a domain below it",
			host);
	if (is_number(host + last))
		return BAD(e, "'%.200s' is neither a host name nor an address", host);
	for (char *p = host; *p; p++)
		*p = str_lower(*p);
	ret->host = host;
	return 0;
}

/* An address or a network; false where the text is neither and may be a name. */
static bool parse_network(const char *text, struct spec_egress *ret, bool *ret_is_good)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char address[INET6_ADDRSTRLEN];
	int64_t bits;
	uint8_t v4[4];
	int width;

	*ret_is_good = false;
	if (n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, v4) == 1) {
		memcpy(ret->address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
		memcpy(ret->address + 12, v4, 4);
		width = 32;
	} else if (inet_pton(AF_INET6, address, ret->address) == 1) {
		width = 128;
	} else {
		return slash != NULL;
	}
	bits = width;
	if (slash && num_parse_int(slash + 1, 0, width, &bits, NULL) < 0)
		return true;
	ret->prefix = (uint8_t)(128 - width + (int)bits);
	*ret_is_good = true;
	return true;
}

/* Are there bits set behind the prefix? Then one of the two is a slip. */
static bool has_host_bits(const struct spec_egress *n)
{
	for (unsigned bit = n->prefix; bit < 128; bit++)
		if (n->address[bit / 8] & (0x80U >> bit % 8))
			return true;
	return false;
}

static bool is_mapped(const struct spec_egress *n)
{
	return memcmp(n->address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
}

static void grammar_net_print_network(const struct spec_egress *n, char *ret, size_t size)
{
	bool is_v4 = is_mapped(n) && n->prefix >= 96;
	int width = is_v4 ? 32 : 128, bits = n->prefix - (128 - width);
	char address[INET6_ADDRSTRLEN];

	inet_ntop(is_v4 ? AF_INET : AF_INET6, n->address + (is_v4 ? 12 : 0), address,
		sizeof(address));
	if (bits == width)
		snprintf(ret, size, is_v4 ? "%s" : "[%s]", address);
	else
		snprintf(ret, size, is_v4 ? "%s/%d" : "[%s/%d]", address, bits);
}

void spec_print_egress(const struct spec_egress *to, char ret[static SPEC_NET_SIZE])
{
	char network[INET6_ADDRSTRLEN + 8];

	if (!to->host)
		grammar_net_print_network(to, network, sizeof(network));
	/* A client that has not been asked yet has no port. */
	if (to->port)
		snprintf(ret, SPEC_NET_SIZE, "%s%s:%u/%s", to->is_wildcard ? "*." : "",
			to->host ? to->host : network, to->port, spec_protocol_names[to->protocol]);
	else
		snprintf(ret, SPEC_NET_SIZE, "%s", to->client);
}

void spec_print_publish(const struct spec_publish *port, char ret[static SPEC_NET_SIZE])
{
	snprintf(ret, SPEC_NET_SIZE, strchr(port->address, ':') ? "[%s]:%u:%u" : "%s:%u:%u",
		port->address, port->host_port, port->cage_port);
}

static int grammar_net_keeper_text(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	ret->text = arena_copy(arena, text, strlen(text));
	return ret->text ? 0 : NO_MEMORY(e);
}

static const char this_machine[] = "this machine itself";

/* Networks that mean something else in a cage. */
static const struct {
	struct spec_egress network;
	const char *what;
} own_networks[] = {
	{ { .address = { [10] = 0xff, 0xff, 127 }, .prefix = 104 }, this_machine },
	{ { .address = { [10] = 0xff, 0xff, 0 }, .prefix = 104 }, this_machine },
	{ { .address = { 0 }, .prefix = 127 }, this_machine },
	{ { .address = { [10] = 0xff, 0xff, 198, 18 }, .prefix = 111 },
		"where names are put in a cage: nothing else can be reached there" },
	{ { .address = { 0xfd, 0x62, 0x61, 0x77, 0x6e, 0x67 }, .prefix = 112 },
		"where names are put in a cage: nothing else can be reached there" },
};

bool spec_network_holds(const struct spec_egress *outer, const struct spec_egress *inner)
{
	struct spec_egress cut = *inner;

	/* A network of IPv6 holds none of IPv4, however wide it is. */
	if (outer->prefix > inner->prefix || (outer->prefix < 96 && is_mapped(inner)))
		return false;
	for (unsigned bit = outer->prefix; bit < 128; bit++)
		cut.address[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
	return memcmp(cut.address, outer->address, sizeof(cut.address)) == 0;
}

static const char *own_meaning(const struct spec_egress *n)
{
	for (size_t i = 0; i < COUNT_OF(own_networks); i++)
		if (spec_network_holds(&own_networks[i].network, n))
			return own_networks[i].what;
	return NULL;
}

int spec_grammar_egress(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	struct spec_egress *to = &ret->egress;
	char *copy = arena_copy(arena, text, strlen(text)), *host = NULL;
	bool is_protocol_given = false, is_good = false;
	char shown[SPEC_NET_SIZE];
	int r;

	if (!copy)
		return NO_MEMORY(e);
	*to = (struct spec_egress){ 0 };
	if (strstr(text, "://"))
		return BAD(e, "'%.200s' is a URL: write HOST:PORT, such as example.org:443", text);
	if (strchr(text, ','))
		return BAD(e, "'%.200s' has a comma: write one destination each", text);
	r = take_protocol(copy, to, &is_protocol_given, e);
	if (r == 0)
		r = split_port(arena, copy, &host, &to->port, e);
	if (r < 0)
		return r;
	if (!is_protocol_given)
		to->protocol = to->port == 443 ? SPEC_TLS : to->port == 80 ? SPEC_HTTP : SPEC_TCP;
	if (parse_network(host, to, &is_good)) {
		if (!is_good)
			return BAD(
				e, "'%.200s' is not a network: write it as 10.0.0.0/8:5432", text);
		if (to->prefix == 0 || (to->prefix == 96 && is_mapped(to)))
			return BAD(e,
				"'%.200s' would allow every host; name the hosts, or use "
				"network.mode host",
				text);
		if (has_host_bits(to))
			return BAD(e,
				"'%.200s' has address bits behind its prefix: one of the two is "
				"wrong",
				text);
		if (own_meaning(to))
			return BAD(e, "'%.200s' is %s", text, own_meaning(to));
		/* An address says nothing of a name that a hello could be held to. */
		if (!is_protocol_given)
			to->protocol = SPEC_TCP;
	} else if (copy[0] == '[') {
		return BAD(e, "'%.200s': brackets are for IPv6 addresses only", text);
	} else {
		r = parse_host_name(host, to, e);
		if (r < 0)
			return r;
		if (str_eq(to->host, "bawn-host"))
			return BAD(e, "'%.200s' is this machine itself", text);
	}
	spec_print_egress(to, shown);
	return grammar_net_keeper_text(arena, shown, ret, e);
}

const char *spec_hint_destination(
	struct arena *arena, const char *text, const struct spec_item *item, bool is_option)
{
	const struct spec_egress *to = &item->egress;
	const char *comma = strchr(text, ',');

	if (comma && comma > text && comma[1] && !strchr(comma + 1, ','))
		return arena_printf(arena,
			is_option ? "--allow %.*s --allow %s" : "allow: [\"%.*s\", \"%s\"]",
			(int)(comma - text), text, comma + 1 + strspn(comma + 1, " "));
	if (!to->port ||
		!(to->host ? str_eq(to->host, "bawn-host") : own_meaning(to) == this_machine))
		return NULL;
	return arena_printf(arena,
		is_option ? "--host-port %u, and bawn-host:%u in the cage"
			  : "write host_ports: [%u]; in the cage it is bawn-host:%u",
		to->port, to->port);
}

const char *const spec_clients[] = { "apt", "cargo", "git", "go", "npm", "pip", NULL };

int spec_grammar_allow(struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	for (size_t i = 0; spec_clients[i]; i++)
		if (str_eq(text, spec_clients[i])) {
			ret->egress = (struct spec_egress){ .client = spec_clients[i] };
			ret->text = spec_clients[i];
			return 0;
		}
	return spec_grammar_egress(arena, text, ret, e);
}

/* An address as the system would write it; NULL where the text is none. */
static const char *one_spelling(struct arena *arena, const char *address)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t bytes[16];
	int family = strchr(address, ':') ? AF_INET6 : AF_INET;

	if (inet_pton(family, address, bytes) != 1 || !inet_ntop(family, bytes, text, sizeof(text)))
		return NULL;
	return arena_copy(arena, text, strlen(text));
}

int spec_grammar_publish(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e)
{
	struct spec_publish *p = &ret->publish;
	const char *colon = strrchr(text, ':');
	char *rest = colon ? arena_copy(arena, text, (size_t)(colon - text)) : NULL;
	char *address = NULL;
	char shown[SPEC_NET_SIZE];
	int64_t cage = 0, host = 0;
	int r;

	if (!colon || num_parse_int(colon + 1, 1, 65535, &cage, NULL) < 0)
		return BAD(e, "'%.200s' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000",
			text);
	if (!rest)
		return NO_MEMORY(e);
	p->cage_port = (uint16_t)cage;
	p->address = "127.0.0.1";
	if (num_parse_int(rest, 1, 65535, &host, NULL) == 0) {
		p->host_port = (uint16_t)host;
	} else {
		r = split_port(arena, rest, &address, &p->host_port, NULL);
		p->address = r < 0 ? NULL : one_spelling(arena, address);
		if (!p->address)
			return BAD(e,
				"'%.200s' must be [ADDRESS:]HOST_PORT:CAGE_PORT, such as 8000:8000",
				text);
	}
	spec_print_publish(p, shown);
	return grammar_net_keeper_text(arena, shown, ret, e);
}

/* --- secrets --- */

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
	int r = spec_parse(SPEC_GRAMMAR_NAME, arena, text, &item, e);

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
	int r = spec_parse(SPEC_GRAMMAR_TRUSTED, arena, text, &item, e);

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
		r = spec_parse(SPEC_GRAMMAR_VARIABLE, arena, text + strlen("env:"), &item, e);
		ret->source = item.text;
	} else if (str_starts(text, "file:")) {
		ret->is_file = true;
		r = secret_read_path(arena, text + strlen("file:"), &ret->source, e);
	} else {
		/* The text may be the key itself. */
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

/* --- secrets: the one line --- */

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
