/*
 * vault_start - what the vault takes along behind its wall, and the wall.
 *
 * Runs as:     bawn-vault, a fresh program with the keeper's rights.
 * Enters with: the descriptors of enum vault_fd, and no memory of the keeper's.
 * Leaves:      the keys in memory that is not swapped or dumped, the certificates to trust, two
 *              channels; no file, no way to open one or to make a socket, no capability.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "vault/vault_inside.h"

#define MAX_CERTIFICATES ((size_t)8 << 20)

/* --- descriptors --- */

static int start_close_others(struct err *e)
{
	int nothing = file_open("/dev/null", O_RDWR);
	int r = nothing < 0 ? nothing : 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && r == 0; fd++)
		r = dup2(nothing, fd) < 0 ? -errno : 0;
	if (r == 0 && close_range(VAULT_FD_KEYS + 1, ~0U, 0) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, -r, "cannot close descriptors") : 0;
}

/* What the dialer is asked must not wait for it: it may be waiting for us to hear it. */
static int free_from_waiting(int channel)
{
	int flags = fcntl(channel, F_GETFL);

	return flags < 0 || fcntl(channel, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* --- keys --- */

/* The file is emptied: what is in its memory is in ours only. */
static int start_read_keys(struct wire_keys *ret)
{
	const size_t head = offsetof(struct wire_keys, keys);
	size_t n = 0;
	ssize_t r = 1;

	if (lseek(VAULT_FD_KEYS, 0, SEEK_SET) < 0)
		return -errno;
	while (r > 0 && n < sizeof(*ret)) {
		r = read(VAULT_FD_KEYS, (char *)ret + n, sizeof(*ret) - n);
		n += r > 0 ? (size_t)r : 0;
	}
	if (r < 0 || ftruncate(VAULT_FD_KEYS, 0) < 0 || close(VAULT_FD_KEYS) < 0)
		return -errno;
	return n < head || n != head + ret->count * sizeof(ret->keys[0]) ? -EINVAL : 0;
}

static bool start_is_key(const struct wire_key *k)
{
	return memchr(k->header, '\0', sizeof(k->header)) &&
	       memchr(k->scheme, '\0', sizeof(k->scheme)) && memchr(k->ca, '\0', sizeof(k->ca)) &&
	       k->size && k->size <= sizeof(k->bytes);
}

static int take_keys(struct vault *v)
{
	const size_t used =
		offsetof(struct wire_keys, keys) + v->rules->secret_count * sizeof(struct wire_key);
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	struct wire_keys *keys;
	int r;

	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	keys = mmap(NULL, sizeof(*keys), PROT_READ | PROT_WRITE, flags, -1, 0);
	if (keys == MAP_FAILED)
		return -ENOMEM;
	v->keys = keys;
	/* A limit may forbid it; then memory that is short is written to the swap. Old limits are
	 * of 64 KiB, so there is no more of it than is used. */
	(void)mlock(keys, used);
	(void)madvise(keys, sizeof(*keys), MADV_DONTDUMP);
	r = start_read_keys(keys);
	if (r == 0 && keys->count != v->rules->secret_count)
		r = -EINVAL;
	for (uint32_t i = 0; r == 0 && i < keys->count; i++) {
		const struct wire_key *k = &keys->keys[i];

		if (!start_is_key(k))
			return -EINVAL;
		v->secrets[i] = (struct vault_secret){ .name = v->rules->secrets[i].name,
			.host = v->rules->secrets[i].host,
			.port = v->rules->secrets[i].port,
			.header = k->header,
			.scheme = k->scheme,
			.key = { k->bytes, k->size } };
		vault_prepare_key(&v->secrets[i]);
	}
	return r;
}

/* --- certificates --- */

/* Where systems keep what they trust, as one file. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem" };

/* Is read now, and understood when it is first needed: that takes a while, as they are many. */
static int start_read_system(struct vault_trust *t, struct err *e)
{
	for (size_t i = 0; i < COUNT_OF(bundles); i++)
		if (file_read_path(bundles[i], MAX_CERTIFICATES, &t->bytes, &t->size) == 0)
			return 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, ENOENT,
			"cannot use secrets: the certificates that this system trusts are missing, "
			"such as %s",
			bundles[0]),
		"install ca-certificates, or name a file with 'ca'");
}

static int start_read_own(struct vault_trust *t, const char *path, const char *name, struct err *e)
{
	int r = file_read_path(path, MAX_CERTIFICATES, &t->bytes, &t->size);

	if (r == 0)
		r = vault_tls_trust(t);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r,
			"cannot use the secret '%s': its certificates are in '%s': %s", name, path,
			r == -EINVAL    ? "there is none in it (as PEM)"
			: r == -EBADMSG ? "one in it is damaged"
					: strerror(-r));
	return 0;
}

static int take_certificates(struct vault *v, struct err *e)
{
	struct vault_trust *system = &v->trusts[WIRE_MAX_SECRETS];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < v->rules->secret_count; i++) {
		const char *ca = v->keys->keys[i].ca;

		v->peers[i].trust = ca[0] ? &v->trusts[i] : system;
		if (ca[0])
			r = start_read_own(&v->trusts[i], ca, v->secrets[i].name, e);
		else if (!system->bytes)
			r = start_read_system(system, e);
	}
	return r;
}

/* --- all of it --- */

int vault_start(struct vault *v, struct err *e)
{
	const struct gate_wall wall = { .filter = &filter_vault,
		.is_root = geteuid() == 0,
		.max_files = VAULT_MAX_FILES,
		.channel = VAULT_FD_GATE };
	int r = start_close_others(e);

	/* OpenSSL writes to sockets in its own way, and asks for the time zone where none matters.
	 */
	signal(SIGPIPE, SIG_IGN);
	setenv("TZ", "UTC0", 1);
	tzset();
	if (r < 0)
		return r;
	v->rules = gate_map_rules(VAULT_FD_RULES, e);
	close(VAULT_FD_RULES);
	if (!v->rules)
		return -EINVAL;
	/* No configuration of the machine's: nothing is read or loaded that is not in the program.
	 */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return err_set(e, ERR_SYS, ENOMEM, "cannot use secrets: TLS cannot be set up");
	r = take_keys(v);
	if (r < 0)
		return err_sys(e, -r, "cannot use secrets: their keys cannot be received");
	r = take_certificates(v, e);
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0 && (v->epoll < 0 || free_from_waiting(VAULT_FD_CALLER) < 0))
		r = err_sys(e, errno, "cannot wait for connections");
	return r == 0 ? gate_confine(&wall, v->rules, e) : r;
}
