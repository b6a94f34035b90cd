/*
 * apply_tool - effects found and applied without a run: a layer made by hand, over a tree.
 *
 *     apply_tool scan BEGAN LAYER TREE FOLDER [HELD...]        BEGAN in nanoseconds
 *     apply_tool apply [OPTION...] LAYER TREE FOLDER [PATH...]
 *       --force  --merge  --held       as bawn apply has them
 *       --hold PATH                    the operator protects it
 *       --stop N                       stopped when it asks for the N-th time
 *     apply_tool clean TREE FOLDER
 *
 * FOLDER is the run's: effects.json, base, apply.journal. Prints a line for each word of apply's,
 * "VERDICT PATH: WHY", and at the end the counts.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/apply/change_apply.h"

#define RUN      "test"
#define MAX_HOLD 8

static const char *const verdicts[] = { "applied", "merged", "there", "conflict", "held",
	"not-taken", "failed" };

static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		err(2, "%s", path);
	return fd;
}

static int fail(const struct err *e)
{
	fprintf(stderr, "apply_tool: %s\n", e->text);
	return 1;
}

static int scan(char **args)
{
	own_fd int layer = open_folder(args[1]), below = open_folder(args[2]);
	own_fd int folder = open_folder(args[3]), base = -1, out = -1;
	own(change_effects) struct change_effects x;
	own(buf) struct buf text;
	long long began = atoll(args[0]);
	struct err e = { 0 };
	struct change_scan q = { .layer = layer,
		.below = below,
		.began = { .tv_sec = began / 1000000000, .tv_nsec = began % 1000000000 },
		.held = (const char *const *)args + 4 };

	while (q.held[q.held_count])
		q.held_count++;
	change_effects_init(&x);
	buf_init(&text, CHANGE_MAX_MEMORY);
	mkdirat(folder, "base", 0700);
	q.base = base = openat(folder, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (change_scan(&q, &x, &e) < 0)
		return fail(&e);
	change_effects_print(&x, NULL, NULL, &text);
	out = openat(folder, "effects.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0 || text.failed || file_write_all(out, text.data, text.len) < 0)
		err(2, "effects.json");
	return 0;
}

static void tell(void *of, const struct change_effect *x, enum change_verdict v, const char *why)
{
	own(buf) struct buf line;

	(void)of;
	buf_init(&line, 1 << 20);
	buf_printf(&line, "%s ", verdicts[v]);
	buf_add_visible(&line, x->path, strlen(x->path));
	if (why)
		buf_printf(&line, ": %s", why);
	puts(buf_text(&line));
}

static atomic_long asked, stop;

static bool is_stopped(void *of)
{
	(void)of;
	return stop && ++asked >= stop;
}

static char **read_options(int argc, char **argv, struct change_apply *q)
{
	static const struct option options[] = { { "force", 0, NULL, 'f' },
		{ "merge", 0, NULL, 'm' }, { "held", 0, NULL, 'a' }, { "hold", 1, NULL, 'h' },
		{ "stop", 1, NULL, 's' }, { NULL, 0, NULL, 0 } };
	static const char *held[MAX_HOLD];
	int o;

	while ((o = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (o == 'f')
			q->is_forced = true;
		else if (o == 'm')
			q->merges = true;
		else if (o == 'a')
			q->takes_held = true;
		else if (o == 's')
			stop = atol(optarg);
		else if (o == 'h' && q->held_count < MAX_HOLD)
			held[q->held_count++] = optarg;
		else
			exit(2);
	}
	q->held = held;
	return argv + optind;
}

static int read_effects(int folder, struct change_effects *ret, struct err *e)
{
	own_fd int fd = openat(folder, "effects.json", O_RDONLY | O_CLOEXEC);
	own_free char *text = NULL;
	size_t n = 0;

	if (fd < 0 || file_read_all(fd, CHANGE_MAX_MEMORY, &text, &n) < 0)
		err(2, "effects.json");
	return change_effects_read(text, n, ret, e);
}

static int apply(int argc, char **argv)
{
	own(change_effects) struct change_effects x;
	struct change_apply q = { .run = RUN, .tell = tell, .is_stopped = is_stopped };
	char **args = read_options(argc, argv, &q);
	struct change_applied applied;
	struct err e = { 0 };
	int r;

	change_effects_init(&x);
	q.layer = open_folder(args[0]);
	q.below = open_folder(args[1]);
	q.folder = open_folder(args[2]);
	q.paths = (const char *const *)args + 3;
	while (q.paths[q.path_count])
		q.path_count++;
	if (read_effects(q.folder, &x, &e) < 0)
		return fail(&e);
	r = change_apply(&q, &x, &applied, &e);
	for (int i = 0; i < CHANGE_VERDICT_COUNT; i++)
		printf("%s=%zu ", verdicts[i], applied.counts[i]);
	printf("interrupted=%d stopped=%d\n", applied.was_interrupted, applied.was_stopped);
	return r < 0 ? fail(&e) : 0;
}

static int clean(char **args)
{
	own_fd int below = open_folder(args[0]), folder = open_folder(args[1]);
	struct err e = { 0 };

	return change_apply_clean(folder, below, NULL, RUN, &e) < 0 ? fail(&e) : 0;
}

int main(int argc, char **argv)
{
	if (argc >= 6 && strcmp(argv[1], "scan") == 0)
		return scan(argv + 2);
	if (argc >= 5 && strcmp(argv[1], "apply") == 0)
		return apply(argc - 1, argv + 1);
	if (argc == 4 && strcmp(argv[1], "clean") == 0)
		return clean(argv + 2);
	errx(2, "see the head of apply_tool.c");
}
