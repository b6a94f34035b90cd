/*
 * preflight - carries out data/preflight.sh: the same files, the same comparisons, the same codes.
 *
 * Runs as:  the init of a cage, before it releases the command; in the cage of a session the
 *           process that becomes the command.
 * Must not: use a library, or decide anything that the text does not say. tests/cage/preflight.py
 *           gives both the same /proc, and compares their codes.
 */
#include "cage/init/preflight.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/call.h"

/* More than the 340 lines that the kernel allows in a map, and than a status needs up to its ids.
 */
static char text[16384];

struct span {
	const char *at, *end;
};

/* All of a file, as far as it fits; of one that cannot be read, nothing. */
static struct span read_text(const char *path)
{
	long fd = call(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long size = 0, n = fd < 0 ? 0 : 1;

	while (n > 0 && size < (long)sizeof(text)) {
		n = call(__NR_read, fd, (long)(text + size), (long)sizeof(text) - size, 0, 0, 0);
		size += n > 0 ? n : 0;
	}
	if (fd >= 0)
		call(__NR_close, fd, 0, 0, 0, 0, 0);
	return (struct span){ text, text + size };
}

/* Takes the next line off a text; the read of a shell fails for one without its newline. */
static int take_line(struct span *from, struct span *ret)
{
	for (const char *p = from->at; p < from->end; p++) {
		if (*p != '\n')
			continue;
		*ret = (struct span){ from->at, p };
		from->at = p + 1;
		return 1;
	}
	return 0;
}

/* Takes the next word off a line, which is empty at the line's end. */
static struct span take_word(struct span *from)
{
	struct span word;

	while (from->at < from->end && (*from->at == ' ' || *from->at == '\t'))
		from->at++;
	word.at = from->at;
	while (from->at < from->end && *from->at != ' ' && *from->at != '\t')
		from->at++;
	word.end = from->at;
	return word;
}

static int is_other(struct span word)
{
	if (word.at == word.end || *word.at == '0')
		return 0;
	for (const char *p = word.at; p < word.end; p++)
		if (*p < '0' || *p > '9')
			return 0;
	return 1;
}

static int is_text(struct span word, const char *wanted)
{
	while (word.at < word.end && *wanted && *word.at == *wanted) {
		word.at++;
		wanted++;
	}
	return word.at == word.end && !*wanted;
}

static int is_mapped(void)
{
	struct span map = read_text("/proc/self/uid_map"), line;
	int is_safe = 0;

	/* What did not fit was not read, and may be a line with 0. */
	if (map.end == text + sizeof(text))
		return 0;
	while (take_line(&map, &line)) {
		take_word(&line);
		is_safe = is_other(take_word(&line));
		if (!is_safe)
			break;
	}
	return is_safe;
}

static int is_user(void)
{
	struct span status = read_text("/proc/self/status"), line;

	while (take_line(&status, &line))
		if (is_text(take_word(&line), "Uid:"))
			/* NOLINTNEXTLINE(misc-redundant-expression): two words */
			return is_other(take_word(&line)) && is_other(take_word(&line));
	return 0;
}

enum preflight preflight_run(const char *home)
{
	struct span all = { home, home };

	while (*all.end)
		all.end++;
	if (!is_mapped() && !is_user())
		return PREFLIGHT_ROOT;
	return is_text(all, "/home/agent") ? PREFLIGHT_PASSED : PREFLIGHT_HOME;
}
