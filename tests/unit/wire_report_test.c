/* What may be told from inside of a cage, and what is none of it. */
#include <string.h>

#include "base/count.h"
#include "check.h"
#include "wire/wire_report.h"

static struct wire_report make(const char *tool, const char *path)
{
	struct wire_report t = { .kind = WIRE_WRITE_BLOCKED, .agent = WIRE_CODEX };

	memcpy(t.tool, tool, strlen(tool));
	memcpy(t.path, path, strlen(path));
	return t;
}

int main(void)
{
	static const char *const tools[] = { "", "a b", "Read\n", "caf\xc3\xa9", "a;b" };
	static const char *const paths[] = { "", "a", "/a\n", "/\x1b[m", "/\xff", "/\xe2\x80\x8b" };
	struct wire_report t = make("apply_patch", "/root/\xc3\xa9 x");

	CHECK(wire_is_report(&t));
	t.kind = WIRE_REPORT_KIND_COUNT;
	CHECK(!wire_is_report(&t));
	t.kind = 0;
	t.agent = WIRE_AGENT_COUNT;
	CHECK(!wire_is_report(&t));
	t.agent = 0;
	t.path[sizeof(t.path) - 1] = 'x'; /* behind the end */
	CHECK(!wire_is_report(&t));
	memset(t.path, '/', sizeof(t.path)); /* without one */
	CHECK(!wire_is_report(&t));
	t.path[sizeof(t.path) - 1] = '\0';
	CHECK(wire_is_report(&t));
	memset(t.tool, 'a', sizeof(t.tool));
	CHECK(!wire_is_report(&t));
	for (size_t i = 0; i < COUNT_OF(tools); i++) {
		t = make(tools[i], "/a");
		check_that(!wire_is_report(&t), tools[i], __FILE__, __LINE__);
	}
	for (size_t i = 0; i < COUNT_OF(paths); i++) {
		t = make("Read", paths[i]);
		check_that(!wire_is_report(&t), paths[i], __FILE__, __LINE__);
	}
	return check_report();
}
