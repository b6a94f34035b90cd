#include "gate/http/gate_host.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/str.h"

/* The limits of DNS. */
#define MAX_LABEL 63
#define MAX_NAME  253

static_assert(MAX_NAME < WIRE_NAME_SIZE, "a name has room");

static bool is_label_byte(char c)
{
	return str_is_digit(c) || str_is_letter(c) || c == '-' || c == '_';
}

static bool has_good_labels(const char *name)
{
	size_t label = 0;

	for (; *name; name++) {
		if (*name == '.' ? label == 0 : !is_label_byte(*name))
			return false;
		label = *name == '.' ? 0 : label + 1;
		if (label > MAX_LABEL)
			return false;
	}
	return label > 0;
}

/* True if the last label makes some resolvers take the name for an IPv4 address: 1, 0177, 0x7f. */
static bool ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.'), *label = dot ? dot + 1 : name;

	if (str_starts(label, "0x"))
		return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
	return strspn(label, "0123456789") == strlen(label);
}

bool gate_host_read_name(const char *text, size_t n, char ret[static WIRE_NAME_SIZE])
{
	ret[0] = '\0';
	if (n > 1 && text[n - 1] == '.')
		n--;
	if (n == 0 || n > MAX_NAME)
		return false;
	for (size_t i = 0; i < n; i++)
		ret[i] = str_lower(text[i]);
	ret[n] = '\0';
	/* A NUL within would hide what follows it from all who look at `ret`. */
	if (strlen(ret) == n && has_good_labels(ret) && !ends_in_number(ret))
		return true;
	ret[0] = '\0';
	return false;
}

static bool read_address(const char *text, size_t n, int family, char ret[static WIRE_NAME_SIZE])
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t address[sizeof(struct in6_addr)];

	if (n >= sizeof(copy) || memchr(text, '\0', n))
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return inet_pton(family, copy, address) == 1 &&
	       inet_ntop(family, address, ret, WIRE_NAME_SIZE) != NULL;
}

/* Digits only, and no more than a port has. */
static bool read_port(const char *text, size_t n, uint16_t *ret)
{
	unsigned port = 0;

	if (n == 0 || n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!str_is_digit(text[i]))
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	*ret = (uint16_t)port;
	return port > 0 && port <= UINT16_MAX;
}

bool gate_host_read_authority(const char *text, size_t n, struct gate_authority *ret)
{
	bool is_bracketed = n > 0 && text[0] == '[';
	const char *colon, *end = n > 0 ? memchr(text, is_bracketed ? ']' : ':', n) : NULL;
	size_t host = end ? (size_t)(end - text) : n;

	*ret = (struct gate_authority){ 0 };
	if (is_bracketed) {
		if (!end || !read_address(text + 1, host - 1, AF_INET6, ret->host))
			return false;
		host++;
	} else if (!read_address(text, host, AF_INET, ret->host) &&
		   !gate_host_read_name(text, host, ret->host)) {
		return false;
	}
	colon = text + host;
	return host == n || (*colon == ':' && read_port(colon + 1, n - host - 1, &ret->port));
}

bool gate_host_is(const char *host, const char *name)
{
	char same[WIRE_NAME_SIZE];

	if (str_eq(host, name))
		return true;
	return read_address(name, strlen(name), AF_INET6, same) && str_eq(host, same);
}
