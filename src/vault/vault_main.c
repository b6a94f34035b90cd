/*
 * vault - the process that has the keys.
 *
 * Runs as:     a program of its own, which the keeper starts for a run with secrets: OpenSSL is
 *              large, and bawn is better without it.
 * Enters with: the descriptors of enum vault_fd.
 * Leaves:      what it decided, told to the gate.
 * Must not:    read a byte of the cage's before its wall stands; have a file, or a socket that the
 *              gate or the dialer did not give it; outlive the gate.
 *
 * The gate gives it the connections that the cage makes to bawn-host, port 80. It asks the dialer
 * for a connection to the host of the secret that a request names, speaks TLS over it, and passes
 * requests on with the key, and answers back without.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "vault/vault_inside.h"
#include "wire/wire.h"

#define MAX_EVENTS  64
#define MAX_ANSWERS 64
#define SWEEP_MS    1000

/* What an event is about. */
enum source {
	FROM_GATE,
	FROM_CALLER,
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

		r = wire_receive_message(VAULT_FD_CALLER, &m, sizeof(m), &fd);
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
			else if (source == FROM_CALLER)
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
		[FROM_GATE] = VAULT_FD_GATE, [FROM_CALLER] = VAULT_FD_CALLER
	};

	for (uint64_t i = 0; i < FROM_CONNS; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };

		if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, channels[i], &event) < 0)
			return -errno;
	}
	return 0;
}

/* By hand, or by a bawn of another kind. */
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
