/* Calls of the agents' tools: what they touch, where that leads, and what they are told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/hook/hook.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"

static const char cage[] =
	"{\"version\":1,\"project\":\"/work\",\"home\":\"/home/agent\","
	"\"read\":[\"/dev\",\"/etc\",\"/home/agent\",\"/tmp\",\"/usr\",\"/work\"],"
	"\"write\":[\"/dev/null\",\"/home/agent\",\"/tmp\",\"/work\",\"/work/.git/hooks/open\"],"
	"\"protect\":[\"/work/.git/hooks\",\"/work/.envrc\"],\"network\":\"none\",\"allow\":[]}\n";

/* An invented cage's links; everything else that is below /work or /home is there. */
static long read_link(void *of, const char *path, char *ret, size_t size)
{
	static const char *const links[][2] = {
		{ "/work/out", "/root/secret" },
		{ "/work/up", "../../home/bob" },
		{ "/work/in", "a/b" },
		{ "/work/first", "/work/second/deep" },
		{ "/work/second", "/work/third" },
		{ "/work/third", "/root/secret" },
		{ "/work/back", "/work/there" },
		{ "/work/there", "/work/a" },
		{ "/work/loop", "loop" },
		{ "/work/hooks", ".git/hooks" },
		{ "/bin", "usr/bin" },
	};

	(void)of;
	for (size_t i = 0; i < COUNT_OF(links); i++)
		if (str_eq(links[i][0], path))
			return snprintf(ret, size, "%s", links[i][1]);
	return str_starts(path, "/work") || str_starts(path, "/home") ? -EINVAL : -ENOENT;
}

/* "read /root/x, write /usr/y": what of a call is denied; "-": it is none. */
static const char *denied_by(const struct tool_cage *w, enum wire_agent agent, const char *json)
{
	static char text[4096];
	struct hook_answer a;
	struct hook_call c;
	size_t n = 0;

	text[0] = '\0';
	if (!hook_call_read(&c, agent, w, json, strlen(json))) {
		hook_call_done(&c);
		return "-";
	}
	hook_judge(&c, w, read_link, NULL, &a);
	for (size_t i = 0; i < a.count; i++) {
		struct wire_report told;

		hook_tell(&c, &a.denials[i], &told);
		CHECK(wire_is_report(&told));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s", i ? ", " : "",
			told.kind == WIRE_WRITE_BLOCKED ? "write" : "read", told.path);
	}
	hook_call_done(&c);
	return text;
}

#define CALL(event, tool, input)                                                                   \
	"{\"session_id\":\"s\",\"cwd\":\"/work/sub\",\"hook_event_name\":\"" event                 \
	"\",\"tool_name\":\"" tool "\",\"tool_input\":{" input "},\"tool_use_id\":\"t\"}"
#define PRE(tool, input)    CALL("PreToolUse", tool, input)
#define BEFORE(tool, input) CALL("BeforeTool", tool, input)

static const struct {
	enum wire_agent agent;
	const char *json, *denied;
} rows[] = {
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/a\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/root/.ssh/id\""), "read /root/.ssh/id" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"~/a\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"~bob/a\""), "read /home/bob/a" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"../../root/a\""), "read /root/a" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"../../bin/ls\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/out/x\""), "read /root/secret/x" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/up\""), "read /home/bob" },
	/* Each link of several starts at the top again, not only the first. */
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/third/x\""), "read /root/secret/x" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/second/x\""), "read /root/secret/x" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/first/x\""), "read /root/secret/deep/x" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/back/../out/x\""),
		"read /root/secret/x" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/back/x\""), "" },
	/* Near misses of what the cage has. */
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/home/agent2/a\""), "read /home/agent2/a" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/home/agen\""), "read /home/agen" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/root/work/a\""), "read /root/work/a" },
	{ WIRE_CLAUDE, PRE("Write", "\"file_path\":\"/tmpx\""), "write /tmpx" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/dev/nullx\""), "write /dev/nullx" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/.git/hooks/opener\""),
		"write /work/.git/hooks/opener" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/.git/hooks2/x\""), "" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/.envrc\""), "write /work/.envrc" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/in/../../b\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/loop\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/etc/no/such\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/workshop/a\""), "read /workshop/a" },
	{ WIRE_CLAUDE, PRE("LS", "\"path\":\"/\""), "" },
	{ WIRE_CLAUDE, PRE("LS", "\"path\":\"/home\""), "" },
	{ WIRE_CLAUDE, PRE("LS", "\"path\":\"/home/bob\""), "read /home/bob" },
	{ WIRE_CLAUDE, PRE("Write", "\"file_path\":\"/work/new/file\",\"content\":\"x\""), "" },
	{ WIRE_CLAUDE, PRE("Write", "\"file_path\":\"/usr/x\""), "write /usr/x" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/home/x\""), "write /home/x" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/.git/hooks/pre-commit\""),
		"write /work/.git/hooks/pre-commit" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/hooks/x\""), "write /work/.git/hooks/x" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/.git/hooks/open/x\""), "" },
	{ WIRE_CLAUDE, PRE("Edit", "\"file_path\":\"/work/.envrc.d/x\""), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/.envrc\""), "" },
	{ WIRE_CLAUDE, PRE("NotebookEdit", "\"notebook_path\":\"/usr/x\""), "write /usr/x" },
	{ WIRE_CLAUDE, PRE("Glob", "\"pattern\":\"**/*.c\""), "" },
	{ WIRE_CLAUDE, PRE("Glob", "\"pattern\":\"/root/**\""), "read /root" },
	{ WIRE_CLAUDE, PRE("Glob", "\"pattern\":\"../../x/*\",\"path\":\"/work/a/b\""), "" },
	{ WIRE_CLAUDE, PRE("Glob", "\"pattern\":\"../x/*\",\"path\":\"/work\""), "read /x" },
	{ WIRE_CLAUDE, PRE("Grep", "\"pattern\":\"/root\",\"path\":\"/srv/x\""), "read /srv/x" },
	{ WIRE_CLAUDE, PRE("Bash", "\"command\":\"cat ../../root/x > /dev/null\""),
		"read /root/x" },
	{ WIRE_CLAUDE, PRE("Bash", "\"command\":\"cat x > /dev/stdout 2>/dev/fd/2\""), "" },
	{ WIRE_CLAUDE, PRE("Bash", "\"command\":\"cat /root/x /root/x; rm /root/x\""),
		"read /root/x, write /root/x" },
	{ WIRE_CODEX, PRE("Bash", "\"command\":\"cat /root/x\""), "read /root/x" },
	{ WIRE_CODEX, PRE("shell", "\"command\":[\"bash\",\"-lc\",\"rm '/usr/a b'\"]"),
		"write /usr/a b" },
	{ WIRE_CODEX, PRE("shell", "\"command\":[\"cat\",\"/root/a  b\"]"), "read /root/a  b" },
	{ WIRE_CODEX, PRE("exec_command", "\"cmd\":\"rm ../x\",\"workdir\":\"/work\""),
		"write /x" },
	{ WIRE_CODEX, PRE("exec_command", "\"cmd\":\"ls\",\"workdir\":\"/root\""), "read /root" },
	{ WIRE_CODEX,
		PRE("apply_patch",
			"\"command\":\"*** Begin Patch\\n*** Add File: a\\n+*** Add File: /no\\n"
			"*** Delete File: /etc/x\\n*** End Patch\""),
		"write /etc/x" },
	{ WIRE_CODEX, PRE("view_image", "\"path\":\"/root/a.png\""), "read /root/a.png" },
	{ WIRE_GEMINI, BEFORE("read_file", "\"file_path\":\"/root/x\""), "read /root/x" },
	{ WIRE_GEMINI, BEFORE("read_file", "\"absolute_path\":\"/root/x\""), "read /root/x" },
	{ WIRE_GEMINI, BEFORE("read_many_files", "\"include\":[\"a\",\"/root/*.x\",\"../../b\"]"),
		"read /root, read /b" },
	{ WIRE_GEMINI, BEFORE("list_directory", "\"dir_path\":\"/root\""), "read /root" },
	{ WIRE_GEMINI, BEFORE("glob", "\"pattern\":\"*\",\"dir_path\":\"/root\""), "read /root" },
	{ WIRE_GEMINI, BEFORE("grep_search", "\"pattern\":\"x\",\"dir_path\":\"/root\""),
		"read /root" },
	{ WIRE_GEMINI, BEFORE("write_file", "\"file_path\":\"/usr/x\""), "write /usr/x" },
	{ WIRE_GEMINI, BEFORE("replace", "\"file_path\":\"a\""), "" },
	{ WIRE_GEMINI,
		BEFORE("run_shell_command", "\"command\":\"rm ../a\",\"dir_path\":\"/work\""),
		"write /a" },
	/* No calls, and calls of no interest. */
	{ WIRE_CLAUDE, PRE("WebFetch", "\"url\":\"https://x/\""), "-" },
	{ WIRE_CLAUDE, BEFORE("Read", "\"file_path\":\"/root/x\""), "-" },
	{ WIRE_CLAUDE, CALL("PostToolUse", "Read", "\"file_path\":\"/root/x\""), "-" },
	{ WIRE_GEMINI, BEFORE("Read", "\"file_path\":\"/root/x\""), "-" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":7"), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":{\"a\":\"/root\"}"), "" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"\""), "" },
	{ WIRE_CLAUDE, "", "-" },
	{ WIRE_CLAUDE, "null", "-" },
	{ WIRE_CLAUDE, "[]", "-" },
	{ WIRE_CLAUDE, "{}", "-" },
	{ WIRE_CLAUDE, "{\"tool_name\":\"Read\",\"tool_input\":{\"file_path\":\"/root/x\"}}", "-" },
	{ WIRE_CLAUDE, "{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Read\"}", "-" },
	{ WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/root/x\"") "x", "-" },
};

static void test_rows(const struct tool_cage *w)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *got = denied_by(w, rows[i].agent, rows[i].json);

		if (!str_eq(got, rows[i].denied))
			printf("%s\n  is  %s\n  not %s\n", rows[i].json, got, rows[i].denied);
		check_that(str_eq(got, rows[i].denied), rows[i].json, __FILE__, __LINE__);
	}
}

/* A call that comes from nowhere is taken to come from the project. */
static void test_folder(const struct tool_cage *w)
{
	CHECK_STR(
		denied_by(w, WIRE_CLAUDE,
			"{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Read\",\"cwd\":\"a\","
			"\"tool_input\":{\"file_path\":\"../x\"}}"),
		"read /x");
}

static const char *answer_of(const struct tool_cage *w, enum wire_agent agent, const char *json)
{
	static struct buf out;
	struct hook_answer a;
	struct hook_call c;

	buf_done(&out);
	buf_init(&out, 1 << 16);
	CHECK(hook_call_read(&c, agent, w, json, strlen(json)));
	hook_judge(&c, w, read_link, NULL, &a);
	hook_print_answer(&c, w, &a, &out);
	hook_call_done(&c);
	return buf_text(&out);
}

static void test_answers(const struct tool_cage *w)
{
	CHECK_STR(answer_of(w, WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/a\"")), "");
	CHECK_STR(answer_of(w, WIRE_CLAUDE, PRE("Read", "\"file_path\":\"/work/out/a\\u001b\"")),
		"{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":"
		"\"deny\",\"permissionDecisionReason\":\"bawn: cannot read /work/out/a\\\\x1b: it "
		"leads to /root/secret/a\\\\x1b, which is outside of this cage, which has /work, "
		"/etc, /home/agent, /tmp, /usr. Work with files below /work.\"}}\n");
	CHECK_STR(answer_of(w, WIRE_GEMINI, BEFORE("write_file", "\"file_path\":\"/usr/x\"")),
		"{\"decision\":\"deny\",\"reason\":\"bawn: cannot write /usr/x: it is read-only in "
		"this cage; what can be written is /work, /home/agent, /tmp. Work with files below "
		"/work.\"}\n");
	CHECK_STR(answer_of(w, WIRE_GEMINI, BEFORE("replace", "\"file_path\":\"/work/.envrc\"")),
		"{\"decision\":\"deny\",\"reason\":\"bawn: cannot write /work/.envrc: it is protected "
		"in this cage and stays as it is. Leave it, and work with other files below "
		"/work.\"}\n");
	CHECK(strstr(answer_of(w, WIRE_CODEX, PRE("Bash", "\"command\":\"cat /root/a /root/b\"")),
		"(1 more of this call cannot be used either.)"));
}

/* What can be written is named, and not a project that cannot. */
static void test_read_only(void)
{
	static const char closed[] =
		"{\"project\":\"/work\",\"home\":\"/home/agent\",\"read\":[\"/home/agent\",\"/work\"],"
		"\"write\":[\"/home/agent\"],\"protect\":[]}";
	struct tool_cage w;

	CHECK(hook_wall_read(&w, closed, strlen(closed)));
	CHECK(strstr(answer_of(&w, WIRE_CODEX, PRE("Bash", "\"command\":\"rm a\"")),
		"what can be written is /home/agent. Work with files below /home/agent."));
	tool_cage_done(&w);
}

static void test_walls(void)
{
	static const char *const bad[] = { "", "{}", "[]", "{\"project\":\"work\"}",
		"{\"project\":\"/work\",\"read\":[],\"write\":[],\"protect\":[]}",
		"{\"project\":\"/work\",\"home\":\"/h\",\"read\":[\"a\"],\"write\":[],\"protect\":[]}",
		"{\"project\":\"/work\",\"home\":\"/h\",\"read\":[1],\"write\":[],\"protect\":[]}",
		"{\"project\":\"/work\",\"home\":\"/h\",\"read\":{},\"write\":[],\"protect\":[]}" };

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct tool_cage w;

		check_that(!hook_wall_read(&w, bad[i], strlen(bad[i])), bad[i], __FILE__, __LINE__);
		tool_cage_done(&w);
	}
}

int main(void)
{
	struct tool_cage w;

	CHECK(hook_wall_read(&w, cage, strlen(cage)));
	test_rows(&w);
	test_folder(&w);
	test_answers(&w);
	tool_cage_done(&w);
	test_read_only();
	test_walls();
	return check_report();
}
