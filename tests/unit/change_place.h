#pragma once

/* A folder for tests of layers, owned by somebody whom modes hold back: never by root. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define WORK_PLACE_USER 12345 /* an id that owns nothing here */

/* Also what nobody may enter, and what is deeper than a path is long. */
static inline void work_place_remove(const char *place)
{
	char command[128];

	snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s", place, place);
	CHECK(system(command) == 0); /* NOLINT(cert-env33-c) */
}

/*
 * Runs the tests with a new folder as working directory, /var/tmp because the tmpfs of old kernels
 * has no attributes of users; as root and as an ordinary user where we are root.
 */
static inline int work_place_run(void (*tests)(void))
{
	for (int is_user = geteuid() == 0 ? 0 : 1; is_user < 2; is_user++) {
		char place[] = "/var/tmp/bawn-work-XXXXXX";
		int status = 1;
		pid_t pid;

		CHECK(mkdtemp(place) != NULL);
		if (is_user && geteuid() == 0)
			CHECK(chown(place, WORK_PLACE_USER, WORK_PLACE_USER) == 0);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			check_passed = check_failed = 0;
			CHECK(chdir(place) == 0);
			if (is_user && geteuid() == 0)
				CHECK(setgid(WORK_PLACE_USER) == 0 && setuid(WORK_PLACE_USER) == 0);
			if (!check_failed)
				tests();
			printf("as %s: ", geteuid() == 0 ? "root" : "a user");
			status = check_report();
			fflush(stdout);
			_exit(status);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
		work_place_remove(place);
	}
	return check_report();
}
