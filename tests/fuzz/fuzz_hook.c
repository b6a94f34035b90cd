/*
 * Calls of tools, whatever they are: one is denied or it is not, the answer is one line of JSON
 * that never approves, and what is told of it is something that the keeper takes.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hook/hook.h"
#include "base/json_read.h"
#include "base/own.h"
#include "fuzz.h"

static const char cage[] =
	"{\"project\":\"/work\",\"home\":\"/home/agent\",\"read\":[\"/home/agent\",\"/usr\",\"/work\"],"
	"\"write\":[\"/home/agent\",\"/work\"],\"protect\":[\"/work/.git/hooks\"]}";

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

/* Names that end with l are links: to what is before that, or to the root. */
static long read_link(void *of, const char *path, char *ret, size_t size)
{
	size_t n = strlen(path);

	(void)of;
	if (n < 3 || path[n - 1] != 'l')
		return n % 2 ? -EINVAL : -ENOENT;
	return snprintf(ret, size, "%.*s", (int)(n % 3 ? n - 2 : 1), path);
}

static void check_answer(const struct hook_call *c, const struct tool_cage *w)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct hook_answer a;
	struct wire_report told;
	struct json_reader r;

	hook_judge(c, w, read_link, NULL, &a);
	demand(a.count <= HOOK_MAX_DENIALS && a.count <= a.total, "they are counted");
	hook_print_answer(c, w, &a, &out);
	demand((out.len > 0) == (a.count > 0), "there is an answer where something is denied");
	demand(!strstr(buf_text(&out), "allow\"") && !out.failed, "nothing is approved");
	for (size_t i = 0; i < a.count; i++) {
		hook_tell(c, &a.denials[i], &told);
		demand(wire_is_report(&told), "what is told is taken");
		demand(a.denials[i].real[0] == '/' && !strstr(a.denials[i].real, "/../"),
			"a path is real");
	}
	if (!out.len)
		return;
	demand(strchr(out.data, '\n') == out.data + out.len - 1, "an answer is a line");
	json_read_init(&r, out.data, out.len, out.len);
	demand(json_skip(&r) && json_read_end(&r), "an answer is JSON");
	json_reader_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hook_call c;
	static struct tool_cage w, other;
	char *text;

	if (size < 1)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	demand(hook_wall_read(&w, cage, strlen(cage)), "the cage is one");
	/* As JSON, and as a script of one that is. */
	if (hook_call_read(&c, data[0] % WIRE_AGENT_COUNT, &w, text, size - 1))
		check_answer(&c, &w);
	hook_call_done(&c);
	c = (struct hook_call){ .home = w.home, .folder = w.project, .tool = "Bash" };
	arena_init(&c.arena, 32 * HOOK_MAX_INPUT);
	hook_shell_scan(&c, text);
	check_answer(&c, &w);
	hook_call_done(&c);
	tool_cage_done(&w);
	(void)hook_wall_read(&other, text, size - 1);
	tool_cage_done(&other);
	free(text);
	return 0;
}
