/*
 * sign_keys - the operator's signing key, in STATE/keys.
 *
 * Runs as:  the operator, in commands and the keeper; never in a cage.
 * Leaves:   signing.pem, signing.pub, and former/ID.pub of every key that was replaced. Each is
 *           written whole to a draft, fsynced, and then renamed; the maker of keys holds a lock on
 *           the folder meanwhile.
 * Must not: leave a secret in freed memory, or put one into a message.
 *
 * The former public key is kept first, then the new public key is written, then the private one:
 * whenever power fails, everything signed so far has its public key among the operator's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/sign/sign.h"

#define FORMER    "former"
#define FILE_SIZE 4096 /* more is no key of ours */

/* --- files --- */

static int keys_fail(const char *doing, const char *name, int num, struct err *e)
{
	return err_sys(e, num, "cannot %s the signing key: %s", doing, name);
}

/* Opens a folder of ours; with `makes` it is made where missing, and that reaches the disk. */
static int keys_open_folder(int at, const char *name, bool makes, struct err *e)
{
	own_fd int fd = file_open_name(at, name, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd == -ENOENT && makes) {
		if ((mkdirat(at, name, 0700) < 0 && errno != EEXIST) || fsync(at) < 0)
			return keys_fail("make", name, errno, e);
		fd = file_open_name(at, name, O_RDONLY | O_DIRECTORY);
	}
	if (fd == -ENOENT)
		return fd;
	if (fd < 0)
		return keys_fail(makes ? "make" : "find", name, -fd, e);
	if (fstat(fd, &st) < 0)
		return keys_fail("find", name, errno, e);
	if (st.st_uid != ids_user() || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use the folder '%s' of the state: it is not yours, or others can "
			"write to it",
			name);
	return take_fd(&fd);
}

/* Opens a plain file; whose it is and what it is decide before a byte of it is read. */
static int open_plain(int folder, const char *name, bool is_secret, struct err *e)
{
	own_fd int fd = file_open_name(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd == -ENOENT)
		return fd;
	if (fd < 0)
		return keys_fail("read", name, -fd, e);
	if (fstat(fd, &st) < 0)
		return keys_fail("read", name, errno, e);
	if (!S_ISREG(st.st_mode) || st.st_uid != ids_user())
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use the signing key: %s is not a plain file of yours", name);
	if (is_secret && st.st_mode & 0177)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot use the signing key: %s has mode %04o, so others may have "
				"read it",
				name, (unsigned)st.st_mode & 07777),
			"if nobody has, chmod 600 it; if somebody may have, make another: bawn key "
			"init --new");
	return take_fd(&fd);
}

/* The size, or -errno; a file that is larger than any key is none. */
static ssize_t read_plain(
	int folder, const char *name, bool is_secret, char ret[static FILE_SIZE], struct err *e)
{
	own_fd int fd = open_plain(folder, name, is_secret, e);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = file_read_text(fd, ret, FILE_SIZE);
	return n < 0 ? keys_fail("read", name, (int)-n, e) : n;
}

/* A file whole and on the disk under its name, in place of the one that may be there, or not. */
static int put_file(int folder, const char *name, mode_t mode, const struct buf *text)
{
	char draft[SIGN_ID_SIZE + 16];
	own_fd int fd = -1;
	int r;

	snprintf(draft, sizeof(draft), "%s.new", name);
	/* One may be left of somebody who was killed; who holds the lock is alone. */
	unlinkat(folder, draft, 0);
	fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	r = fd < 0 ? -errno : text->failed ? -ENOMEM : file_write_all(fd, text->data, text->len);
	if (r == 0 && (fsync(fd) < 0 || renameat(folder, draft, folder, name) < 0))
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(folder, draft, 0);
	return r < 0 ? r : fsync(folder) < 0 ? -errno : 0;
}

/* --- reading --- */

static int load_private(int keys, struct sign_key *ret, struct err *e)
{
	char pem[FILE_SIZE];
	ssize_t n = read_plain(keys, SIGN_KEY_FILE, true, pem, e);
	int r = n < 0 ? (int)n : sign_read_private(pem, (size_t)n, ret, e);

	explicit_bzero(pem, sizeof(pem));
	if (n >= 0 && r < 0)
		err_prefix(e, "cannot use the signing key %s", SIGN_KEY_FILE);
	return r;
}

static int load_public(int keys, const char *name, struct sign_public *ret, struct err *e)
{
	char pem[FILE_SIZE];
	ssize_t n = read_plain(keys, name, false, pem, e);
	int r = n < 0 ? (int)n : sign_read_public(pem, (size_t)n, ret, e);

	if (n >= 0 && r < 0)
		err_prefix(e, "cannot use the public key %s", name);
	return r;
}

int sign_load_key(int state, struct sign_key *ret, struct err *e)
{
	own_fd int keys = keys_open_folder(state, SIGN_KEY_FOLDER, false, e);

	return keys < 0 ? keys : load_private(keys, ret, e);
}

bool sign_has_key(int state)
{
	/* The digits of an Ed25519 key between the lines around them. */
	static const off_t size = sizeof("-----BEGIN PRIVATE KEY-----\n") - 1 + 65 +
				  sizeof("-----END PRIVATE KEY-----\n") - 1;
	struct stat st;

	return fstatat(state, SIGN_KEY_FOLDER "/" SIGN_KEY_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600 && st.st_uid == geteuid() &&
	       st.st_size == size;
}

int sign_load_public(int state, struct sign_public *ret, struct err *e)
{
	own_fd int keys = keys_open_folder(state, SIGN_KEY_FOLDER, false, e);

	return keys < 0 ? keys : load_public(keys, SIGN_PUBLIC_FILE, ret, e);
}

/* It becomes part of a path. */
static bool keys_is_id(const char *text)
{
	size_t n = 0;

	while (n < SIGN_ID_SIZE && str_hex_digit(text[n]) >= 0)
		n++;
	return n == SIGN_ID_SIZE - 1 && !text[n];
}

/* A file may be missing, and may not be named after another key than the one in it. */
static int find_public(
	int folder, const char *name, const char *id, struct sign_public *ret, struct err *e)
{
	struct sign_public found;
	int r = load_public(folder, name, &found, e);

	if (r < 0)
		return r;
	if (!str_eq(found.id, id))
		return -ENOENT;
	*ret = found;
	return 0;
}

int sign_find_own(int state, const char *id, struct sign_public *ret, struct err *e)
{
	own_fd int keys = -1, former = -1;
	char name[SIGN_ID_SIZE + 8];
	int r;

	if (!keys_is_id(id))
		return -ENOENT;
	keys = keys_open_folder(state, SIGN_KEY_FOLDER, false, e);
	r = keys < 0 ? keys : find_public(keys, SIGN_PUBLIC_FILE, id, ret, e);
	if (r != -ENOENT || keys < 0)
		return r;
	former = keys_open_folder(keys, FORMER, false, e);
	snprintf(name, sizeof(name), "%s.pub", id);
	return former < 0 ? former : find_public(former, name, id, ret, e);
}

/* --- making --- */

static int put_public(int folder, const char *name, const struct sign_public *key, struct err *e)
{
	own(buf) struct buf text = { .max = FILE_SIZE };
	int r;

	sign_print_public(key, &text);
	r = put_file(folder, name, 0644, &text);
	return r < 0 ? keys_fail("make", name, -r, e) : 0;
}

static int put_private(int folder, const struct sign_key *key, struct err *e)
{
	own(buf) struct buf text = { .max = FILE_SIZE };
	int r;

	sign_print_private(key, &text);
	r = put_file(folder, SIGN_KEY_FILE, 0600, &text);
	if (text.data)
		explicit_bzero(text.data, text.cap);
	return r < 0 ? keys_fail("make", SIGN_KEY_FILE, -r, e) : 0;
}

/* The public key of the one that is replaced. Where that cannot be read its public file has it. */
static int keep_former(int keys, struct err *e)
{
	own_fd int former = -1;
	own(sign_key) struct sign_key key = { 0 };
	char name[SIGN_ID_SIZE + 8];
	int r = load_private(keys, &key, NULL);

	if (r < 0)
		r = load_public(keys, SIGN_PUBLIC_FILE, &key.public, NULL);
	if (r < 0)
		return 0; /* there is none, or nothing that could have signed */
	former = keys_open_folder(keys, FORMER, true, e);
	if (former < 0)
		return former;
	snprintf(name, sizeof(name), "%s.pub", key.public.id);
	return put_public(former, name, &key.public, e);
}

/* There is one already. Its public file is put right where power failed before it was. */
static int take_existing(int keys, const struct sign_key *key, struct err *e)
{
	struct sign_public public;
	int r = load_public(keys, SIGN_PUBLIC_FILE, &public, NULL);

	if (r < 0 || !str_eq(public.id, key->public.id))
		r = put_public(keys, SIGN_PUBLIC_FILE, &key->public, e);
	return r < 0 ? r : -EEXIST;
}

static int make_new(struct sign_key *ret, struct err *e)
{
	uint8_t seed[SIGN_SEED_SIZE];
	ssize_t n = getrandom(seed, sizeof(seed), 0); /* so few bytes come whole */

	if (n != (ssize_t)sizeof(seed))
		return err_set(e, ERR_SYS, n < 0 ? errno : EIO,
			"cannot make a signing key: no random numbers");
	sign_derive_key(seed, ret);
	explicit_bzero(seed, sizeof(seed));
	return 0;
}

int sign_make_key(int state, bool replaces, struct sign_key *ret, struct err *e)
{
	own_fd int keys = keys_open_folder(state, SIGN_KEY_FOLDER, true, e);
	int r;

	if (keys < 0)
		return keys;
	if (flock(keys, LOCK_EX) < 0)
		return keys_fail("make", "its lock", errno, e);
	r = replaces ? keep_former(keys, e) : load_private(keys, ret, e);
	if (!replaces && r == 0)
		return take_existing(keys, ret, e);
	if (r < 0 && (replaces || r != -ENOENT))
		return r;
	r = make_new(ret, e);
	if (r == 0)
		r = put_public(keys, SIGN_PUBLIC_FILE, &ret->public, e);
	if (r == 0)
		r = put_private(keys, ret, e);
	if (r < 0)
		sign_key_done(ret);
	return r;
}
