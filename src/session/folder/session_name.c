/* What sessions are called: by chance, and by people. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/str.h"
#include "session/folder/session.h"

#define SHORT_ID 8 /* digits of an id that people are used to abbreviate it to */

int session_make_id(char ret[static STORE_ID_SIZE], struct err *e)
{
	unsigned char chance[(STORE_ID_SIZE - 1) / 2];

	if (getrandom(chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return err_sys(e, errno, "cannot name the session: no random numbers");
	for (size_t i = 0; i < sizeof(chance); i++)
		snprintf(ret + 2 * i, 3, "%02x", chance[i]);
	return 0;
}

bool session_is_id(const char *text, bool is_whole)
{
	size_t n = strnlen(text, STORE_ID_SIZE);

	if (n == 0 || n == STORE_ID_SIZE || (is_whole && n < STORE_ID_SIZE - 1))
		return false;
	for (size_t i = 0; i < n; i++)
		if (str_hex_digit(text[i]) < 0)
			return false;
	return true;
}

const char *session_check_name(const char *text)
{
	size_t n = strnlen(text, STORE_NAME_SIZE);

	if (n == 0)
		return "it is empty";
	if (n == STORE_NAME_SIZE)
		return "it is longer than 64 bytes";
	for (size_t i = 0; i < n; i++)
		if (!str_is_letter(text[i]) && !str_is_digit(text[i]) && !strchr("._-", text[i]))
			return "only letters, digits, '.', '_' and '-' are in a name";
	if (!str_is_letter(text[0]) && !str_is_digit(text[0]))
		return "a name begins with a letter or a digit";
	return n >= SHORT_ID && session_is_id(text, false) ? "it could be the id of another" : NULL;
}
