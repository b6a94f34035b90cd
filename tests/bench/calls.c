/*
 * calls - what system calls cost where it runs; for cages.
 *
 *     calls        one line of JSON: nanoseconds of each, the least of some rounds
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUNDS 500 /* short ones: some are not disturbed */

static void get_pid(void)
{
	syscall(SYS_getpid);
}

/* Of those that are looked at with their arguments. */
static void open_file(void)
{
	int fd = open("/dev/null", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		exit(1);
	close(fd);
}

static void try_missing(void)
{
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		exit(1);
}

static void try_denied(void)
{
	if (syscall(SYS_personality, 0) != -1 || errno != EPERM)
		exit(1);
}

static double least_ns(void (*call)(void), long count, int rounds)
{
	double least = 1e12;

	for (int round = 0; round < rounds; round++) {
		uint64_t began = clock_ns();
		double each;

		for (long i = 0; i < count; i++)
			call();
		each = (double)(clock_ns() - began) / (double)count;
		least = each < least ? each : least;
	}
	return least;
}

int main(void)
{
	printf("{\"getpid\": %.1f, ", least_ns(get_pid, 2000, ROUNDS));
	printf("\"open\": %.1f, ", least_ns(open_file, 200, ROUNDS));
	printf("\"missing\": %.1f, ", least_ns(try_missing, 2000, ROUNDS));
	/* No more than are answered without a pause. */
	printf("\"denied\": %.1f}\n", least_ns(try_denied, 20, 9));
	return 0;
}
