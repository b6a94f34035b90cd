/*
 * Signs what it is given as bawn signs: make_envelope STATE <PAYLOAD. The key is STATE's, made
 * where there is none; the envelope is printed.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/file.h"
#include "base/own.h"
#include "proof/sign/sign.h"

#define MOST ((size_t)1 << 26)

int main(int argc, char **argv)
{
	own(sign_key) struct sign_key key = { 0 };
	own(buf) struct buf out = { .max = MOST * 2 };
	own_fd int state = argc == 2 ? file_open(argv[1], O_RDONLY | O_DIRECTORY) : -EINVAL;
	own_free char *payload = NULL;
	struct err e = { 0 };
	size_t size;
	int r = state < 0 ? state : file_read_all(STDIN_FILENO, MOST, &payload, &size);

	if (r == 0)
		r = sign_make_key(state, false, &key, &e);
	if (r < 0 && r != -EEXIST) {
		fprintf(stderr, "make_envelope: %d %s\n", r, e.text);
		return 1;
	}
	sign_print_envelope(&key, payload, size, &out);
	return out.failed || file_write_all(STDOUT_FILENO, out.data, out.len) < 0;
}
