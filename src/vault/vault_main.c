/*
 * vault_main - the process that has the keys.
 *
 * Runs as:     bawn-vault, which the keeper starts with its own rights for a run with secrets. It
 * is a program of its own so that bawn does not need OpenSSL. Enters with: the descriptors of enum
 * vault_fd, and no memory of the keeper's. Leaves:      its decisions, sent to the gate. Must not:
 * read a byte of the cage's before it is confined; have an open file, a socket that neither the
 * gate nor the dialer gave it, or a capability after that; outlive the gate.
 *
 * Before it is confined it reads the keys into memory that is never swapped or dumped, and the
 * certificates to trust. Then the gate passes it the connections that the cage makes to bawn-host,
 * port 80. It asks the dialer for a connection to the host of the secret that a request names,
 * speaks TLS over it, passes requests on with the key, and answers without it.
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

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "vault/vault_inside.h"
#include "wire/wire.h"

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

/* Sending to the dialer must not block: it may be blocked on sending to us. */
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

/* Bundles of trusted certificates, as systems have them. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem" };

/* Reads the file now and parses it when it is first needed, because that takes long. */
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

/* Takes the keys and the certificates, and then everything else away from this process. */
static int vault_start(struct vault *v, struct err *e)
{
	const struct gate_wall wall = { .filter = &filter_vault,
		.is_root = geteuid() == 0,
		.max_files = VAULT_MAX_FILES,
		.channel = VAULT_FD_GATE };
	int r = start_close_others(e);

	/*
	 * OpenSSL writes to sockets in its own way, and asks for the time zone where none matters.
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
	/*
	 * No configuration of the machine's: nothing is read or loaded that is not in the program.
	 */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return err_set(e, ERR_SYS, ENOMEM, "cannot use secrets: TLS cannot be set up");
	r = take_keys(v);
	if (r < 0)
		return err_sys(e, -r, "cannot use secrets: their keys cannot be received");
	r = take_certificates(v, e);
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0 && (v->epoll < 0 || free_from_waiting(VAULT_FD_DIALER) < 0))
		r = err_sys(e, errno, "cannot wait for connections");
	return r == 0 ? gate_confine(&wall, v->rules, e) : r;
}

#define MAX_EVENTS  64
#define MAX_ANSWERS 64
#define SWEEP_MS    1000

/* Source of an event. */
enum source {
	FROM_GATE,
	FROM_DIALER,
	FROM_CONNS, /* and those that follow: one for each place */
};

int vault_listen(const struct vault *v, int fd, uint32_t index)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u64 = FROM_CONNS + index };

	return epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void vault_tell(const struct vault *v, const struct wire_vault_message *m)
{
	(void)v;
	/* The gate always reads, and soon: this waits for it. */
	if (wire_send_message(VAULT_FD_GATE, m, sizeof(*m), -1) < 0)
		_exit(EXIT_FAILURE);
}

static void hear_gate(struct vault *v)
{
	struct wire_visit visit = { 0 };
	int fd = -1, r = wire_receive_message(VAULT_FD_GATE, &visit, sizeof(visit), &fd);

	if (r == 0 && fd >= 0)
		vault_conn_take(v, fd);
	else if (fd >= 0)
		close(fd);
	v->is_ending = r < 0;
}

/* All that it has to say, but not for ever. */
static void hear_dialer(struct vault *v)
{
	int r = 0;

	for (int i = 0; r == 0 && i < MAX_ANSWERS; i++) {
		struct wire_called m = { 0 };
		int fd = -1;

		r = wire_receive_message(VAULT_FD_DIALER, &m, sizeof(m), &fd);
		m.other[sizeof(m.other) - 1] = '\0';
		if (r == 0)
			vault_conn_called(v, &m, fd);
		else if (fd >= 0)
			close(fd);
	}
	v->is_ending |= r < 0 && r != -EAGAIN;
}

/* Until the gate is gone, or wants no more; or the dialer is, without whom nothing is reached. */
static int vault_main_serve(struct vault *v)
{
	struct epoll_event events[MAX_EVENTS];

	while (!v->is_ending) {
		int n = epoll_wait(v->epoll, events, MAX_EVENTS,
			v->ready_count ? 0
			: v->count     ? SWEEP_MS
				       : -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		v->now_ns = clock_ns();
		for (int i = 0; i < n && !v->is_ending; i++) {
			uint64_t source = events[i].data.u64;

			if (source == FROM_GATE)
				hear_gate(v);
			else if (source == FROM_DIALER)
				hear_dialer(v);
			else
				vault_conn_run(v, &v->conns[source - FROM_CONNS]);
		}
		vault_go_on(v);
		vault_drop_old(v);
	}
	return 0;
}

static int listen_to_channels(const struct vault *v)
{
	static const int channels[] = {
		[FROM_GATE] = VAULT_FD_GATE, [FROM_DIALER] = VAULT_FD_DIALER
	};

	for (uint64_t i = 0; i < FROM_CONNS; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };

		if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, channels[i], &event) < 0)
			return -errno;
	}
	return 0;
}

/* Started by hand, or by another version of bawn. */
static int say_what_it_is(void)
{
	static const char sentence[] =
		"bawn-vault is started by bawn, for runs that have secrets; it "
		"does nothing else\n";

	(void)!write(STDERR_FILENO, sentence, sizeof(sentence) - 1);
	return EXIT_FAILURE;
}

static int live(struct vault *v)
{
	struct wire_vault_message m = { .kind = WIRE_VAULT_READY };

	if (vault_start(v, &m.err) == 0 && listen_to_channels(v) < 0)
		err_set(&m.err, ERR_SYS, errno,
			"cannot wait for connections: the vault's listener failed");
	if (m.err.kind != ERR_NONE)
		m.kind = WIRE_VAULT_FAILED;
	if (wire_send_message(VAULT_FD_GATE, &m, sizeof(m), -1) < 0 || m.kind != WIRE_VAULT_READY ||
		vault_main_serve(v) < 0)
		return EXIT_FAILURE;
	vault_close_all(v);
	return EXIT_SUCCESS;
}

int main(void)
{
	static _Alignas(4096) struct vault vault;

	if (fcntl(VAULT_FD_RULES, F_GET_SEALS) < 0)
		return say_what_it_is();
	/* Requests are in it, with their keys. Where pages are larger, it is not dumped either: see
	 * gate_confine. */
	(void)madvise(&vault, sizeof(vault) & ~(size_t)4095, MADV_DONTDUMP);
	return live(&vault);
}
