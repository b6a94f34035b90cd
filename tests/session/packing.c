/*
 * packing - workspaces as bytes, without a store.
 *
 *     packing ROOT pack ID N FILE          and prints how many entries were left out
 *     packing ROOT unpack ID N FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "session/folder/session.h"
#include "session/folder/session_piece.h"

static int tell(int r, const struct err *e)
{
	if (r < 0)
		fprintf(stderr, "packing: %s\n", e->text);
	return r < 0 ? (r == -EFBIG ? 3 : 1) : 0;
}

static int pack(int root, const char *id, uint64_t number, const char *path)
{
	own(buf) struct buf bytes = { .max = STORE_MAX_SAVED };
	struct err e = { 0 };
	own_fd int workspace = session_open_workspace(root, id, number, &e), out = -1;
	struct piece p;
	int r = workspace < 0 ? workspace : session_pack(workspace, &bytes, &e);

	/* What is written can be read. */
	if (r == 0)
		r = piece_check(bytes.data, bytes.len, &p, &e);
	if (r < 0)
		return tell(r, &e);
	printf("%" PRIu64 "\n", p.left_out);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return out < 0 || file_write_all(out, bytes.data, bytes.len) < 0 ? 2 : 0;
}

static int unpack(int root, const char *id, uint64_t number, const char *path)
{
	own_free char *bytes = NULL;
	struct err e = { 0 };
	size_t n = 0;

	if (file_read_path(path, STORE_MAX_SAVED * 2, &bytes, &n) < 0)
		return 2;
	return tell(session_unpack(root, id, number, bytes, n, &e), &e);
}

int main(int argc, char **argv)
{
	own_fd int root = argc == 6 ? file_open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	uint64_t number;

	signal(SIGXFSZ, SIG_IGN);
	if (root < 0)
		return 2;
	number = strtoull(argv[4], NULL, 10);
	return (str_eq(argv[2], "pack") ? pack : unpack)(root, argv[3], number, argv[5]);
}
