/* worker_name - names of workers, which no two have. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/str.h"
#include "session/folder/session.h"
#include "session/worker/worker.h"

#define END_SIZE 9 /* what makes a name the only one: -1f2e3d4c */

static void find_host(char *ret, size_t size)
{
	if (gethostname(ret, size - 1) < 0 && errno != ENAMETOOLONG)
		ret[0] = '\0';
	ret[size - 1] = '\0';
	for (char *c = ret; *c; c++)
		if (!str_is_letter(*c) && !str_is_digit(*c) && *c != '.' && *c != '_')
			*c = '-';
}

int worker_make_name(const char *text, char ret[static STORE_NAME_SIZE], struct err *e)
{
	const char *wrong = text ? session_check_name(text) : NULL;
	char host[STORE_NAME_SIZE / 2] = "";
	uint32_t random = 0;

	if (!wrong && text && strlen(text) > STORE_NAME_SIZE - 1 - END_SIZE)
		wrong = "it is too long";
	if (wrong)
		return err_set(e, ERR_USE, EINVAL, "cannot name a worker '%s': %s", text, wrong);
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(e, errno, "cannot make a name for the worker");
	find_host(host, sizeof(host));
	if (text)
		snprintf(ret, STORE_NAME_SIZE, "%s-%08x", text, random);
	else
		snprintf(ret, STORE_NAME_SIZE, "%s-%d-%08x", host[0] ? host : "worker",
			(int)getpid(), random);
	return 0;
}
