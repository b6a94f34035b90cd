#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/lines.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "host/host.h"
#include "host/host_probe.h"

#define TEXT_MAX (256 * 1024)

static void print_host(const struct host *h, struct buf *ret)
{
	struct json j;

	buf_init(ret, TEXT_MAX);
	json_init(&j, ret, 2);
	json_open_map(&j, NULL);
	host_print_json(h, &j);
	json_close_map(&j);
	CHECK(!ret->failed);
}

/* Reads a host from text; the first error, or "". Borrowed until the next call. */
static const char *read_host(const char *text, struct host *ret, int *ret_status)
{
	static char said[512];
	struct arena arena;
	static struct diags diags;
	const struct yaml_node *root;

	arena_init(&arena, (size_t)4 * 1024 * 1024);
	diags_init(&diags, &arena);
	root = yaml_read(&arena, &diags, diags_add_source(&diags, "host", text, strlen(text)), text,
		strlen(text));
	*ret_status = root ? host_from_yaml(ret, root, &diags) : -ENOTSUP;
	snprintf(said, sizeof(said), "%s", diags.count ? diags.items[0].text : "");
	arena_done(&arena);
	return said;
}

static bool is_same(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct host)) == 0;
}

static void check_round_trip(const struct host *h)
{
	own(buf) struct buf first = { 0 };
	own(buf) struct buf second = { 0 };
	struct host again;
	int status;

	print_host(h, &first);
	memset(&again, 0xff, sizeof(again));
	CHECK_STR(read_host(buf_text(&first), &again, &status), "");
	CHECK(status == 0);
	CHECK(is_same(h, &again));
	print_host(&again, &second);
	CHECK_STR(buf_text(&second), buf_text(&first));
}

/* A host that has something of everything. */
static void make_host(struct host *ret)
{
	memset(ret, 0, sizeof(*ret));
	strcpy(ret->kernel, "6.1.0-18-amd64");
	strcpy(ret->arch, "x86_64");
	strcpy(ret->container, "docker");
	ret->has_bash = true;
	ret->cgroup_version = 2;
	ret->groups = 3;
	for (int i = 0; i < HOST_ABILITY_COUNT; i++) {
		ret->abilities[i].cause = (enum host_cause)(i % HOST_CAUSE_COUNT);
		ret->abilities[i].num = ret->abilities[i].cause ? i : 0;
	}
	ret->landlock_abi = host_can(ret, HOST_LANDLOCK) ? 4 : 0;
	for (int i = 0; i < HOST_SYSTEM_COUNT; i++)
		ret->system[i].kind = (enum host_path_kind)(i % (HOST_PATH_LINK + 1));
	for (int i = HOST_PATH_LINK; i < HOST_SYSTEM_COUNT; i += HOST_PATH_LINK + 1)
		snprintf(ret->system[i].target, sizeof(ret->system[i].target), "usr/\"l\xc3\xad%d",
			i);
}

static bool is_unique(const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++)
			if (!names[i] || !names[i][0] || str_eq(names[i], names[k]))
				return false;
	return names[0] != NULL;
}

static void test_tables(void)
{
	const char *abilities[HOST_ABILITY_COUNT], *causes[HOST_CAUSE_COUNT];

	for (int i = 0; i < HOST_ABILITY_COUNT; i++) {
		abilities[i] = host_ability_defs[i].name;
		CHECK(host_ability_defs[i].meaning && host_ability_defs[i].meaning[0]);
	}
	for (int i = 0; i < HOST_CAUSE_COUNT; i++) {
		const struct host_cause_def *def = &host_cause_defs[i];

		causes[i] = def->name;
		CHECK(def->because && def->because[0] && !str_ends(def->because, "."));
		CHECK(i == HOST_CAUSE_NONE ? !def->remedy
					   : def->remedy && str_ends(def->remedy, "."));
		/* Nobody is told to switch a protection of the whole system off. */
		CHECK(!def->remedy || !strstr(def->remedy, "userns=0"));
		CHECK(!def->remedy || !strstr(def->remedy, "userns_clone=1"));
	}
	CHECK(is_unique(abilities, HOST_ABILITY_COUNT));
	CHECK(is_unique(causes, HOST_CAUSE_COUNT));
	CHECK(is_unique(host_system_paths, HOST_SYSTEM_COUNT));
}

/* The made host's text with one piece replaced; what is said about it. */
static const char *said_about(const char *piece, const char *instead)
{
	static char text[32 * 1024];
	own(buf) struct buf whole = { 0 };
	const char *found, *said;
	struct host h, untouched;
	int status;

	make_host(&h);
	print_host(&h, &whole);
	found = strstr(buf_text(&whole), piece);
	CHECK(found != NULL);
	if (!found)
		return NULL;
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(found - buf_text(&whole)), buf_text(&whole),
		instead, found + strlen(piece));
	untouched = h;
	said = read_host(text, &h, &status);
	CHECK(status == -EINVAL);
	CHECK(is_same(&h, &untouched));
	return said;
}

static void test_refusals(void)
{
	CHECK_STR(said_about("\"arch\"", "\"march\""), "unknown key 'march'");
	CHECK_STR(said_about("\"groups\": 3,", ""), "the key 'groups' is missing");
	CHECK_STR(said_about("\"ns.pid\"", "\"ns.pit\""), "unknown ability 'ns.pit'");
	CHECK_STR(said_about("\"kvm\": {", "\"kvn\": {"), "unknown ability 'kvn'");
	CHECK_STR(said_about("\"kernel\",", "\"colonel\","), "unknown cause 'colonel'");
	CHECK_STR(said_about("\"cause\": \"kernel\",", "\"cause\": \"none\","),
		"unknown cause 'none'");
	CHECK_STR(said_about("\"cause\": \"kernel\",", ""), "the key 'cause' is missing");
	CHECK_STR(said_about("\"errno\": 1\n", "\"errno\": \"1\"\n"),
		"this must be a number, not text");
	CHECK_STR(said_about("\"can\": false", "\"can\": 0"),
		"this must be true or false, not a number");
	CHECK_STR(said_about("\"can\": false", "\"can\": true"),
		"what it can do has no cause and no errno");
	CHECK_STR(said_about("\"can\"", "\"cannot\""), "unknown key 'cannot'");
	CHECK_STR(said_about("\"/usr\"", "\"/user\""), "unknown system path '/user'");
	CHECK_STR(said_about("\"absent\"", "\"gone\""),
		"'gone' is none of absent, dir, file and link:TARGET");
	CHECK_STR(said_about("\"absent\"", "\"link:\""),
		"'link:' is none of absent, dir, file and link:TARGET");
	CHECK_STR(said_about("\"docker\"", "\"a very long name of a container\""),
		"this is longer than 23 characters");
	CHECK_STR(said_about("\"docker\"", "[]"), "this must be text, not a list");
	CHECK_STR(said_about("\"landlock_abi\": 0", "\"landlock_abi\": 4"),
		"landlock_abi is 0 exactly where the ability 'landlock' is missing");
	CHECK(strstr(said_about("\"cgroup_version\": 2", "\"cgroup_version\": 3"), "3") != NULL);
	CHECK(strstr(said_about("\"groups\": 3", "\"groups\": -1"), "-1") != NULL);
}

static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int count_mounts(void)
{
	own(lines) struct lines l = { .fd = -1 };
	int n = 0;

	lines_open(&l, "/proc/self/mountinfo");
	while (lines_next(&l))
		n++;
	return n;
}

static int probe_dirs;

static int see_dir(const char *path, const struct stat *st, int type, struct FTW *where)
{
	char name[32];

	(void)st, (void)type, (void)where;
	snprintf(name, sizeof(name), "/bawn-probe-%d", getpid());
	probe_dirs += str_ends(path, name);
	return 0;
}

static void test_probe(void)
{
	int open_before = count_open(), mounts_before = count_mounts();
	struct err e = { 0 };
	struct host first, second;

	memset(&first, 0xaa, sizeof(first));
	memset(&second, 0x55, sizeof(second));
	CHECK(host_probe(&first, &e) == 0);
	CHECK(host_probe(&second, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(is_same(&first, &second));
	CHECK(first.kernel[0] && first.arch[0]);
	CHECK(first.is_root == (geteuid() == 0));
	CHECK((first.landlock_abi > 0) == host_can(&first, HOST_LANDLOCK));
	check_round_trip(&first);

	CHECK(count_open() == open_before);
	CHECK(count_mounts() == mounts_before);
	CHECK(waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD);
	nftw("/sys/fs/cgroup", see_dir, 16, FTW_PHYS);
	CHECK(probe_dirs == 0);
}

/* A caller that ignores its children, or has none of the usual descriptors, gets the same facts. */
static void test_probe_in_odd_callers(void)
{
	struct host plain, odd;
	struct err e = { 0 };

	CHECK(host_probe(&plain, &e) == 0);
	signal(SIGCHLD, SIG_IGN);
	setenv("PATH", "/nonexistent", 1);
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("container", "oci", 1);
	CHECK(host_probe(&odd, &e) == 0);
	CHECK(is_same(&plain, &odd));
	signal(SIGCHLD, SIG_DFL);
}

static void test_causes(void)
{
	static const struct {
		struct host_rules rules;
		enum host_ability ability;
		int num;
		enum host_cause cause;
	} cases[] = {
		{ { 0 }, HOST_NS_USER, 0, HOST_CAUSE_NONE },
		{ { 0 }, HOST_NS_USER, ENOSYS, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_NS_USER, EINVAL, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_NS_USER, ENOSPC, HOST_CAUSE_USERNS_MAX },
		{ { 0 }, HOST_NS_NET, ENOSPC, HOST_CAUSE_USERNS_MAX },
		{ { 0 }, HOST_NS_USER, EPERM, HOST_CAUSE_DENIED },
		{ { .userns_off = true }, HOST_NS_USER, EPERM, HOST_CAUSE_USERNS_OFF },
		{ { .fixed_root = true }, HOST_NS_USER, EPERM, HOST_CAUSE_FIXED_ROOT },
		{ { .fixed_root = true }, HOST_MOUNT_API, EINVAL, HOST_CAUSE_FIXED_ROOT },
		{ { .no_proc = true }, HOST_NS_USER, ENOENT, HOST_CAUSE_NO_PROC },
		{ { .apparmor = true }, HOST_NS_USER, EACCES, HOST_CAUSE_APPARMOR },
		{ { .apparmor = true }, HOST_NS_NET, EPERM, HOST_CAUSE_APPARMOR },
		{ { .apparmor = true }, HOST_NS_MOUNT, EACCES, HOST_CAUSE_APPARMOR },
		{ { .apparmor = true, .filter = true }, HOST_NS_USER, EPERM, HOST_CAUSE_FILTER },
		{ { .filter = true }, HOST_NS_USER, ENOSYS, HOST_CAUSE_FILTER },
		{ { .filter = true, .in_container = true }, HOST_NS_USER, EPERM,
			HOST_CAUSE_CONTAINER_FILTER },
		{ { .filter = true, .in_container = true }, HOST_LANDLOCK, ENOSYS,
			HOST_CAUSE_CONTAINER_FILTER },
		{ { .in_container = true }, HOST_NS_MOUNT, EACCES, HOST_CAUSE_CONTAINER_FILTER },
		{ { 0 }, HOST_NS_PID, HOST_UNTRIED, HOST_CAUSE_NEEDS_USERNS },
		{ { 0 }, HOST_OVERLAY, EPERM, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_OVERLAY, ENODEV, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_PROC, EPERM, HOST_CAUSE_CONTAINER_PROC },
		{ { 0 }, HOST_PROC_SUBSET, EINVAL, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_IDMAP, EINVAL, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_IDMAP, EPERM, HOST_CAUSE_NOT_ROOT },
		{ { 0 }, HOST_LANDLOCK, EOPNOTSUPP, HOST_CAUSE_LANDLOCK_OFF },
		{ { 0 }, HOST_USERNS_PIDS, EAGAIN, HOST_CAUSE_KERNEL },
		{ { 0 }, HOST_USERNS_PIDS, EOPNOTSUPP, HOST_CAUSE_KERNEL },
		{ { .weak_root = true }, HOST_NS_USER, EPERM, HOST_CAUSE_WEAK_ROOT },
		{ { .weak_root = true }, HOST_SUBIDS, EPERM, HOST_CAUSE_WEAK_ROOT },
		{ { 0 }, HOST_KVM, ENOENT, HOST_CAUSE_NO_DEVICE },
		{ { 0 }, HOST_KVM, EACCES, HOST_CAUSE_DEVICE_GROUP },
		{ { 0 }, HOST_KVM, EPERM, HOST_CAUSE_DENIED },
		{ { 0 }, HOST_NS_USER, ETIMEDOUT, HOST_CAUSE_DENIED },
	};
	struct host h = { 0 };

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		enum host_cause got =
			host_cause_of(&h, &cases[i].rules, cases[i].ability, cases[i].num);

		CHECK_STR(host_cause_defs[got].name, host_cause_defs[cases[i].cause].name);
	}
	/* Where no mount works at all, a refused overlay says nothing about overlays. */
	host_set(&h, HOST_MOUNT_API, HOST_CAUSE_DENIED, EPERM);
	CHECK(host_cause_of(&h, &cases[0].rules, HOST_OVERLAY, EPERM) == HOST_CAUSE_DENIED);
}

static void test_lines(void)
{
	static const char start[] = "one:two::\n\n", end[] = "\nlast";
	static char text[30000];
	own_fd int fd = memfd_create("lines", MFD_CLOEXEC);
	own(lines) struct lines l = { .fd = -1 };
	char path[64], *line;

	memset(text, 'x', sizeof(text));
	memcpy(text, start, sizeof(start) - 1);
	text[9000] = '\n';
	memcpy(text + sizeof(text) - (sizeof(end) - 1), end, sizeof(end) - 1);
	CHECK(write(fd, text, sizeof(text)) == (ssize_t)sizeof(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(lines_open(&l, path) == 0);
	line = lines_next(&l);
	CHECK_STR(lines_field(&line, ':'), "one");
	CHECK_STR(lines_field(&line, ':'), "two");
	CHECK_STR(lines_field(&line, ':'), "");
	CHECK_STR(lines_field(&line, ':'), "");
	CHECK(!lines_field(&line, ':'));
	CHECK_STR(lines_next(&l), "");
	line = lines_next(&l);
	CHECK(line && strlen(line) >= 8000 && strlen(line) < 8989);
	line = lines_next(&l);
	CHECK(line && strlen(line) == sizeof(l.bytes) - 1);
	CHECK_STR(lines_next(&l), "last");
	CHECK(!lines_next(&l));
	lines_done(&l);
	CHECK(lines_open(&l, "/nonexistent") == -ENOENT);
	CHECK(!lines_next(&l));
}

int main(void)
{
	struct host h;

	test_tables();
	make_host(&h);
	check_round_trip(&h);
	test_refusals();
	test_causes();
	test_lines();
	test_probe();
	test_probe_in_odd_callers();
	return check_report();
}
