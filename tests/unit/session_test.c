#include "session/folder/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "check.h"

static void test_ids(void)
{
	char id[STORE_ID_SIZE], other[STORE_ID_SIZE];
	struct err e = { 0 };

	CHECK(session_make_id(id, &e) == 0 && session_make_id(other, &e) == 0);
	CHECK(strlen(id) == 32 && session_is_id(id, true) && strcmp(id, other) != 0);
	CHECK(session_is_id("0123456789abcdef0123456789abcdef", true));
	CHECK(!session_is_id("0123456789abcdef0123456789abcde", true));
	CHECK(session_is_id("0123456789abcdef0123456789abcde", false) && session_is_id("0", false));
	CHECK(!session_is_id("0123456789abcdef0123456789abcdef0", false));
	CHECK(!session_is_id("", true) && !session_is_id("", false));
	CHECK(!session_is_id("0123456789ABCDEF0123456789abcdef", true));
	CHECK(!session_is_id("0123456789abcdef0123456789abcde/", true));
	CHECK(!session_is_id("..", false) && !session_is_id("g", false));
}

static void test_names(void)
{
	static const struct {
		const char *name, *fault;
	} rows[] = {
		{ "a", NULL },
		{ "web-1.dev_x", NULL },
		{ "0", NULL },
		{ "cafe", NULL },
		{ "deadbee", NULL },
		{ "deadbeef", "it could be the id of another" },
		{ "0123456789abcdef0123456789abcdef", "it could be the id of another" },
		{ "0123456789abcdef0123456789abcdefg", NULL },
		{ "DEADBEEF", NULL },
		{ "", "it is empty" },
		{ ".", "a name begins with a letter or a digit" },
		{ "..", "a name begins with a letter or a digit" },
		{ "-rf", "a name begins with a letter or a digit" },
		{ "_x", "a name begins with a letter or a digit" },
		{ "a/b", "only letters, digits, '.', '_' and '-' are in a name" },
		{ "../a", "only letters, digits, '.', '_' and '-' are in a name" },
		{ "a b", "only letters, digits, '.', '_' and '-' are in a name" },
		{ "a\n", "only letters, digits, '.', '_' and '-' are in a name" },
		{ "a\x1b[2J", "only letters, digits, '.', '_' and '-' are in a name" },
		{ "caf\xc3\xa9", "only letters, digits, '.', '_' and '-' are in a name" },
	};
	char longest[STORE_NAME_SIZE + 1];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *fault = session_check_name(rows[i].name);

		CHECK_STR(fault ? fault : "", rows[i].fault ? rows[i].fault : "");
	}
	memset(longest, 'x', sizeof(longest));
	longest[STORE_NAME_SIZE - 1] = '\0';
	CHECK(session_check_name(longest) == NULL);
	longest[STORE_NAME_SIZE - 1] = 'x';
	longest[STORE_NAME_SIZE] = '\0';
	CHECK_STR(session_check_name(longest), "it is longer than 64 bytes");
}

int main(void)
{
	test_ids();
	test_names();
	return check_report();
}
