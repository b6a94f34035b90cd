/* What the tools are asked for: taken as meant, or refused with what to do. */
#include <errno.h>

#include "agent/tool/tool_args.h"
#include "base/count.h"
#include "base/own.h"
#include "check.h"

static struct err e;

static int parse(enum tool tool, const char *text, struct tool_args *ret)
{
	e = (struct err){ 0 };
	return tool_args_read(tool, text, strlen(text), ret, &e);
}

static void check_good(void)
{
	struct tool_args a;

	CHECK(parse(TOOL_READ, "{\"file_path\":\"a b\",\"offset\":7,\"limit\":null}", &a) == 0);
	CHECK_STR(a.path, "a b");
	CHECK(a.offset == 7 && a.limit == 0);
	tool_args_done(&a);
	CHECK(parse(TOOL_WRITE, "{\"path\":\"x\",\"content\":\"\"}", &a) == 0);
	CHECK_STR(a.content, "");
	tool_args_done(&a);
	CHECK(parse(TOOL_EDIT,
		      "{\"path\":\"x\",\"old_string\":\"a\\n\",\"new_string\":\"\",\"replace_all\":true}",
		      &a) == 0);
	CHECK_STR(a.old_text, "a\n");
	CHECK_STR(a.new_text, "");
	CHECK(a.replaces_all);
	tool_args_done(&a);
	CHECK(parse(TOOL_GLOB, " {\"pattern\" : \"*\"} ", &a) == 0);
	CHECK(!a.path);
	tool_args_done(&a);
	CHECK(parse(TOOL_GREP,
		      "{\"pattern\":\"p\",\"glob\":\"*.c\",\"output_mode\":\"count\",\"-i\":true,"
		      "\"-n\":false,\"-A\":1,\"-B\":2,\"-C\":3,\"head_limit\":4}",
		      &a) == 0);
	CHECK(a.mode == TOOL_MODE_COUNT && a.ignores_case && a.has_no_numbers);
	CHECK(a.after == 1 && a.before == 2 && a.around == 3 && a.head_limit == 4);
	tool_args_done(&a);
}

static void check_bad(void)
{
	static const struct {
		enum tool tool;
		const char *text, *said;
	} rows[] = {
		{ TOOL_READ, "{\"pat\":\"x\"}", "read has no argument 'pat'; did you mean path?" },
		{ TOOL_GLOB, "{\"zzzzzz\":1}",
			"glob has no argument 'zzzzzz'; it has path, pattern" },
		{ TOOL_READ, "{}", "read needs path: the path of a file" },
		{ TOOL_READ, "{\"path\":null}", "path of read has to be the path of a file" },
		{ TOOL_READ, "{\"path\":\"\"}", "path of read has to be the path of a file" },
		{ TOOL_READ, "{\"path\":\"a\\u0000b\"}",
			"path of read has to be the path of a file" },
		{ TOOL_READ, "{\"path\":\"a\",\"file_path\":\"b\"}",
			"read takes file_path once, not twice" },
		{ TOOL_READ, "{\"path\":\"a\",\"path\":\"b\"}", "read takes path once, not twice" },
		{ TOOL_READ, "{\"path\":\"a\",\"offset\":-1}",
			"offset of read has to be a whole number, 0 or more" },
		{ TOOL_READ, "{\"path\":\"a\",\"offset\":\"1\"}",
			"offset of read has to be a whole number, 0 or more" },
		{ TOOL_READ, "{\"path\":\"a\",\"offset\":1.5}",
			"offset of read has to be a whole number, 0 or more" },
		{ TOOL_WRITE, "{\"path\":\"a\"}", "write needs content: a text without NUL" },
		{ TOOL_WRITE, "{\"path\":\"a\",\"content\":[]}",
			"content of write has to be a text without NUL" },
		{ TOOL_EDIT, "{\"path\":\"a\",\"old_string\":\"x\",\"new_string\":\"x\"}",
			"old_string and new_string of edit are the same: nothing would change" },
		{ TOOL_GREP, "{\"pattern\":\"x\",\"output_mode\":\"lines\"}",
			"output_mode of grep has to be content, files_with_matches or count" },
		{ TOOL_GREP, "{\"pattern\":\"x\",\"-i\":1}", "-i of grep has to be true or false" },
		{ TOOL_READ, "",
			"the arguments of read are not one JSON object: a map is missing" },
		{ TOOL_READ, "{\"path\":\"a\"} x",
			"the arguments of read are not one JSON object: the end is missing" },
		{ TOOL_READ, "[1]",
			"the arguments of read are not one JSON object: a map is missing" },
	};
	struct tool_args a;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CHECK(parse(rows[i].tool, rows[i].text, &a) == -EINVAL);
		CHECK(e.kind == ERR_USE);
		CHECK_STR(e.text, rows[i].said);
		tool_args_done(&a);
	}
	CHECK(parse(TOOL_EDIT, "{\"path\":\"a\",\"old_string\":\"\",\"new_string\":\"x\"}", &a) <
		0);
	CHECK(strstr(e.text, "the tool write") != NULL);
	tool_args_done(&a);
}

int main(void)
{
	check_good();
	check_bad();
	CHECK(tool_find("grep") == TOOL_GREP);
	CHECK(tool_find("bash") == TOOL_COUNT);
	return check_report();
}
