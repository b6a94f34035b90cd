#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/dns/gate_dns.h"
#include "gate/gate.h"
#include "gate/http/gate_http.h"

/*
 * Shared by the files of the gate. Nobody else includes it.
 *
 * All memory is taken once, before the wall; a name, a packet or a connection takes a place in one
 * of these tables, or is turned away because there is none.
 */

#define GATE_MAX_CONNS     1024
#define GATE_MAX_NAMES     4096
#define GATE_MAX_LISTENERS 4096
#define GATE_MAX_ASKERS    64 /* of names, by TCP */
#define GATE_HEAD_SIZE     GATE_HTTP_MAX_HEAD

/* --- gate_book.c: names and the addresses that stand for them --- */

/*
 * An address means the same name to the end of the run: what a client remembers never leads
 * anywhere else.
 */
struct gate_book {
	uint32_t count;
	uint16_t places[2 * GATE_MAX_NAMES]; /* by hash: 1 and the index of a name; 0: none */
	char names[GATE_MAX_NAMES][WIRE_NAME_SIZE];
};

/* Hash for the gate's tables (FNV-1a). A cage that provokes collisions slows only itself. */
uint32_t gate_hash(const char *text);

/* The name's index, with a new one where it is new; -1: there is no room for it. */
int gate_book_add(struct gate_book *b, const char *name);

/* The name that an address stands for; NULL: none. */
const char *gate_book_find(const struct gate_book *b, const uint8_t address[static 16]);

/* The two addresses of a name; IPv4 in its 4 bytes. */
void gate_book_v4(int index, uint8_t ret[static 4]);
void gate_book_v6(int index, uint8_t ret[static 16]);

/* --- gate_rows.c: what was decided, and how often --- */

struct gate_rows {
	struct wire_decision rows[WIRE_MAX_ROWS];
	bool is_new[WIRE_MAX_ROWS]; /* the keeper does not know this state of it */
	uint16_t places[2 * WIRE_MAX_ROWS];
	uint32_t count, counts[WIRE_DECISION_KIND_COUNT];
	uint32_t told; /* where telling goes on */
	uint64_t untold;
	bool is_untold_new;
	bool is_behind; /* some are new */
};

/* Counts one more of these; the row, or -1: there was no room, which is counted too. */
int gate_rows_add(struct gate_rows *r, enum wire_decision_kind kind, enum wire_reason reason,
	enum wire_protocol protocol, const char *name, uint16_t port, const char *other);

/* The same of a secret's host. */
int gate_rows_add_secret(struct gate_rows *r, enum wire_decision_kind kind, enum wire_reason reason,
	const struct wire_secret *secret, const char *other);
void gate_rows_add_bytes(struct gate_rows *r, int row, uint64_t out, uint64_t in);

/* Tells the keeper what it does not know. 0; -EAGAIN: it does not listen at the moment; -errno. */
int gate_rows_tell(struct gate_rows *r, int keeper);

/* --- gate_main.c: the cage's network --- */

#define GATE_LOOPBACK      1 /* its index, in every network */
#define GATE_PORT_OF_NAMES 53
#define GATE_WATCH_COUNT   4

struct gate_listener {
	int fd;
	uint16_t port;
};

struct gate_net {
	bool has_v6;
	int names;                     /* port 53, UDP */
	int watches[GATE_WATCH_COUNT]; /* see what the kernel turns away */
	uint32_t watch_count;
	struct gate_listener listeners[GATE_MAX_LISTENERS];
	uint32_t listener_count;
};

/* --- gate_watch.c --- */

/* Sockets that see the kernel refuse connections, and datagrams that go nowhere. */
int gate_watch_open(struct gate_net *net, struct err *e);

/* --- the gate itself --- */

/* Source of an event, in the upper half of its number; the lower half is an index. */
enum gate_source {
	GATE_FROM_KEEPER,
	GATE_FROM_CALLER,
	GATE_FROM_VAULT,
	GATE_FROM_NAMES,
	GATE_FROM_WATCH,
	GATE_FROM_LISTENER,
	GATE_FROM_PUBLISH,
	GATE_FROM_ASKER,
	GATE_FROM_INSIDE, /* of a connection */
	GATE_FROM_OUTSIDE,
};

enum gate_conn_state {
	GATE_CONN_FREE,
	GATE_CONN_HEAD,    /* the client has to say what it wants */
	GATE_CONN_CALLING, /* the dialer is at work, or the connection into the cage is being made
			    */
	GATE_CONN_OPEN,
	GATE_CONN_LEAVING, /* told why not, and given the time to read it */
};

/* One direction of a connection. */
struct gate_way {
	int pipe;    /* index of the pipe that holds bytes on their way, or -1 */
	size_t held; /* in it */
	uint64_t bytes;
	bool is_over; /* the sender has said all … */
	bool is_shut; /* … and the receiver knows */
};

enum gate_way_kind {
	GATE_OUT, /* from `inside` to `outside` */
	GATE_IN,
	GATE_WAY_COUNT,
};

#define GATE_BOTH_WAYS (1U << GATE_OUT | 1U << GATE_IN)

struct gate_conn {
	enum gate_conn_state state;
	uint16_t generation; /* of the place: what comes late is for another */
	uint16_t port;
	enum wire_protocol protocol;
	bool is_published; /* began outside, at this one of the rules: */
	uint32_t published;
	bool is_v6;              /* and is connected to ::1 in the cage */
	bool is_address;         /* `name` is one, and declared */
	bool is_asked;           /* the dialer was told */
	bool is_ready;           /* in the list of those that have more to do */
	bool is_request_read;    /* `http` tells what may pass; otherwise all may */
	enum wire_reason denied; /* when it came; what it says first tells how to answer */
	int row;
	int inside, outside;  /* descriptors, or -1 */
	uint64_t deadline_ns; /* 0: none */
	struct gate_way ways[GATE_WAY_COUNT];
	struct gate_http http;
	uint8_t address[16]; /* that the client connected to */
	char name[WIRE_NAME_SIZE];
	uint32_t head_len, head_good; /* of its head: bytes there, and those that may go on */
};

#define GATE_MAX_PIPES (GATE_WAY_COUNT * GATE_MAX_CONNS)

struct gate_pipe {
	int in, out; /* -1: not made */
	size_t size;
};

struct gate_pipes {
	struct gate_pipe pipes[GATE_MAX_PIPES];
	uint16_t free[GATE_MAX_PIPES];
	uint32_t made, free_count, max;
};

/* A client that asks for names by TCP. */
struct gate_asker {
	int fd; /* -1: none */
	uint64_t deadline_ns;
	uint32_t len;
	uint8_t bytes[2 + GATE_DNS_MAX_QUERY];
};

struct gate {
	const struct wire_rules *rules;
	int epoll;
	uint64_t now_ns, end_ns;
	int usher; /* the channel to it */
	pid_t usher_pid;
	bool is_ending, has_dialer, has_askers;
	bool has_vault;
	int vault_rows[WIRE_MAX_SECRETS]; /* of the last that was allowed, or -1 */
	struct gate_net net;
	struct gate_book book;
	struct gate_rows rows;
	struct gate_pipes pipes;
	uint32_t conn_max, conn_count, conn_next;
	uint32_t ready_count;
	uint16_t ready[GATE_MAX_CONNS];
	struct gate_asker askers[GATE_MAX_ASKERS];
	struct gate_conn conns[GATE_MAX_CONNS];
	uint8_t heads[GATE_MAX_CONNS][GATE_HEAD_SIZE];
};

/* Hears of a descriptor from here on, as long as there is something to read. */
int gate_add_source(struct gate *g, int fd, enum gate_source source, uint32_t index);

/* The same for both directions, and only of changes. */
int gate_add_conn(struct gate *g, const struct gate_conn *c, bool is_inside);

/* --- gate_names.c: the name server --- */

void gate_answer_datagrams(struct gate *g);
void gate_take_asker(struct gate *g, int fd);
void gate_hear_asker(struct gate *g, uint32_t index);
void gate_drop_old_askers(struct gate *g);

void gate_hear_watch(struct gate *g, uint32_t index);

/* --- gate_conn.c: a connection's life --- */

#define GATE_SECOND_NS 1000000000ULL
#define GATE_HEAD_NS   (10 * GATE_SECOND_NS) /* to say what it wants */
#define GATE_DENY_NS   (GATE_SECOND_NS / 4)  /* to say something, so that it can be answered */
#define GATE_LEAVE_NS  (2 * GATE_SECOND_NS)  /* to read why not */

/* A place for a new one; NULL: all are taken. */
struct gate_conn *gate_conn_take(struct gate *g);
void gate_conn_end(struct gate *g, struct gate_conn *c, bool is_orderly);

/* The head agrees with the rules: asks the dialer to connect. */
void gate_conn_call(struct gate *g, struct gate_conn *c);

/* Both sides are there. */
void gate_conn_open(
	struct gate *g, struct gate_conn *c, enum wire_decision_kind kind, const char *other);

/* Not allowed, or not possible: notes it, tells the client, and ends it. */
void gate_conn_deny(struct gate *g, struct gate_conn *c, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other);

/* The same for what is noted already. */
void gate_conn_leave(struct gate *g, struct gate_conn *c, int row, enum wire_decision_kind kind,
	enum wire_reason reason);

void gate_hear_conn(struct gate *g, uint32_t index, bool is_inside, uint32_t events);
void gate_hear_dialer(struct gate *g);

/* Continues the connections that had more to do than one turn allows. */
void gate_go_on(struct gate *g);

/* Ends those that had their time. */
void gate_drop_old_conns(struct gate *g);

/* The end of the run: those that have nothing more to pass on are over. */
void gate_end_said(struct gate *g);

/* And so are all: what was passed is counted. */
void gate_close_all(struct gate *g);

/* Closes with what is not read yet thrown away on both sides, which the other end hears at once. */
void gate_reset(int fd);

/* Small pieces are sent at once. */
void gate_hurry(int fd);

/* --- gate_take.c: how connections and attempts reach the gate --- */

void gate_take_conns(struct gate *g, uint32_t listener);

/* The next that waits at a listening socket, or -1. */
void gate_hear_head(struct gate *g, struct gate_conn *c);

/* --- gate_usher.c: connects into the cage --- */

/* Before the wall, of which the usher's is like. */
int gate_usher_start(struct gate *g, const struct gate_wall *wall, struct err *e);

/* A socket that is about to be connected to a published port, at 127.0.0.1 or ::1; or -errno. */
int gate_usher_connect(const struct gate *g, uint32_t index, bool is_v6);
void gate_usher_end(struct gate *g);

/* Waits until it says that it is confined and has the keys. */
int gate_vault_await(struct gate *g, struct err *e);

/* Hands a connection to it, whose place is free then; or begins to say why not. */
void gate_hear_vault(struct gate *g);

/* It is over: what was passed is still told. */
void gate_vault_end(struct gate *g);

void gate_take_published(struct gate *g, uint32_t index);

/* The connection into the cage is made, or is not. */
void gate_hear_inside(struct gate *g, struct gate_conn *c);

/* Why a request is not. */
struct gate_refusal {
	enum wire_reason reason;
	char other[WIRE_NAME_SIZE];
};

static inline uint8_t *gate_head(struct gate *g, const struct gate_conn *c)
{
	return g->heads[c - g->conns];
}
