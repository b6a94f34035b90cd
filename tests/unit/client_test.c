/* What clients print, and the hosts in it. */
#include "client/client.h"

#include "base/count.h"
#include "check.h"

static struct arena arena;

static const struct {
	const char *text, *host; /* NULL: nothing of the network */
} addresses[] = {
	{ "https://reg.example.org/", "reg.example.org:443/tls" },
	{ "https://reg.example.org", "reg.example.org:443/tls" },
	{ "HTTPS://reg.example.org/a/b?c#d", "reg.example.org:443/tls" },
	{ "https://reg.example.org:8443/a", "reg.example.org:8443/tls" },
	{ "https://reg.example.org:/a", "reg.example.org:443/tls" },
	{ "http://reg.example.org:4873", "reg.example.org:4873/http" },
	{ "https://me:key@reg.example.org/", "reg.example.org:443/tls" },
	{ "https://me:k@y@reg.example.org/x@evil.example", "reg.example.org:443/tls" },
	{ "https://reg.example.org/https://evil.example/", "reg.example.org:443/tls" },
	{ "https://reg.example.org?@evil.example", "reg.example.org:443/tls" },
	{ "https://[2001:db8::1]/", "[2001:db8::1]:443/tls" },
	{ "https://[2001:db8::1]:8443/", "[2001:db8::1]:8443/tls" },
	{ "sparse+https://index.example.org/", "index.example.org:443/tls" },
	{ "mirror+http://deb.example.org/x", "deb.example.org:80/http" },
	{ "ssh://git@git.example.org/x.git", "git.example.org:22/tcp" },
	{ "ssh://git@git.example.org:2222/x.git", "git.example.org:2222/tcp" },
	{ "git@git.example.org:me/x.git", "git.example.org:22/tcp" },
	{ "git://git.example.org/x.git", "git.example.org:9418/tcp" },
	{ "file:///srv/x.git", NULL },
	{ "/srv/x.git", NULL },
	{ "../x@y:z", NULL },
	{ "https://", NULL },
	{ "https:///x", NULL },
	{ "https://:443/", NULL },
	{ "https://me@", NULL },
	{ "", NULL },
};

static void test_addresses(void)
{
	for (size_t i = 0; i < COUNT_OF(addresses); i++) {
		const char *text = addresses[i].text, *host = NULL;

		client_read_address(&arena, text, strlen(text), &host);
		if (addresses[i].host)
			CHECK_STR(host, addresses[i].host);
		else
			CHECK(!host);
	}
}

static const struct client_def *def_of(const char *name)
{
	const struct client_def *c = client_defs;

	while (strcmp(c->name, name) != 0)
		c++;
	return c;
}

/* The hosts, then what the client in the cage is told, of one answer to each question. */
static const char *read_all(const char *name, const char *first, const char *second)
{
	static char all[1024];
	const char *const answers[] = { first, second };
	struct client_found found = { 0 };

	for (size_t i = 0; i < 2; i++)
		if (answers[i])
			CHECK(client_read(&arena, &def_of(name)->questions[i], answers[i], &found));
	all[0] = '\0';
	for (size_t i = 0; i < found.host_count; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", found.hosts[i]);
	for (size_t i = 0; i < found.setting_count; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "| %s=%s ",
			found.settings[i].key,
			found.settings[i].value ? found.settings[i].value : "(kept)");
	return all;
}

static void test_npm(void)
{
	CHECK_STR(read_all("npm",
			  "{\n  \"@mine:registry\": \"https://npm.example.com/\",\n"
			  "  \"https-proxy\": \"http://proxy.example.net:3128\",\n"
			  "  \"omit-lockfile-registry-resolved\": true,\n"
			  "  \"registry\": \"https://reg.example.org/\",\n"
			  "  \"replace-registry-host\": \"https://x.example/\",\n"
			  "  \"user-agent\": \"npm (+https://y.example)\"\n}\n",
			  NULL),
		"npm.example.com:443/tls reg.example.org:443/tls "
		"| @mine:registry=https://npm.example.com/ | registry=https://reg.example.org/ ");
	CHECK_STR(read_all("npm", "  \"registry\": \"https://me:key@reg.example.org/\",\n", NULL),
		"reg.example.org:443/tls | registry=(kept) ");
	CHECK_STR(read_all("npm", "", NULL), "");
}

static void test_pip(void)
{
	const char *own = "https://index.example.org/simple https://files.example.org\n";

	CHECK_STR(read_all("pip",
			  ":env:.cert='/etc/ssl/x'\nglobal.find-links='https://l.example'\n", own),
		"index.example.org:443/tls files.example.org:443/tls ");
	CHECK_STR(read_all("pip", "global.index-url='https://pip.example.com/simple'\n", own),
		"pip.example.com:443/tls | index-url=https://pip.example.com/simple ");
	/* The same index as the default has its files at the same place. */
	CHECK_STR(read_all("pip", "global.index-url='https://index.example.org/simple/'\n", own),
		"index.example.org:443/tls files.example.org:443/tls "
		"| index-url=https://index.example.org/simple/ ");
	/* An extra index comes beside the default. */
	CHECK_STR(read_all("pip",
			  "global.extra-index-url='\\nhttps://a.example/\\nhttp://b.example/'\n",
			  own),
		"a.example:443/tls b.example:80/http index.example.org:443/tls "
		"files.example.org:443/tls | extra-index-url=\n    https://a.example/\n    "
		"http://b.example/ ");
	CHECK_STR(read_all("pip", "global.index-url='https://me:key@pip.example.com/'\n", own),
		"pip.example.com:443/tls | index-url=(kept) ");
}

static void test_others(void)
{
	CHECK_STR(read_all("apt",
			  "http://deb.example.org/debian/\nhttp://deb.example.org/security/\n"
			  "file:/srv/apt/\n",
			  NULL),
		"deb.example.org:80/http ");
	CHECK_STR(read_all("go",
			  "{\n\t\"GOPROXY\": \"https://proxy.example.org,direct\",\n"
			  "\t\"GOSUMDB\": \"sum.example.org\"\n}\n",
			  NULL),
		"proxy.example.org:443/tls sum.example.org:443/tls "
		"| GOPROXY=https://proxy.example.org,direct | GOSUMDB=sum.example.org ");
	CHECK_STR(read_all("go", "\t\"GOPROXY\": \"direct\",\n\t\"GOSUMDB\": \"off\"\n", NULL),
		"| GOPROXY=direct | GOSUMDB=off ");
	CHECK_STR(read_all("cargo",
			  "[http]\nproxy = \"http://proxy.example.net\"\n[source.crates-io]\n"
			  "replace-with = \"mine\"\n[source.mine]\n"
			  "registry = \"sparse+https://crates.example.org/\"\n"
			  "token = \"https://secret.example\"\n[net]\nx = \"https://n.example\"\n",
			  NULL),
		"crates.example.org:443/tls | [source.crates-io]= | replace-with = \"mine\"= "
		"| [source.mine]= | registry = \"sparse+https://crates.example.org/\"= ");
	CHECK_STR(
		read_all("git",
			"[remote \"a\"]\n\turl = https://me@git.example.org/x\n"
			"\tpushurl = git@push.example.org:x\n[branch \"b\"]\n"
			"\turl = https://no.example\n[remote \"c\"]\n\turl = ../other\n"
			"[url \"https://evil.example/\"]\n\tinsteadOf = https://git.example.org/\n",
			NULL),
		"git.example.org:443/tls push.example.org:22/tcp ");
}

/* Everything is listed both where lists are read and where they are answered. */
static void test_names(void)
{
	size_t n = 0;

	for (; client_defs[n].name; n++)
		CHECK_STR(spec_clients[n], client_defs[n].name);
	CHECK(!spec_clients[n]);
}

int main(void)
{
	arena_init(&arena, 1 << 20);
	test_addresses();
	test_npm();
	test_pip();
	test_others();
	test_names();
	arena_done(&arena);
	return check_report();
}
