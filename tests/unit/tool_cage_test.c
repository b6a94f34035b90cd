/* Refusals in the words of the cage. */
#include <errno.h>
#include <stdbool.h>

#include "agent/tool/tool_cage.h"
#include "base/count.h"
#include "base/own.h"
#include "check.h"

static const char *const cage_text =
	"{\"version\":1,\"project\":\"/work\",\"home\":\"/home/agent\",\"read\":[\"/usr\",\"/work\"],"
	"\"write\":[\"/tmp\",\"/work\"],\"protect\":[\"/work/.git/hooks\"],\"network\":\"none\","
	"\"allow\":[],\"later\":{\"x\":[1]}}";

static struct tool_cage cage;

static const char *explain(
	const struct tool_cage *of, const char *path, const char *link, bool writes, int num)
{
	static struct err e;
	struct tool_attempt a = { writes ? "write" : "read", path, path, link, writes };

	CHECK(tool_cage_explain(of, &a, num, &e) == -num);
	CHECK(e.kind == ERR_SYS);
	return e.text;
}

static void check_sentences(void)
{
	CHECK_STR(explain(&cage, "/etc/shadow", NULL, false, ENOENT),
		"cannot read '/etc/shadow': it is not in this cage, which has /work (writable), "
		"/tmp (writable), /usr");
	CHECK_STR(explain(NULL, "/etc/shadow", NULL, false, ENOENT),
		"cannot read '/etc/shadow': there is no such file or folder");
	CHECK_STR(explain(&cage, "/work/x", NULL, false, ENOENT),
		"cannot read '/work/x': there is no such file or folder in this cage");
	CHECK_STR(explain(&cage, "/work/l", "/etc/passwd", false, ENOENT),
		"cannot read '/work/l': it leads to '/etc/passwd', and that is not in this cage, which "
		"has /work (writable), /tmp (writable), /usr");
	CHECK_STR(explain(&cage, "/work/l", "/work/x", false, ENOENT),
		"cannot read '/work/l': it is a link that leads to nothing in this cage");
	CHECK_STR(explain(&cage, "/work/.git/hooks/x", NULL, true, EROFS),
		"cannot write '/work/.git/hooks/x': it is protected in this cage");
	CHECK_STR(explain(&cage, "/usr/x", NULL, true, EROFS),
		"cannot write '/usr/x': it is read-only in this cage; writable are /work, /tmp");
	CHECK_STR(explain(&cage, "/work/x", NULL, true, EACCES),
		"cannot write '/work/x': it is not allowed");
	CHECK_STR(explain(&cage, "/usr/a/b", NULL, true, ENOSPC),
		"cannot write '/usr/a/b': No space left on device");
	CHECK_STR(explain(&cage, "/work/l", NULL, false, ELOOP),
		"cannot read '/work/l': its links lead in a circle");
	CHECK_STR(explain(&cage, "/workshop", NULL, false, EACCES),
		"cannot read '/workshop': it is not in this cage, which has /work (writable), /tmp "
		"(writable), /usr");
}

/* A sentence has an end, however long what it names. */
static void check_long(void)
{
	char path[1000] = "/", text[40000] = "{\"write\":[],\"read\":[";
	const char *said;
	struct tool_cage large;

	memset(path + 1, 'p', sizeof(path) - 2);
	for (int i = 0; i < 1000; i++)
		sprintf(text + strlen(text), "%s\"/place-number-%d\"", i ? "," : "", i);
	strcat(text, "]}");
	CHECK(tool_cage_read(text, strlen(text), &large));
	said = explain(&large, path, path, false, ENOENT);
	CHECK(strstr(said, "more") != NULL);
	CHECK(strlen(said) < 490);
	tool_cage_done(&large);
}

static void check_bad(void)
{
	static const char *const texts[] = { "", "[]", "{}", "{\"read\":[1],\"write\":[]}",
		"{\"read\":\"/\",\"write\":[]}", "{\"read\":[],\"write\":[]} x",
		"{\"read\":[],\"write\":null}" };
	struct tool_cage bad;

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		CHECK(!tool_cage_read(texts[i], strlen(texts[i]), &bad));
		tool_cage_done(&bad);
	}
}

static const char *full(const char *from, const char *path)
{
	static char text[64];

	return tool_full_path(from, path, text, sizeof(text)) ? text : "does not fit";
}

static void check_paths(void)
{
	CHECK_STR(full("/work", "a/b"), "/work/a/b");
	CHECK_STR(full("/work", "../x"), "/x");
	CHECK_STR(full("/work", "/a//b/./c/.."), "/a/b");
	CHECK_STR(full("/", "../.."), "/");
	CHECK_STR(full("/work", "."), "/work");
	CHECK_STR(full("/a/b", ".."), "/a");
	CHECK_STR(full("/", "0123456789012345678901234567890123456789012345678901234567890123456"),
		"does not fit");
}

int main(void)
{
	CHECK(tool_cage_read(cage_text, strlen(cage_text), &cage));
	check_sentences();
	tool_cage_done(&cage);
	check_long();
	check_bad();
	check_paths();
	return check_report();
}
