/*
 * The inspection on recorded texts of /proc: a cage that is as planned passes, and each single
 * value that is changed breaks the guarantees that it belongs to, and no other.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "keeper/inspect/keeper_inspection.h"
#include "keeper/keeper_inside.h"
#include "make_spec.h"
#include "plan/plan.h"

#define ID       2130706433
#define BIT(g)   (1ULL << (g))
#define ID_FAULT BIT(PLAN_IDS_UNPRIVILEGED)

/* As a kernel printed them, cut down to what matters and a little around it. */
static const char *const good[KEEPER_TEXT_COUNT] = {
	[KEEPER_TEXT_STATUS] = "Name:\tbawn\n"
			       "Uid:\t2130706433\t2130706433\t2130706433\t2130706433\n"
			       "Gid:\t2130706433\t2130706433\t2130706433\t2130706433\n"
			       "Groups:\t \n"
			       "CapInh:\t0000000000000000\n"
			       "CapPrm:\t0000000000000000\n"
			       "CapEff:\t0000000000000000\n"
			       "CapBnd:\t0000000000000000\n"
			       "CapAmb:\t0000000000000000\n"
			       "NoNewPrivs:\t1\n"
			       "Seccomp:\t2\n"
			       "Seccomp_filters:\t1\n",
	[KEEPER_TEXT_MOUNTS] = "285 60 0:64 /root / rw,nosuid,nodev,relatime - tmpfs none "
			       "rw,size=1048576k,nr_inodes=132096,mode=755\n",
	[KEEPER_TEXT_UID_MAP] = "      1000 2130706433          1\n",
	[KEEPER_TEXT_GID_MAP] = "      1000 2130706433          1\n",
	[KEEPER_TEXT_STAT] = "77 (bawn) S 70 77 77 0 -1 4194560 35 0\n",
	[KEEPER_TEXT_LIMITS] =
		"Limit                     Soft Limit           Hard Limit      Units\n"
		"Max processes             50                   50         processes\n"
		"Max open files            100                  100            files\n",
	[KEEPER_TEXT_INTERFACES] = "Inter-|   Receive                |  Transmit\n"
				   " face |bytes    packets errs drop|bytes    packets errs\n"
				   "    lo:       0       0    0    0       0       0    0\n",
};

static const char *const host_status = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNoNewPrivs:\t0\n"
				       "Seccomp:\t0\nSeccomp_filters:\t0\n";

static struct plan *plan, *without_network, *with_network;
static struct keeper_inspection look;
static struct keeper keeper;
static struct record record;
static struct cage_start start;
static struct keeper_expected root;
static struct cgroup group;
static char *variables[8];
static char *texts[KEEPER_TEXT_COUNT];

static void set_variable(int i, const char *pair)
{
	variables[i] = arena_copy(&look.arena, pair, strlen(pair));
}

static void copy_good(void)
{
	for (int i = 0; i < KEEPER_TEXT_COUNT; i++)
		texts[i] = arena_copy(&look.arena, good[i], strlen(good[i]));
}

/* Everything as planned, until a test changes it. */
static void make_good(void)
{
	arena_done(&look.arena);
	memset(&look, 0, sizeof(look));
	memset(&keeper, 0, sizeof(keeper));
	memset(&record, 0, sizeof(record));
	arena_init(&look.arena, KEEPER_MAX_VIEW);
	copy_good();
	cgroup_init(&group);
	start = (struct cage_start){ .plan = plan,
		.ids = { .uid = ID, .gid = ID },
		.environment = variables,
		.group = &group };
	set_variable(0, "HOME=/home/agent");
	set_variable(1, "PATH=/bin");
	set_variable(2, "EMPTY=");
	variables[3] = NULL;
	look.start = &start;
	CHECK(keeper_snapshot_parse_status(&look.host, host_status) == 0);
	for (int i = 0; i < KEEPER_NS_COUNT; i++) {
		look.host.namespaces[i] = 100 + (uint64_t)i;
		look.cage.namespaces[i] = 200 + (uint64_t)i;
	}
	look.cage.descriptor_count = 6;
	root = (struct keeper_expected){ .place = "/",
		.type = "tmpfs",
		.root = "/root",
		.flags = PLAN_NO_DEV,
		.kind = PLAN_TMPFS,
		.is_pool = true };
	look.mounts = (struct keeper_mounts){ .expected = &root, .count = 1, .max = 1 };
	keeper.process.pid = 77;
	keeper.terminal.far = -1;
	keeper.is_landlocked = true;
}

/* The same for a command that joins the cage of its session. */
static struct keeper_joined *make_joined(void)
{
	static struct keeper_joined joined;
	struct keeper_snapshot seen = { 0 };

	make_good();
	keeper_joined_init(&joined);
	CHECK(keeper_snapshot_parse_mounts(&seen, texts[KEEPER_TEXT_MOUNTS], &look.arena) == 0);
	keeper_join_digest_mounts(&seen, joined.mounts);
	copy_good();
	memcpy(joined.inodes, look.cage.namespaces, sizeof(joined.inodes));
	look.cage.descriptor_count = 4;
	look.joined = &joined;
	return &joined;
}

/* The guarantees that do not hold, as bits, but for limits that a cgroup would hold: here is none.
 */
static uint64_t inspect(struct err *e)
{
	uint64_t broken = 0;

	CHECK(keeper_snapshot_parse(&look.cage, texts, &look.arena) == 0);
	CHECK((keeper_inspection_compare(&look, &keeper, &record, e) < 0) ==
		(e->kind == ERR_REFUSED));
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct record_observation *o = &record.observations[g];

		if (o->vantage != RECORD_UNSEEN && !o->holds &&
			!str_starts(o->seen, "there is no cgroup"))
			broken |= BIT(g);
	}
	return broken;
}

/* Exactly these guarantees do not hold, and one of them says why. Where one must, it is refused. */
static void expect_at(uint64_t wanted, const char *part, const char *what, int line)
{
	struct err e = { 0 };
	uint64_t broken = inspect(&e);
	bool is_said = !wanted, is_refused = false;

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		if (!(broken & BIT(g)))
			continue;
		if (!(wanted & BIT(g)))
			printf("%s: %s\n", plan_guarantee_defs[g].name,
				record.observations[g].seen);
		is_said |= strstr(record.observations[g].seen, part) != NULL;
		is_refused |= plan_promises(plan)[g].need == PLAN_MUST;
	}
	check_that(broken == wanted, what, __FILE__, line);
	check_that(is_said, part, __FILE__, line);
	check_that((e.kind == ERR_REFUSED) == is_refused, what, __FILE__, line);
}

#define EXPECT(wanted, part, what) expect_at((wanted), (part), (what), __LINE__)

/* Puts another value in the place of one that is there once. */
static void change(enum keeper_text text, const char *from, const char *to)
{
	const char *at = strstr(texts[text], from);

	check_that(at && !strstr(at + 1, from), from, __FILE__, __LINE__);
	texts[text] = arena_printf(&look.arena, "%.*s%s%s", (int)(at - texts[text]), texts[text],
		to, at + strlen(from));
}

/* --- status --- */

static const struct change {
	enum keeper_text text;
	const char *from, *to, *fault;
	uint64_t broken;
} changes[] = {
	{ KEEPER_TEXT_STATUS, "Inh:\t0", "Inh:\t1", "inheritable capabilities", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Prm:\t0", "Prm:\t1", "permitted capabilities", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Eff:\t0", "Eff:\t1", "effective capabilities", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Bnd:\t0", "Bnd:\t1", "bounding capabilities", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Amb:\t0", "Amb:\t1", "ambient capabilities", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "NoNewPrivs:\t1", "NoNewPrivs:\t0", "no_new_privs", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Uid:\t2130706433", "Uid:\t0", "outside it is user 0", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Gid:\t2130706433", "Gid:\t0", "and group 0", ID_FAULT },
	{ KEEPER_TEXT_STATUS, "Groups:\t", "Groups:\t4", "1 supplementary", BIT(PLAN_GROUPS) },
	{ KEEPER_TEXT_STATUS, "Seccomp:\t2", "Seccomp:\t1", "mode 1", BIT(PLAN_SYSTEM_CALLS) },
	{ KEEPER_TEXT_STATUS, "Seccomp:\t2", "Seccomp:\t0", "mode 0", BIT(PLAN_SYSTEM_CALLS) },
	{ KEEPER_TEXT_STATUS, "filters:\t1", "filters:\t0", "0 filters", BIT(PLAN_SYSTEM_CALLS) },
	{ KEEPER_TEXT_STATUS, "filters:\t1", "filters:\t2", "2 filters", BIT(PLAN_SYSTEM_CALLS) },
	{ KEEPER_TEXT_UID_MAP, "1000 ", "1001 ", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_UID_MAP, "2130706433", "2130706434", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_UID_MAP, " 1\n", " 2\n", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_UID_MAP, " 1\n", " 1\n 0 0 1\n", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_GID_MAP, "1000 ", "1001 ", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_GID_MAP, "2130706433", "2130706434", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_GID_MAP, " 1\n", " 2\n", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_GID_MAP, " 1\n", " 1\n 0 0 1\n", "its id maps", ID_FAULT },
	{ KEEPER_TEXT_STAT, " 77 77 0 ", " 77 70 0 ", "operator's session", BIT(PLAN_TTY) },
	{ KEEPER_TEXT_STAT, " 77 77 0 ", " 77 77 34816 ", "operator's session", BIT(PLAN_TTY) },
	{ KEEPER_TEXT_STAT, " 77 77 0 ", " 70 77 0 ", "", 0 },
	{ KEEPER_TEXT_STAT, "(bawn)", "(x) S 70 77 1 1)", "", 0 },
	{ KEEPER_TEXT_LIMITS, "files            100", "files            101", "the limit is 101",
		BIT(PLAN_LIMITS_FILES) },
	{ KEEPER_TEXT_LIMITS, "files            100", "files            99", "", 0 },
	{ KEEPER_TEXT_LIMITS, "files            100", "files            unlimited", "the limit is",
		BIT(PLAN_LIMITS_FILES) },
	{ KEEPER_TEXT_LIMITS, "processes             50", "processes             51",
		"the limit is 51", BIT(PLAN_LIMITS_PIDS) },
	{ KEEPER_TEXT_LIMITS, "processes             50", "processes             49", "", 0 },
	{ KEEPER_TEXT_INTERFACES, "    lo:", "  eth0: 0\n    lo:", "interfaces are eth0 lo",
		BIT(PLAN_NET_NONE) },
	{ KEEPER_TEXT_INTERFACES, "    lo:", "   lo1:", "interfaces are lo1", BIT(PLAN_NET_NONE) },
	{ KEEPER_TEXT_INTERFACES, "    lo:", "    lo: 0\n     l:", "interfaces are lo l",
		BIT(PLAN_NET_NONE) },
	{ KEEPER_TEXT_INTERFACES, "    lo:", "    lo: 0\n tunl1:", "interfaces are lo tunl1",
		BIT(PLAN_NET_NONE) },
	{ KEEPER_TEXT_INTERFACES, "    lo:", "  sit0:", "interfaces are sit0", BIT(PLAN_NET_NONE) },
	{ KEEPER_TEXT_INTERFACES, "    lo:", "  sit0: 0\n tunl0: 0\n    lo:", "", 0 },
	{ KEEPER_TEXT_MOUNTS, "size=1048576k", "size=1048577k", "has rw,size=1048577k",
		BIT(PLAN_LIMITS_DISK) },
	{ KEEPER_TEXT_MOUNTS, "size=1048576k,", "", "file system has", BIT(PLAN_LIMITS_DISK) },
	{ KEEPER_TEXT_MOUNTS, "nr_inodes=132096", "nr_inodes=1320960", "file system has",
		BIT(PLAN_LIMITS_DISK) },
};

static void test_single_changes(void)
{
	make_good();
	EXPECT(0, "", "a cage as planned");
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		const struct change *c = &changes[i];

		make_good();
		change(c->text, c->from, c->to);
		EXPECT(c->broken, c->fault, arena_printf(&look.arena, "'%s'", c->to));
	}
}

/* Each of the four ids of a process decides, and the root's is never a cage's. */
static void test_ids(void)
{
	static const char *const names[] = { "Uid:", "Gid:" };

	for (int i = 0; i < 8; i++) {
		char line[64];
		size_t n;

		make_good();
		n = (size_t)snprintf(line, sizeof(line), "%s", names[i / 4]);
		for (int j = 0; j < 4; j++)
			n += (size_t)snprintf(
				line + n, sizeof(line) - n, "\t%d", j == i % 4 ? ID + 1 : ID);
		change(KEEPER_TEXT_STATUS,
			i < 4 ? "Uid:\t2130706433\t2130706433\t2130706433\t2130706433"
			      : "Gid:\t2130706433\t2130706433\t2130706433\t2130706433",
			line);
		EXPECT(ID_FAULT, "outside it is", line);
	}
	make_good();
	start.ids.uid = 0;
	change(KEEPER_TEXT_STATUS, "Uid:\t2130706433\t2130706433\t2130706433\t2130706433",
		"Uid:\t0\t0\t0\t0");
	change(KEEPER_TEXT_UID_MAP, "2130706433", "0");
	EXPECT(ID_FAULT, "outside it is user 0", "a cage of root's own id");
	make_good();
	start.ids.gid = 0;
	change(KEEPER_TEXT_STATUS, "Gid:\t2130706433\t2130706433\t2130706433\t2130706433",
		"Gid:\t0\t0\t0\t0");
	change(KEEPER_TEXT_GID_MAP, "2130706433", "0");
	EXPECT(BIT(PLAN_GROUPS), "root's", "a cage of root's own group");
}

/* Below the filter of an outer sandbox a process has mode 2 without one of its own. */
static void test_outer_filter(void)
{
	static const struct {
		const char *count;
		uint64_t broken;
	} rows[] = { { "filters:\t1", BIT(PLAN_SYSTEM_CALLS) }, { "filters:\t2", 0 },
		{ "filters:\t3", BIT(PLAN_SYSTEM_CALLS) } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		make_good();
		look.host.seccomp = 2;
		look.host.filter_count = 1;
		change(KEEPER_TEXT_STATUS, "filters:\t1", rows[i].count);
		EXPECT(rows[i].broken, "seccomp mode 2", rows[i].count);
	}
}

/* --- what is no text --- */

static void test_namespaces(void)
{
	static const uint64_t broken[KEEPER_NS_COUNT] = {
		[KEEPER_NS_USER] = ID_FAULT,
		[KEEPER_NS_MOUNT] = BIT(PLAN_FS_ROOT) | BIT(PLAN_FS_READS) | BIT(PLAN_FS_WRITES) |
				    BIT(PLAN_HOME) | BIT(PLAN_DEV),
		[KEEPER_NS_PID] = BIT(PLAN_PROCESSES),
		[KEEPER_NS_NET] = BIT(PLAN_NET_NONE),
		[KEEPER_NS_IPC] = BIT(PLAN_IPC),
		[KEEPER_NS_UTS] = BIT(PLAN_UTS),
		[KEEPER_NS_CGROUP] = BIT(PLAN_CGROUP),
	};

	for (int i = 0; i < KEEPER_NS_COUNT; i++) {
		make_good();
		look.cage.namespaces[i] = look.host.namespaces[i];
		EXPECT(broken[i], "namespace is", keeper_namespace_names[i]);
		make_joined();
		look.cage.namespaces[i]++;
		EXPECT(broken[i], "namespace is not the", keeper_namespace_names[i]);
	}
}

static void test_joined(void)
{
	make_joined();
	EXPECT(0, "", "a command in the cage of its session");
	make_joined();
	look.cage.descriptor_count++;
	EXPECT(BIT(PLAN_TTY), "5 descriptors, not 4", "one descriptor more");
}

/* What a mount of a cage that stands has now, and had not. */
static void test_joined_mounts(void)
{
	static const uint64_t broken = BIT(PLAN_FS_ROOT) | BIT(PLAN_FS_READS) |
				       BIT(PLAN_FS_WRITES) | BIT(PLAN_FS_PROJECT) | BIT(PLAN_HOME) |
				       BIT(PLAN_DEV) | BIT(PLAN_LIMITS_DISK);
	static const struct {
		const char *from, *to;
		bool is_fine;
	} rows[] = { { "285 60", "286 60" }, { "0:64", "0:65" }, { "nodev,", "" },
		{ "- tmpfs", "- ramfs" }, { "size=1048576k", "size=2097152k" },
		{ "mode=755\n", "mode=755\n286 285 8:1 /srv /mnt rw - ext4 /dev/x rw\n" },
		{ "/root / ", "/root2 / ", true } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		make_joined();
		change(KEEPER_TEXT_MOUNTS, rows[i].from, rows[i].to);
		EXPECT(rows[i].is_fine ? 0 : broken, "not those that the cage began with",
			rows[i].to);
	}
}

static void test_descriptors(void)
{
	make_good();
	look.cage.descriptor_count = 7;
	EXPECT(BIT(PLAN_TTY), "7 descriptors, not 6", "one descriptor more");
	make_good();
	look.cage.descriptor_count = 5;
	EXPECT(BIT(PLAN_TTY), "5 descriptors, not 6", "one descriptor less");
}

/* The one terminal that a cage may have is its own, by device and number. */
static void test_terminals(void)
{
	own_fd int far = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat own;

	CHECK(far >= 0 && fstat(far, &own) == 0);
	for (int i = 0; i < 7; i++) {
		make_good();
		keeper.terminal.far = far;
		texts[KEEPER_TEXT_STAT] =
			arena_printf(&look.arena, "77 (bawn) S 70 77 77 %llu -1\n",
				(unsigned long long)own.st_rdev + (i == 3));
		look.cage.terminal_count = i == 4   ? KEEPER_MAX_TERMINALS + 1
					   : i == 6 ? KEEPER_MAX_TERMINALS
						    : 1;
		for (int j = 0; j < KEEPER_MAX_TERMINALS; j++) {
			snprintf(look.cage.terminals[j].name, sizeof(look.cage.terminals[j].name),
				"/dev/pts/9");
			look.cage.terminals[j].device = own.st_dev + (i == 1);
			look.cage.terminals[j].number = own.st_rdev + (i == 2);
		}
		if (i == 5)
			keeper.terminal.far = -1;
		EXPECT(i == 0 || i == 6 ? 0 : BIT(PLAN_TTY),
			i == 3   ? "operator's session"
			: i == 4 ? "more terminals than streams"
				 : "it holds /dev/pts/9",
			"a terminal");
	}
}

static void test_environment(void)
{
	static const struct {
		const char *pair;
		bool is_planned;
	} rows[] = { { "HOMEX=1" }, { "HOM=1" }, { "HOME", true }, { "HOME=", true }, { "home=/x" },
		{ "XHOME=/x" }, { "=HOME" }, { "" }, { "PASSED=1", true }, { "PASSE=1" },
		{ "PASSED_=1" } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		make_good();
		set_variable(1, rows[i].pair);
		EXPECT(rows[i].is_planned ? 0 : BIT(PLAN_ENVIRONMENT), "is not planned",
			rows[i].pair);
	}
	make_good();
	set_variable(3, "LAST=1");
	variables[4] = NULL;
	EXPECT(BIT(PLAN_ENVIRONMENT), "LAST is not planned", "one variable more");
}

/* Whatever is promised is seen, by somebody. */
static void test_all_are_seen(void)
{
	struct err e = { 0 };

	make_good();
	CHECK(inspect(&e) == 0);
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		check_that((record.observations[g].vantage != RECORD_UNSEEN) ==
				   (plan_promises(plan)[g].need != PLAN_NONE),
			plan_guarantee_defs[g].name, __FILE__, __LINE__);
	CHECK(record.observations[PLAN_LIMITS_TIME].vantage == RECORD_KEEPER);
	CHECK(record.observations[PLAN_LIMITS_OUTPUT].vantage == RECORD_KEEPER);
	CHECK(record.observations[PLAN_LANDLOCKED].vantage == RECORD_INSIDE);
}

/* With rules for the network there is a gate, of the cage or of its session's. */
static void test_allowlist(void)
{
	plan = with_network;
	make_good();
	keeper.gate.channel = -1;
	EXPECT(BIT(PLAN_NET_ALLOWLIST), "there is no gate", "no gate");
	make_good();
	keeper.gate.channel = -1;
	look.cage.namespaces[KEEPER_NS_NET] = look.host.namespaces[KEEPER_NS_NET];
	EXPECT(BIT(PLAN_NET_ALLOWLIST), "the network namespace is the host's",
		"the host's network");
	make_joined();
	keeper.gate.channel = -1;
	EXPECT(0, "", "the session's gate");
	plan = without_network;
}

static void test_landlock(void)
{
	make_good();
	keeper.is_landlocked = false;
	EXPECT(BIT(PLAN_LANDLOCKED), "did not enter", "no domain");
}

static struct plan *build(const char *file)
{
	struct plan *p = NULL;
	struct err e = { 0 };
	struct host host;
	struct spec spec;

	fake_host_init(&host);
	fake_host_lose(&host, HOST_CGROUP_PIDS);
	CHECK(make_spec(&spec, file) && plan_build(&spec, &host, &p, NULL, &e) == 0);
	CHECK_STR(e.text, "");
	spec_done(&spec);
	return p;
}

#define SPEC                                                                                       \
	"version: 1\nlimits: {files: 100, pids: 50, disk: 1G, time: 5s, output: 1M}\n"             \
	"env: {set: {EMPTY: ''}, pass: [PASSED]}\n"

int main(void)
{
	plan = without_network = build(SPEC);
	with_network = build(SPEC "network: {mode: allowlist, allow: ['example.com:443']}\n");
	if (!plan || !with_network)
		return check_report();
	test_single_changes();
	test_ids();
	test_outer_filter();
	test_namespaces();
	test_joined();
	test_joined_mounts();
	test_descriptors();
	test_terminals();
	test_environment();
	test_all_are_seen();
	test_allowlist();
	test_landlock();
	arena_done(&look.arena);
	free(without_network);
	free(with_network);
	return check_report();
}
