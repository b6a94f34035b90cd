/* Typing into the operator's terminal. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Types a text. The high bits are dropped by the kernel, and were overlooked by filters. */
static bool type(int fd, const char *text)
{
	static const unsigned long codes[] = { TIOCSTI, TIOCSTI | 1UL << 32 };

	for (size_t i = 0; i < ELEMENTS(codes); i++) {
		const char *at = text;

		while (*at && ioctl(fd, codes[i], at) == 0)
			at++;
		if (!*at)
			return true;
	}
	return false;
}

static bool type_into(const char *path, const char *text)
{
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	bool is_typed = fd >= 0 && type(fd, text);

	if (fd >= 0)
		close(fd);
	return is_typed;
}

static int attack_type(char **args)
{
	static const char *const paths[] = { "/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1",
		"/dev/pts/0", "/dev/pts/1", "/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/fd/2" };

	for (int fd = 0; fd < 64; fd++)
		if (type(fd, args[0]))
			return worked("typed into descriptor %d", fd);
	for (size_t i = 0; i < ELEMENTS(paths); i++)
		if (type_into(paths[i], args[0]))
			return worked("typed into %s", paths[i]);
	return refused("%s", error_name(errno));
}

/*
 * Whether a descriptor leads to a terminal of somebody else's: it is open for reading too, so keys
 * can be taken. The cage's own has a name in the cage.
 */
static int attack_terminal(char **args)
{
	bool has_own = false;

	(void)args;
	for (int fd = 0; fd < 64; fd++) {
		if (isatty(fd) && !ttyname(fd))
			return worked("descriptor %d is a terminal", fd);
		has_own |= isatty(fd);
	}
	if (has_own)
		return refused("there is no other than the cage's own");
	return outcome(open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0, "the controlling terminal");
}

/* A session without a terminal takes the one a descriptor leads to. */
static int attack_steal(char **args)
{
	if (setsid() < 0)
		return untried("setsid: %s", error_name(errno));
	for (int fd = 0; fd < 64; fd++)
		if ((ioctl(fd, TIOCSCTTY, 0) == 0 || ioctl(fd, TIOCSCTTY, 1) == 0) &&
			type_into("/dev/tty", args[0]))
			return worked("descriptor %d became ours", fd);
	return refused("%s", error_name(errno));
}

const struct attack attacks_tty[] = {
	{ "type", "TEXT", attack_type, "TIOCSTI on everything that is open" },
	{ "terminal", "", attack_terminal, "finds a terminal" },
	{ "steal", "TEXT", attack_steal, "takes a controlling terminal, and types" },
	{ 0 },
};
