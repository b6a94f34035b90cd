/*
 * cli_verify - which record is meant, and whose keys count.
 *
 * Runs as:  whoever wants to know.
 * Reads:    what the words and options name; the operator's public keys. No private one.
 */
#include "cli/cli_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_kept.h"
#include "cli/cli_tar.h"

#define MOST_TEXTS   ((size_t)4 << 20)
#define LEAST_PREFIX 8 /* of a run's id: a day */

void cli_verifier_init(struct cli_verifier *x, const struct cli *cli)
{
	*x = (struct cli_verifier){ .cli = cli, .state = -1, .keys.state = -1 };
	arena_init(&x->arena, MOST_TEXTS);
}

void cli_verifier_done(struct cli_verifier *x)
{
	if (x->state >= 0)
		close(x->state);
	arena_done(&x->arena);
}

int cli_verifier_take_keys(struct cli_verifier *x, struct err *e)
{
	struct err missing = { 0 };

	for (size_t i = 0; i < x->cli->given_count; i++) {
		const struct cli_given *given = &x->cli->given[i];

		if (!cli_is(given, CLI_OPT_KEY))
			continue;
		if (verify_add_key(&x->keys, given->value, &x->arena, e) < 0) {
			cli_complain_err(e);
			return CLI_NO;
		}
	}
	/* Whoever has no state has no keys either; that is said when one is missed. */
	x->state = record_open_state(run_home(), false, &missing);
	x->keys.state = x->state;
	return CLI_OK;
}

/* --- where it is --- */

void cli_found_done(struct cli_found *f)
{
	free(f->bytes);
	for (size_t i = 0; f->unpacked[0] && f->folder >= 0 && cli_export_files[i]; i++)
		unlinkat(f->folder, cli_export_files[i], 0);
	if (f->folder >= 0)
		close(f->folder);
	if (f->unpacked[0])
		rmdir(f->unpacked);
}

static int verify_fail(const char *name, int num)
{
	cli_complain("cannot read the record '%s': %s", name, strerror(num));
	return CLI_NO;
}

static int verify_read_bytes(int fd, const char *name, struct cli_found *ret)
{
	int r = fd < 0 ? fd : file_read_all(fd, VERIFY_MAX_FILE, &ret->bytes, &ret->size);

	return r < 0 ? verify_fail(name, -r) : CLI_OK;
}

/* An archive of record export, into a folder of its own until the end. */
static int unpack(int fd, const char *name, struct cli_found *ret)
{
	own_fd int record = -1;
	struct err e = { 0 };

	snprintf(ret->unpacked, sizeof(ret->unpacked), "/tmp/bawn-record-XXXXXX");
	if (!mkdtemp(ret->unpacked)) {
		ret->unpacked[0] = '\0';
		cli_complain("cannot make a folder in /tmp: %s", strerror(errno));
		return CLI_FAILED;
	}
	ret->folder = file_open(ret->unpacked, O_RDONLY | O_DIRECTORY);
	if (ret->folder < 0)
		return verify_fail(name, -ret->folder);
	if (cli_tar_read(fd, ret->folder, &e) < 0) {
		cli_complain_about(&e, "cannot read the archive '%s': %s", name, e.text);
		return CLI_NO;
	}
	record = file_open_name(ret->folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return verify_read_bytes(record, name, ret);
}

/* An archive may come through a pipe too. */
static int find_input(struct cli_found *ret)
{
	own_fd int copy = memfd_create("record", MFD_CLOEXEC);
	int status = verify_read_bytes(STDIN_FILENO, "standard input", ret);

	if (status != CLI_OK || copy < 0 || file_write_all(copy, ret->bytes, ret->size) < 0 ||
		lseek(copy, 0, SEEK_SET) < 0 || !cli_is_tar(copy))
		return status;
	free(ret->bytes);
	ret->bytes = NULL;
	return unpack(copy, "standard input", ret);
}

static int find_run(const struct cli_verifier *x, const char *word, struct cli_found *ret)
{
	char id[RECORD_RUN_SIZE];
	own_fd int fd = -1;
	int status = cli_open_run(x->cli, word, id, &ret->folder);

	/* Why ever there is none to verify, that is a no. */
	if (status != CLI_OK || ret->folder < 0)
		return CLI_NO;
	fd = file_open_name(ret->folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	if (fd != -ENOENT)
		return verify_read_bytes(fd, id, ret);
	if (flock(ret->folder, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		cli_complain("cannot verify run %s: it is still running, and its record is written "
			     "when it ends",
			id);
	else
		cli_complain("cannot verify run %s: it has no signed record", id);
	return CLI_NO;
}

/* The folder that a file is in, by its path. -1 where it cannot be opened: then nothing is there.
 */
static int verify_open_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	int n = snprintf(
		parent, sizeof(parent), "%.*s.", slash ? (int)(slash - path) + 1 : 0, path);
	int fd = n < (int)sizeof(parent) ? file_open(parent, O_RDONLY | O_DIRECTORY) : -1;

	return fd < 0 ? -1 : fd;
}

static int verify_find_file(const char *path, struct cli_found *ret)
{
	own_fd int fd = file_open_input(path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return verify_fail(path, fd < 0 ? -fd : errno);
	if (cli_is_tar(fd))
		return unpack(fd, path, ret);
	if (!S_ISDIR(st.st_mode)) {
		ret->folder = verify_open_parent(path);
		return verify_read_bytes(fd, path, ret);
	}
	ret->folder = take_fd(&fd);
	fd = file_open_name(ret->folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return verify_read_bytes(fd, path, ret);
}

int cli_find_record(const struct cli_verifier *x, const char *word, struct cli_found *ret)
{
	*ret = (struct cli_found){ .folder = -1 };
	if (word && str_eq(word, "-"))
		return find_input(ret);
	if (!word || (strlen(word) >= LEAST_PREFIX && record_is_run(word, false)))
		return find_run(x, word, ret);
	return verify_find_file(word, ret);
}

int cli_load_record(const struct cli_verifier *x, const char *word, struct cli_found *ret_found,
	struct verify_record *ret, struct verify_report *report, struct err *e)
{
	int status = cli_find_record(x, word, ret_found);

	verify_record_init(ret);
	if (status != CLI_OK)
		return status;
	ret->folder = ret_found->folder;
	if (verify_load(ret, ret_found->bytes, ret_found->size, &x->keys, report, e) == 0)
		return CLI_OK;
	err_prefix(e, "cannot verify '%s'", word ? word : "the newest record");
	cli_complain_err(e);
	return CLI_NO;
}
