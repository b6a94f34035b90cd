/* Settings by the environment: what they are, what they yield to, and what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "cli/cli.h"

static const struct cli_option own_options[] = {
	{ "ttl", 0, "DURATION", SPEC_SESSION_TTL, NULL, "as of session create" },
	{ 0 },
};
static const struct cli_command command = {
	.name = "create", .usage = "", .options = own_options, .takes_spec = true
};
static char place[] = "/tmp/bawn-settings-XXXXXX";
static char said[4096]; /* on standard error, by the last load() */

static void forget(void)
{
	for (const struct cli_setting *x = cli_settings; x->option.name; x++)
		unsetenv(x->option.name);
}

static void write_policy(const char *text)
{
	own_fd int fd = -1;

	CHECK(mkdir("../home/bawn", 0700) == 0 || errno == EEXIST);
	fd = open("../home/bawn/policy.yaml", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(file_write_all(fd, text, strlen(text)) == 0);
}

/* Loads a spec as a command does that reads the settings; or not, with `reads` unset. */
static int load_as(struct spec *s, bool reads, const char *const *words)
{
	own_fd int into = memfd_create("said", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	struct run_place where;
	char *argv[16] = { 0 };
	int argc = 0, status;
	static struct cli cli; /* the spec borrows from it */
	ssize_t n;

	while (words[argc])
		argc++;
	memcpy(argv, words, (size_t)argc * sizeof(*argv));
	CHECK(into >= 0 && before >= 0 && dup2(into, STDERR_FILENO) >= 0);
	spec_init(s);
	cli_done(&cli);
	status = cli_parse(&cli, &command, argc, argv);
	if (status == CLI_OK && reads)
		status = cli_add_settings(&cli);
	if (status == CLI_OK) {
		spec_done(s);
		status = cli_load_spec(&cli, s, &where);
		cli_print_diags(&cli, s);
	}
	dup2(before, STDERR_FILENO);
	n = pread(into, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	return status;
}

static int load(struct spec *s, const char *const *words)
{
	return load_as(s, true, words);
}

#define ARGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void set_all(void)
{
	setenv("BAWN_SANDBOX_MODE", "bwrap", 1);
	setenv("BAWN_SANDBOX_ROOT", "/srv/bawn", 1);
	setenv("BAWN_SANDBOX_TTL_SECONDS", "90", 1);
	setenv("BAWN_SANDBOX_NETWORK", "allowlist", 1);
	setenv("BAWN_SANDBOX_CPU_LIMIT", "1.5", 1);
	setenv("BAWN_SANDBOX_MEMORY_LIMIT_MB", "300", 1);
}

static void check_all(const struct spec *s)
{
	CHECK_STR(spec_keys[SPEC_ENGINE].choices[spec_choice(s, SPEC_ENGINE)], "bwrap");
	CHECK(spec_number(s, SPEC_SESSION_TTL) == 90000);
	CHECK(spec_choice(s, SPEC_NETWORK_MODE) == SPEC_NET_ALLOWLIST);
	CHECK(spec_number(s, SPEC_LIMITS_CPU) == 1500);
	CHECK(spec_number(s, SPEC_LIMITS_MEMORY) == (uint64_t)300 << 20);
}

static void test_values(void)
{
	struct spec s;

	set_all();
	CHECK(load(&s, ARGS()) == CLI_OK);
	check_all(&s);
	spec_done(&s);
	/* Nothing of it reaches a command that does not ask. */
	CHECK(load_as(&s, false, ARGS()) == CLI_OK);
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		CHECK(!spec_is_declared(&s, k));
	spec_done(&s);
	forget();
	CHECK(load(&s, ARGS()) == CLI_OK);
	CHECK(!spec_is_declared(&s, SPEC_ENGINE));
	spec_done(&s);
}

/* With an option beside each, as many as there are options at all. */
static void test_options_win(void)
{
	struct spec s;

	set_all();
	CHECK(load(&s, ARGS("--engine=native", "--ttl", "5m", "--network", "none", "--cpus", "2",
			       "-m", "1G", "--", "true")) == CLI_OK);
	CHECK_STR(spec_keys[SPEC_ENGINE].choices[spec_choice(&s, SPEC_ENGINE)], "native");
	CHECK(spec_number(&s, SPEC_SESSION_TTL) == 300000);
	CHECK(spec_choice(&s, SPEC_NETWORK_MODE) == SPEC_NET_NONE);
	CHECK(spec_number(&s, SPEC_LIMITS_CPU) == 2000);
	CHECK(spec_number(&s, SPEC_LIMITS_MEMORY) == (uint64_t)1 << 30);
	spec_done(&s);
	/* Some of them. */
	CHECK(load(&s, ARGS("--pids-limit", "7")) == CLI_OK);
	check_all(&s);
	CHECK(spec_number(&s, SPEC_LIMITS_PIDS) == 7);
	spec_done(&s);
	setenv("BAWN_SANDBOX_NETWORK", "host", 1);
	CHECK(load(&s, ARGS("--allow", "a.example:443")) == CLI_OK);
	CHECK(spec_choice(&s, SPEC_NETWORK_MODE) == SPEC_NET_ALLOWLIST);
	spec_done(&s);
	forget();
}

static void test_empty(void)
{
	struct spec s;

	for (const struct cli_setting *x = cli_settings; x->option.name; x++)
		setenv(x->option.name, "", 1);
	CHECK(load(&s, ARGS()) == CLI_OK);
	CHECK(!spec_is_declared(&s, SPEC_ENGINE) && !spec_is_declared(&s, SPEC_LIMITS_CPU));
	spec_done(&s);
	forget();
}

/* One sentence, and at most one hint. */
static bool is_one_error(const char *text)
{
	const char *hint = strchr(text, '\n');
	const char *last = hint ? strrchr(text, '\n') : NULL;

	return str_starts(text, "bawn: ") && last && last[1] == '\0' &&
	       (last == hint || (str_starts(hint + 1, "hint: ") && strchr(hint + 1, '\n') == last));
}

static void test_refused(void)
{
	static const struct {
		const char *name, *value, *says;
	} rows[] = {
		{ "MODE", "chroot",
			"BAWN_SANDBOX_MODE: engine: 'chroot' is not auto, native, bwrap, container, "
			"microvm, landlock or logical" },
		{ "MODE", "native,bwrap", "BAWN_SANDBOX_MODE: engine: 'native,bwrap' is not" },
		{ "TTL_SECONDS", "1h",
			"BAWN_SANDBOX_TTL_SECONDS: '1h' is not a whole number of seconds\n" },
		{ "TTL_SECONDS", "-1", "'-1' is not a whole number of seconds\n" },
		{ "TTL_SECONDS", "1.5", "'1.5' is not a whole number of seconds\n" },
		{ "TTL_SECONDS", " 5", "' 5' is not a whole number of seconds\n" },
		{ "TTL_SECONDS", "0", "BAWN_SANDBOX_TTL_SECONDS: session.ttl: '0s' would let" },
		{ "TTL_SECONDS", "99999999999999999999999", "BAWN_SANDBOX_TTL_SECONDS: session" },
		{ "NETWORK", "yes", "BAWN_SANDBOX_NETWORK: network.mode: 'yes' is not none" },
		{ "NETWORK", "\033[2J", "BAWN_SANDBOX_NETWORK: network.mode: '\\x1b[2J' is not" },
		{ "CPU_LIMIT", "1.5555",
			"BAWN_SANDBOX_CPU_LIMIT: limits.cpu: number of processors '1.5555' has" },
		{ "CPU_LIMIT", "all", "BAWN_SANDBOX_CPU_LIMIT: limits.cpu: 'all'" },
		{ "MEMORY_LIMIT_MB", "2G",
			"BAWN_SANDBOX_MEMORY_LIMIT_MB: '2G' is not a whole number of megabytes\n" },
		{ "MEMORY_LIMIT_MB", "17592186044416", "BAWN_SANDBOX_MEMORY_LIMIT_MB: limits." },
		{ "NETWROK", "none",
			"cannot use BAWN_SANDBOX_NETWROK: there is no such setting\nhint: did you mean BAWN_SANDBOX_NETWORK?" },
		{ "MOD", "native", "cannot use BAWN_SANDBOX_MOD: there is no such setting" },
		{ "", "x", "cannot use BAWN_SANDBOX_: there is no such setting" },
	};
	struct spec s;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char name[64];

		snprintf(name, sizeof(name), "BAWN_SANDBOX_%s", rows[i].name);
		setenv(name, rows[i].value, 1);
		CHECK(load(&s, ARGS()) == CLI_MISUSE);
		if (!is_one_error(said) || !strstr(said, rows[i].says))
			CHECK_STR(said, rows[i].says);
		spec_done(&s);
		/* Also where an option says otherwise: what is wrong is not left out. */
		CHECK(load(&s, ARGS("--network", "none", "--engine", "native")) == CLI_MISUSE);
		spec_done(&s);
		unsetenv(name);
	}
}

static void test_policies_hold(void)
{
	struct spec s;

	setenv("BAWN_SANDBOX_MODE", "logical", 1);
	CHECK(load(&s, ARGS()) == CLI_OK);
	spec_done(&s);
	write_policy("version: 1\nenvironment: prod\n");
	CHECK(load(&s, ARGS()) == CLI_NO);
	if (!str_starts(said, "BAWN_SANDBOX_MODE: error: "))
		CHECK_STR(said, "BAWN_SANDBOX_MODE: error: ");
	spec_done(&s);
	unlink("../home/bawn/policy.yaml");
	forget();
}

int main(void)
{
	char home[64];

	forget();
	umask(022);
	CHECK(mkdtemp(place) && chdir(place) == 0);
	CHECK(mkdir("home", 0700) == 0 && mkdir("project", 0700) == 0 && chdir("project") == 0);
	snprintf(home, sizeof(home), "%s/home", place);
	setenv("HOME", home, 1);
	setenv("XDG_CONFIG_HOME", home, 1);
	setenv("XDG_STATE_HOME", home, 1);
	test_values();
	test_options_win();
	test_empty();
	test_refused();
	test_policies_hold();
	CHECK(rmdir("../home/bawn") == 0 && rmdir("../home") == 0 && chdir(place) == 0);
	CHECK(rmdir("project") == 0 && rmdir(place) == 0);
	return check_report();
}
