/*
 * Which folder of git is believed to be the project's. Each case begins with a linked worktree or a
 * submodule that is right, and changes one thing.
 */
#include "check/check_repository.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/str.h"
#include "check.h"

static char top[] = "/tmp/bawn-unit-XXXXXX";
static struct arena arena;
static struct check_repository seen;
static struct check_project project;

/* In the folder of the test, which is where all paths begin. */
static void run(const char *script)
{
	char command[4096];

	snprintf(command, sizeof(command), "set -e; %s", script);
	if (system(command) != 0) /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
		check_that(0, script, __FILE__, __LINE__);
}

static struct check_own_config own;

/* A repository m.git, or m/.git, with a worktree w; a submodule s of m. */
static void begin(void)
{
	static char path[64];

	run("rm -rf x m w evil; mkdir -p m/.git/worktrees/w m/.git/objects m/.git/refs w evil\n"
	    "echo 'ref: refs/heads/main' | tee m/.git/HEAD >m/.git/worktrees/w/HEAD\n"
	    "echo \"gitdir: $PWD/m/.git/worktrees/w\" >w/.git\n"
	    "echo \"$PWD/w/.git\" >m/.git/worktrees/w/gitdir; echo ../.. >m/.git/worktrees/w/commondir\n"
	    "mkdir -p m/.git/modules/s/objects m/.git/modules/s/refs m/s\n"
	    "cp m/.git/HEAD m/.git/modules/s/; echo 'gitdir: ../.git/modules/s' >m/s/.git\n"
	    "printf '[core]\\n\\tworktree = ../../../s\\n' >m/.git/modules/s/config");
	snprintf(path, sizeof(path), "%s/w", top);
	project = (struct check_project){ .path = path, .at = "/work", .own = &own };
}

static void look(void)
{
	arena_done(&arena);
	arena_init(&arena, 1 << 20);
	own.is_read = false;
	check_repository(&project, &arena, &seen);
}

#define BELIEVED(below)                                                                            \
	do {                                                                                       \
		look();                                                                            \
		CHECK(str_starts(seen.folder, top) && str_eq(seen.folder + strlen(top), below));   \
		CHECK(!seen.why);                                                                  \
	} while (0)

#define DOUBTED(part)                                                                              \
	do {                                                                                       \
		look();                                                                            \
		CHECK_STR(seen.folder, "");                                                        \
		CHECK(seen.why &&strstr(seen.why, part));                                          \
	} while (0)

static void test_worktree(void)
{
	begin();
	BELIEVED("/m/.git");
	project.is_at_own_path = true;
	BELIEVED("/m/.git");
	/* Relative pointers hold only from its own path. */
	run("echo 'gitdir: ../m/.git/worktrees/w' >w/.git; echo ../../../../w/.git "
	    ">m/.git/worktrees/w/gitdir");
	BELIEVED("/m/.git");
	project.is_at_own_path = false;
	DOUBTED("found only from where the project is");
	begin();
	project.at = top;
	DOUBTED("where the cage has the project");
}

static void test_forged_worktree(void)
{
	begin();
	run("rm m/.git/worktrees/w/gitdir");
	DOUBTED("nothing says that this is its working tree");
	begin();
	run("echo \"$PWD/evil/.git\" >m/.git/worktrees/w/gitdir");
	DOUBTED("nothing says");
	begin();
	run("mv m/.git/worktrees/w/gitdir w/x; ln -s ../../../../w/x m/.git/worktrees/w/gitdir");
	DOUBTED("nothing says");
	begin();
	run("echo ../../.. >m/.git/worktrees/w/commondir");
	DOUBTED("nothing says");
	begin();
	run("rm -r m/.git/refs");
	DOUBTED("not a folder of git's");
	begin();
	run("rm -r m/.git/objects; ln -s /etc m/.git/objects");
	DOUBTED("not a folder of git's");
	begin();
	run("rm m/.git/HEAD");
	DOUBTED("not a folder of git's");
	/* HEAD, objects and refs beside other projects: an archive that was unpacked there. */
	begin();
	run("mv m/.git x; echo \"gitdir: $PWD/x/worktrees/w\" >w/.git");
	DOUBTED("not a folder of git's");
	run("mv x x.git; echo \"gitdir: $PWD/x.git/worktrees/w\" >w/.git");
	BELIEVED("/x.git");
	run("rm -r x.git");
}

static void test_pointer(void)
{
	begin();
	run("echo nothing >w/.git");
	DOUBTED("not one of git's");
	run(": >w/.git");
	DOUBTED("not one of git's");
	run("printf 'gitdir: /etc\\0/x\\n' >w/.git");
	DOUBTED("not one of git's");
	run("head -c 5000 /dev/zero | tr '\\0' x >w/.git");
	DOUBTED("not one of git's");
	run("echo 'gitdir: /no/such' >w/.git");
	DOUBTED("cannot be found");
	run("echo 'gitdir: /proc/self/fd' >w/.git");
	DOUBTED("nothing says");
	run("echo 'gitdir: ../m/.git/HEAD' >w/.git");
	DOUBTED("cannot be opened");
	run("rm w/.git; ln -s ../m/.git w/.git");
	DOUBTED("a link out of the project");
	run("rm w/.git; mkfifo w/.git");
	look();
	CHECK(!seen.folder[0] && !seen.why);
	run("rm w/.git");
	look();
	CHECK(!seen.folder[0] && !seen.why);
	/* Inside, there is nothing to show. */
	run("mkdir w/real; echo 'gitdir: real' >w/.git");
	look();
	CHECK(!seen.folder[0] && !seen.why);
	run("echo \"gitdir: $PWD/w/real\" >w/.git");
	DOUBTED("a path of the host");
}

static void test_module(void)
{
	static char path[64];

	begin();
	snprintf(path, sizeof(path), "%s/m/s", top);
	project.path = path;
	DOUBTED("found only from where the project is");
	project.is_at_own_path = true;
	BELIEVED("/m/.git/modules/s");
	run("printf '[core]\\n\\tworktree = ../../../../w\\n' >>m/.git/modules/s/config");
	DOUBTED("nothing says");
	run("printf '[core \"x\"]\\n\\tworktree = ../../../s\\n' >>m/.git/modules/s/config");
	DOUBTED("nothing says");
	/* What --separate-git-dir makes has no way back. */
	run("printf '[core]\\n\\tbare = false\\n' >m/.git/modules/s/config");
	DOUBTED("nothing says");
}

static void test_owner(void)
{
	if (geteuid() != 0)
		return;
	begin();
	run("chown 12345 m/.git/worktrees/w/gitdir");
	DOUBTED("belongs to somebody else");
	begin();
	run("chown 12345 m/.git");
	DOUBTED("belongs to somebody else");
	/* Root's rule: whoever's the project is. */
	run("chown 12345 w");
	BELIEVED("/m/.git");
}

static bool has(const char *const *items, size_t count, const char *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(items[i], wanted))
			return true;
	return false;
}

#define IS_OTHER(path) has(seen.others, seen.other_count, ".git/" path)

static void test_parts(void)
{
	static char path[64];

	/* Other worktrees, but not this one, nor one that is in the project. */
	begin();
	run("cp -r m/.git/worktrees/w m/.git/worktrees/other; echo /elsewhere/.git "
	    ">m/.git/worktrees/other/gitdir; mkdir m/.git/worktrees/broken\n"
	    "mkdir w/in; touch w/in/.git; cp -r m/.git/worktrees/other m/.git/worktrees/in; echo "
	    "\"$PWD/w/in/.git\" >m/.git/worktrees/in/gitdir");
	look();
	CHECK(seen.other_count == 6 && IS_OTHER("worktrees/other") && IS_OTHER("worktrees/broken"));
	CHECK(IS_OTHER("worktrees/in") && IS_OTHER("worktrees/w/gitdir"));
	CHECK(IS_OTHER("worktrees/w/commondir") && IS_OTHER("worktrees/w/config.worktree"));
	project.is_at_own_path = true;
	look();
	CHECK(seen.other_count == 5 && !IS_OTHER("worktrees/in"));
	/* The same of a repository in the project. */
	snprintf(path, sizeof(path), "%s/m", top);
	project.path = path;
	look();
	CHECK(!seen.folder[0] && !seen.why && IS_OTHER("worktrees/w") &&
		!IS_OTHER("worktrees/w/gitdir"));
}

static void test_hooks(void)
{
	begin();
	run("printf '[core]\\n\\thooksPath = ./tools//hooks\\n' >m/.git/config");
	look();
	CHECK(seen.hook_count == 1 && str_eq(seen.hooks[0], "tools/hooks"));
	/* By its name and by where it is. */
	run("mkdir w/real; ln -s real w/hooks; printf '[core]\\n\\thooksPath = hooks\\n' "
	    ">m/.git/worktrees/w/config.worktree");
	look();
	CHECK(seen.hook_count == 3 && has(seen.hooks, 3, "hooks") && has(seen.hooks, 3, "real"));
	run("printf '[core]\\n\\thooksPath = ../elsewhere\\n' >m/.git/config; rm "
	    "m/.git/worktrees/w/config.worktree");
	look();
	CHECK(seen.hook_count == 0);
	run("printf \"[core]\\n\\thooksPath = $PWD/w/mine\\n\" >m/.git/config");
	look();
	CHECK(seen.hook_count == 1 && str_eq(seen.hooks[0], "mine"));
	run("printf \"[core]\\n\\thooksPath = $PWD/m/.git/other-hooks\\n\" >m/.git/config");
	look();
	CHECK(seen.hook_count == 0 && IS_OTHER("other-hooks"));
	/* Whose repository is not believed may still be git's. */
	run("rm m/.git/worktrees/w/gitdir; printf '[core]\\n\\thooksPath = .hooks\\n' >m/.git/config");
	look();
	CHECK(seen.why && seen.hook_count == 1 && str_eq(seen.hooks[0], ".hooks"));
}

/* Folders beside the project, or beside the repository, whose names begin alike. */
static void test_near_misses(void)
{
	static char path[64];

	/* The repository is in w-m, which is not in w. */
	begin();
	run("rm -rf w-m x.git x.git-w; mv m w-m; echo \"gitdir: $PWD/w-m/.git/worktrees/w\" >w/.git");
	BELIEVED("/w-m/.git");
	run("rm w/.git; ln -s ../w-m/.git w/.git");
	DOUBTED("a link out of the project");
	/* The project is in x.git-w, which is not in x.git; and then it is. */
	begin();
	run("rm -rf w-m; mv m/.git x.git; mv w x.git-w\n"
	    "echo \"gitdir: $PWD/x.git/worktrees/w\" >x.git-w/.git\n"
	    "echo \"$PWD/x.git-w/.git\" >x.git/worktrees/w/gitdir");
	snprintf(path, sizeof(path), "%s/x.git-w", top);
	project.path = path;
	BELIEVED("/x.git");
	CHECK(!seen.holds_project);
	run("mv x.git-w x.git/w; echo \"$PWD/x.git/w/.git\" >x.git/worktrees/w/gitdir");
	snprintf(path, sizeof(path), "%s/x.git/w", top);
	project.is_at_own_path = true;
	BELIEVED("/x.git");
	CHECK(seen.holds_project);
	/* A worktree beside the project cannot be found in the cage. */
	begin();
	run("rm -rf x.git; mkdir w-x w/in; touch w-x/.git w/in/.git\n"
	    "for i in w-x w/in; do cp -r m/.git/worktrees/w m/.git/worktrees/${i#w?}\n"
	    "echo \"$PWD/$i/.git\" >m/.git/worktrees/${i#w?}/gitdir; done");
	project.is_at_own_path = true;
	look();
	CHECK(IS_OTHER("worktrees/x") && !IS_OTHER("worktrees/in"));
	/* Hooks beside the project, and beside the repository. */
	run("printf \"[core]\\n\\thooksPath = $PWD/w-x/hooks\\n\" >m/.git/config");
	look();
	CHECK(seen.hook_count == 0);
	run("printf \"[core]\\n\\thooksPath = $PWD/m/.git-x/hooks\\n\" >m/.git/config");
	look();
	CHECK(seen.hook_count == 0);
	for (size_t i = 0; i < seen.other_count; i++)
		CHECK(!strstr(seen.others[i], "hooks"));
	run("rm -r w-x");
}

/* What else the host's configuration names in the project. */
static void test_obeyed(void)
{
	static const struct {
		const char *config, *held; /* NULL: nothing */
	} rows[] = {
		/* From where the configuration is, which is m/.git, or wherever it is. */
		{ "[include]\npath = ../../w/more.cfg", "more.cfg" },
		{ "[includeIf \"gitdir:/x/\"]\npath = ../../w/a/../more.cfg", "more.cfg" },
		{ "[include]\npath = more.cfg", NULL },
		{ "[include]\npath = ~/w/more.cfg", "more.cfg" },
		{ "[core]\nattributesFile = etc/attributes", "etc/attributes" },
		{ "[core]\nfsmonitor = tools/new.sh --fast", "tools/new.sh" },
		{ "[core]\nfsmonitor = true", NULL },
		{ "[filter \"x\"]\nclean = sh run.sh %f", "run.sh" },
		{ "[filter \"x\"]\nclean = sh absent.sh %f", NULL },
		{ "[diff \"x\"]\ntextconv = 'tools/conv'", "tools/conv" },
		{ "[merge \"x\"]\ndriver = A=1 ./run.sh", "run.sh" },
		{ "[alias]\nx = !./run.sh", "run.sh" },
		/* A folder is no program. */
		{ "[alias]\nst = status", NULL },
		{ "[alias]\nx = diff status/", NULL },
		{ "[core]\nexcludesFile = etc/ignore", NULL },
		{ "[user]\nname = run.sh", NULL },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		FILE *config;

		begin();
		run("mkdir w/status; touch w/run.sh");
		project.home = top;
		config = fopen("m/.git/config", "we");
		if (!config || fputs(rows[i].config, config) < 0 || fclose(config) != 0)
			exit(1); /* NOLINT(concurrency-mt-unsafe) */
		look();
		check_equal(seen.hook_count ? seen.hooks[0] : "", rows[i].held ? rows[i].held : "",
			rows[i].config, (int)i);
		CHECK(seen.hook_count == (rows[i].held ? 1 : 0));
	}
}

int main(void)
{
	unsetenv("XDG_CONFIG_HOME"); /* NOLINT(concurrency-mt-unsafe) */
	arena_init(&arena, 1 << 20);
	if (!mkdtemp(top) || chdir(top) < 0)
		return 1;
	test_worktree();
	test_forged_worktree();
	test_pointer();
	test_module();
	test_owner();
	test_parts();
	test_hooks();
	test_near_misses();
	test_obeyed();
	arena_done(&arena);
	if (chdir("/") == 0)
		run(strcat((char[64]){ "rm -rf " }, top));
	return check_report();
}
