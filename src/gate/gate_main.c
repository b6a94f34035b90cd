/*
 * gate - the process between the cage and the world.
 *
 * Runs as:     a fresh start of bawn's program by the keeper; unprivileged, also where the keeper
 *              is root.
 * Enters with: the descriptors of enum gate_fd, and no memory of the keeper's.
 * Leaves:      what it decided, told to the keeper; no connection.
 * Must not:    read a byte of the cage's before its wall stands; allocate after that; outlive the
 *              keeper. When it ends, for whatever reason, its sockets end with it, and with them
 *              the network of the cage.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/gate_inside.h"
#include "wire/wire.h"

#define MAX_EVENTS   256
#define SWEEP_NS     (GATE_SECOND_NS / 4)
#define TELL_NS      (GATE_SECOND_NS / 50) /* between two tellings: a flood is one row, not many */
#define LAST_NS      (2 * GATE_SECOND_NS)
#define RESERVED     64 /* descriptors for all that is not a connection */
#define PER_CONN     6  /* two sockets, and a pipe for each way */
#define WANTED_FILES (PER_CONN * GATE_MAX_CONNS + GATE_MAX_LISTENERS + GATE_MAX_ASKERS + RESERVED)

/* --- events --- */

static int main_add(
	struct gate *g, int fd, enum gate_source source, uint32_t index, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)source << 32 | index };

	return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int gate_add_source(struct gate *g, int fd, enum gate_source source, uint32_t index)
{
	return main_add(g, fd, source, index, EPOLLIN);
}

int gate_add_conn(struct gate *g, const struct gate_conn *c, bool is_inside)
{
	return main_add(g, is_inside ? c->inside : c->outside,
		is_inside ? GATE_FROM_INSIDE : GATE_FROM_OUTSIDE, (uint32_t)(c - g->conns),
		EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET);
}

static void main_hear(struct gate *g, const struct epoll_event *event)
{
	uint32_t index = (uint32_t)event->data.u64;

	switch ((enum gate_source)(event->data.u64 >> 32)) {
	case GATE_FROM_KEEPER:
		/* It never says anything but that it is over. */
		g->is_ending = true;
		epoll_ctl(g->epoll, EPOLL_CTL_DEL, GATE_FD_KEEPER, NULL);
		return;
	case GATE_FROM_CALLER:
		gate_hear_dialer(g);
		return;
	case GATE_FROM_VAULT:
		gate_hear_vault(g);
		return;
	case GATE_FROM_NAMES:
		gate_answer_datagrams(g);
		return;
	case GATE_FROM_WATCH:
		gate_hear_watch(g, index);
		return;
	case GATE_FROM_LISTENER:
		gate_take_conns(g, index);
		return;
	case GATE_FROM_PUBLISH:
		gate_take_published(g, index);
		return;
	case GATE_FROM_ASKER:
		gate_hear_asker(g, index);
		return;
	case GATE_FROM_INSIDE:
	case GATE_FROM_OUTSIDE:
		gate_hear_conn(g, index, event->data.u64 >> 32 == GATE_FROM_INSIDE, event->events);
		return;
	}
}

static int main_listen_to_all(struct gate *g)
{
	int r = 0;

	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll < 0)
		return -errno;
	r = main_add(g, GATE_FD_KEEPER, GATE_FROM_KEEPER, 0, EPOLLIN | EPOLLRDHUP);
	if (r == 0)
		r = main_add(g, GATE_FD_OTHER, GATE_FROM_CALLER, 0, EPOLLIN | EPOLLOUT | EPOLLET);
	if (r == 0 && g->rules->secret_count)
		r = gate_add_source(g, GATE_FD_VAULT, GATE_FROM_VAULT, 0);
	if (r == 0)
		r = gate_add_source(g, g->net.names, GATE_FROM_NAMES, 0);
	for (uint32_t i = 0; r == 0 && i < g->net.watch_count; i++)
		r = gate_add_source(g, g->net.watches[i], GATE_FROM_WATCH, i);
	for (uint32_t i = 0; r == 0 && i < g->net.listener_count; i++)
		r = gate_add_source(g, g->net.listeners[i].fd, GATE_FROM_LISTENER, i);
	for (uint32_t i = 0; r == 0 && i < g->rules->publish_count; i++)
		r = gate_add_source(g, GATE_FD_PUBLISH + (int)i, GATE_FROM_PUBLISH, i);
	return r;
}

/* --- the loop --- */

static int main_wait_ms(const struct gate *g)
{
	if (g->ready_count)
		return 0;
	if (g->rows.is_behind)
		return (int)(TELL_NS / 1000000);
	return g->is_ending ? 10 : g->conn_count || g->has_askers ? (int)(SWEEP_NS / 1000000) : -1;
}

/* Who is asked to end passes on what was said already, and gives the receivers a while for it. */
static bool goes_on(struct gate *g)
{
	if (!g->has_dialer || !g->is_ending)
		return g->has_dialer;
	if (!g->end_ns) {
		g->end_ns = g->now_ns + LAST_NS;
		gate_vault_end(g);
	}
	gate_end_said(g);
	return (g->conn_count || g->has_vault) && g->now_ns < g->end_ns;
}

/* Until the keeper says so or is gone, or the dialer is gone. */
static int main_serve(struct gate *g)
{
	struct epoll_event events[MAX_EVENTS];
	uint64_t swept_ns = 0, told_ns = 0;

	while (goes_on(g)) {
		int n = epoll_wait(g->epoll, events, MAX_EVENTS, main_wait_ms(g));

		if (n < 0 && errno != EINTR)
			return -errno;
		g->now_ns = clock_ns();
		for (int i = 0; i < n; i++)
			main_hear(g, &events[i]);
		gate_go_on(g);
		if (g->now_ns - swept_ns > SWEEP_NS) {
			swept_ns = g->now_ns;
			gate_drop_old_conns(g);
			gate_drop_old_askers(g);
		}
		if (g->rows.is_behind && g->now_ns - told_ns >= TELL_NS) {
			told_ns = g->now_ns;
			(void)gate_rows_tell(&g->rows, GATE_FD_KEEPER);
		}
	}
	return 0;
}

/* --- beginning and end --- */

static int tell_failure(const struct err *e)
{
	struct wire_gate_message m = { .kind = WIRE_GATE_FAILED, .err = *e };

	wire_send_message(GATE_FD_KEEPER, &m, sizeof(m), -1);
	return 1;
}

static int await_dialer(struct err *e)
{
	struct wire_called m = { 0 };
	int r = wire_receive_message(GATE_FD_OTHER, &m, sizeof(m), NULL);

	m.other[sizeof(m.other) - 1] = '\0';
	if (r == 0 && m.id == WIRE_CALLER_READY && m.kind == WIRE_NET_ALLOWED)
		return 0;
	return err_set(e, ERR_SYS, EPIPE,
		"cannot start the dialer, which connects for the gate%s%s",
		r == 0 && m.other[0] ? ": " : "", r == 0 ? m.other : "");
}

/* As many connections as there are descriptors for. */
static void main_count_places(struct gate *g)
{
	uint64_t taken =
		g->net.listener_count + g->rules->publish_count + GATE_MAX_ASKERS + RESERVED;
	struct rlimit files = { 0 };

	getrlimit(RLIMIT_NOFILE, &files);
	g->conn_max = GATE_MAX_CONNS;
	if (files.rlim_cur < taken + (uint64_t)PER_CONN * GATE_MAX_CONNS)
		g->conn_max = files.rlim_cur > taken
				      ? (uint32_t)((files.rlim_cur - taken) / PER_CONN)
				      : 0;
	g->pipes.max = GATE_WAY_COUNT * g->conn_max;
}

/* What is wanted may be more than what one begins with. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int main_start(struct gate *g, struct err *e)
{
	const struct gate_wall wall = { .filter = &filter_gate,
		.max_files = WANTED_FILES,
		.is_root = geteuid() == 0,
		.channel = GATE_FD_KEEPER };
	int r;

	g->rules = gate_map_rules(GATE_FD_RULES, e);
	if (!g->rules)
		return -EINVAL;
	syscall(SYS_close_range, GATE_FD_PUBLISH + g->rules->publish_count, ~0U, 0);
	for (uint32_t i = 0; i < GATE_MAX_ASKERS; i++)
		g->askers[i].fd = -1;
	raise_files();
	r = gate_net_open(&g->net, &g->book, g->rules, GATE_FD_CAGE, e);
	if (r < 0)
		return r;
	close(GATE_FD_CAGE);
	r = main_listen_to_all(g);
	if (r < 0)
		return err_sys(e, -r, "cannot listen in the cage's network");
	main_count_places(g);
	if (g->conn_max < 1)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EMFILE,
				"cannot start the gate: it may not open enough descriptors"),
			"raise the limit: ulimit -n");
	if (g->rules->publish_count)
		r = gate_usher_start(g, &wall, e);
	if (r == 0)
		r = gate_confine(&wall, g->rules, e);
	g->has_dialer = true;
	if (r == 0)
		r = await_dialer(e);
	return r == 0 && g->rules->secret_count ? gate_vault_await(g, e) : r;
}

static int main_finish(struct gate *g)
{
	struct wire_gate_message m = { .kind = WIRE_GATE_END };
	struct err e;

	gate_close_all(g);
	gate_usher_end(g);
	fcntl(GATE_FD_KEEPER, F_SETFL, O_RDWR);
	(void)gate_rows_tell(&g->rows, GATE_FD_KEEPER);
	if (!g->has_dialer) {
		err_set(&e, ERR_SYS, ECHILD,
			"cannot connect any more: the dialer, which connects for the gate, has "
			"ended");
		return tell_failure(&e);
	}
	wire_send_message(GATE_FD_KEEPER, &m, sizeof(m), -1);
	return 0;
}

int gate_main(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	struct gate *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE, flags, -1, 0);
	struct wire_gate_message ready = { .kind = WIRE_GATE_READY };
	struct err e = { 0 };

	if (g == MAP_FAILED) {
		err_set(&e, ERR_SYS, errno, "cannot start the gate: out of memory");
		return tell_failure(&e);
	}
	if (main_start(g, &e) < 0)
		return tell_failure(&e);
	fcntl(GATE_FD_OTHER, F_SETFL, O_RDWR | O_NONBLOCK);
	if (g->has_vault)
		fcntl(GATE_FD_VAULT, F_SETFL, O_RDWR | O_NONBLOCK);
	fcntl(GATE_FD_KEEPER, F_SETFL, O_RDWR | O_NONBLOCK);
	if (wire_send_message(GATE_FD_KEEPER, &ready, sizeof(ready), -1) < 0 || main_serve(g) < 0)
		return 1;
	return main_finish(g);
}
