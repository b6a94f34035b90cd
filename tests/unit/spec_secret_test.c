#include "grammar_rows.h"

#include "base/count.h"
#include "base/str.h"

static void test_forms(void)
{
	static const struct row rows[] = {
		{ "name=a host=a.example:443 header=x-key from=env:KEY",
			"name=a host=a.example:443 header=x-key from=env:KEY", NULL },
		/* Any order, any blanks, one spelling of hosts and headers. */
		{ "  from=env:KEY   header=X-Key host=A.Example.:443 name=a  ",
			"name=a host=a.example:443 header=x-key from=env:KEY", NULL },
		{ "name=a host=a.example:8443 header=authorization scheme=Bearer from=file:~/k",
			"name=a host=a.example:8443 header=authorization scheme=Bearer from=file:~/k",
			NULL },
		{ "name=a host=a.example:1 header=k from=file:/a//b/ ca=~/./ca.pem",
			"name=a host=a.example:1 header=k from=file:/a/b ca=~/ca.pem", NULL },
		/* Blanks and backslashes are kept from splitting, and stay so. */
		{ "name=a host=a.example:1 header=k from=file:/a\\ b\\\\c",
			"name=a host=a.example:1 header=k from=file:/a\\ b\\\\c", NULL },
		{ "name=a host=a.example:1 header=k from=file:/x=y",
			"name=a host=a.example:1 header=k from=file:/x=y", NULL },
		{ "", NULL, "a secret needs name, host, header and from; 'name' is missing" },
		{ "name=a host=a.example:1 header=k", NULL,
			"a secret needs name, host, header and from; 'from' is missing" },
		{ "name=a name=b", NULL, "'name' stands twice in a secret" },
		{ "key=a", NULL,
			"'key' is not a part of a secret: name, host, header, scheme, from, ca" },
		{ "a", NULL, "a secret is written as name=… host=… header=… from=…, or as a map" },
		{ "name=a host=*.a.example:1 header=k from=env:K", NULL,
			"'*.a.example:1': a secret is for one host, by its name" },
		{ "name=a host=[::2]:1 header=k from=env:K", NULL,
			"'[::2]:1': a secret is for one host, by its name" },
		{ "name=a host=a.example:1/tls header=k from=env:K", NULL,
			"'a.example:1/tls': write HOST:PORT; what is spoken there is TLS" },
		{ "name=a host=bawn-host:1 header=k from=env:K", NULL, NULL },
		{ "name=a host=a.example:1 header=Host from=env:K", NULL,
			"the header 'host' is written by bawn itself: name another" },
		{ "name=a host=a.example:1 header=k: from=env:K", NULL,
			"'k:' is not the name of a header: write letters, digits and -, at most 64" },
		{ "name=a host=a.example:1 header=k scheme=a\\ b from=env:K", NULL,
			"'a b' is not a scheme: write one word, such as Bearer" },
		{ "name=a host=a.example:1 header=k scheme= from=env:K", NULL,
			"'' is not a scheme: write one word, such as Bearer" },
		/* Who writes the key itself there does not find it in a message. */
		{ "name=a host=a.example:1 header=k from=sk-ant-1", NULL,
			"'from' says where the key is kept, env:NAME or file:PATH, and is never the "
			"key itself" },
		{ "name=a host=a.example:1 header=k from=file:k", NULL,
			"path 'k' must start with / or ~" },
		{ "name=a host=a.example:1 header=k from=file:/a\nb", NULL,
			"a path has a control character" },
		{ "name=a host=a.example:1 header=k from=env:1", NULL,
			"'1' is not the name of a variable" },
	};

	CHECK_ROWS(SPEC_GRAMMAR_SECRET, rows);
}

/* Every kind of field that says where a request goes or ends is bawn's own. */
static void test_headers(void)
{
	static const char *const own[] = { "Host", "content-length", "Transfer-Encoding",
		"connection", "keep-alive", "TE", "trailer", "upgrade", "expect", "accept-encoding",
		"proxy-x" };

	for (size_t i = 0; i < COUNT_OF(own); i++) {
		const char *text = arena_printf(
			&arena, "name=a host=a.example:1 header=%s from=env:K", own[i]);
		struct spec_item item = { 0 };

		check_that(spec_parse(SPEC_GRAMMAR_SECRET, &arena, text, &item, NULL) < 0, own[i],
			__FILE__, __LINE__);
	}
}

/* What was read is there by its parts. */
static void test_parts(void)
{
	struct spec_item item = { 0 };

	CHECK(spec_parse(SPEC_GRAMMAR_SECRET, &arena,
		      "name=a host=a.example:7 header=K scheme=Bearer from=file:~/k ca=/c", &item,
		      NULL) == 0);
	CHECK_STR(item.secret.name, "a");
	CHECK_STR(item.secret.host, "a.example");
	CHECK(item.secret.port == 7 && item.secret.is_file);
	CHECK_STR(item.secret.header, "k");
	CHECK_STR(item.secret.scheme, "Bearer");
	CHECK_STR(item.secret.source, "~/k");
	CHECK_STR(item.secret.ca, "/c");
	CHECK(spec_parse(SPEC_GRAMMAR_SECRET, &arena, "name=a host=a.example:7 header=k from=env:K",
		      &item, NULL) == 0);
	CHECK(!item.secret.scheme && !item.secret.ca && !item.secret.is_file);
}

int main(void)
{
	arena_init(&arena, 1 << 24);
	test_forms();
	test_headers();
	test_parts();
	arena_done(&arena);
	return check_report();
}
