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
 * The gate allocates all memory once, before it is confined. A name, a query or a connection takes
 * a slot in one of these tables, or is refused if none is free.
 */

#define GATE_MAX_CONNS     1024
#define GATE_MAX_NAMES     4096
#define GATE_MAX_LISTENERS 4096
#define GATE_MAX_ASKERS    64 /* clients that ask for names over TCP */
#define GATE_HEAD_SIZE     GATE_HTTP_MAX_HEAD

/* --- names and the addresses that stand for them: gate_names.c --- */

/*
 * Maps each name that the cage asks for to an address of its own. The mapping stays to the end of
 * the run: an address that a client has cached never leads to another name.
 */
struct gate_book {
	uint32_t count;
	uint16_t places[2 * GATE_MAX_NAMES]; /* hash table: 1 + the index of a name; 0: free */
	char names[GATE_MAX_NAMES][WIRE_NAME_SIZE];
};

/*
 * Returns a hash for the gate's tables (FNV-1a). A cage that forces collisions slows only itself.
 */
uint32_t gate_hash(const char *text);

/* Returns the name's index, and adds the name if it is new; -1: no room. */
int gate_book_add(struct gate_book *b, const char *name);

/* Returns the name that an address stands for, or NULL. */
const char *gate_book_find(const struct gate_book *b, const uint8_t address[static 16]);

/* Return the IPv4 and the IPv6 address of a name. */
void gate_book_v4(int index, uint8_t ret[static 4]);
void gate_book_v6(int index, uint8_t ret[static 16]);

/* --- decisions, and how often each was made: gate_rows.c --- */

struct gate_rows {
	struct wire_decision rows[WIRE_MAX_ROWS];
	bool is_new[WIRE_MAX_ROWS]; /* changed since it was sent to the keeper */
	uint16_t places[2 * WIRE_MAX_ROWS];
	uint32_t count, counts[WIRE_DECISION_KIND_COUNT];
	uint32_t told;      /* the row that gate_rows_tell continues with */
	uint64_t untold;    /* decisions that got no row */
	bool is_untold_new; /* … since that was sent */
	bool is_behind;     /* something has to be sent */
};

/* Counts a decision. Returns its row, or -1 if there is no room; that is counted in `untold`. */
int gate_rows_add(struct gate_rows *r, enum wire_decision_kind kind, enum wire_reason reason,
	enum wire_protocol protocol, const char *name, uint16_t port, const char *other);

/* Counts a decision about the host of a secret. */
int gate_rows_add_secret(struct gate_rows *r, enum wire_decision_kind kind, enum wire_reason reason,
	const struct wire_secret *secret, const char *other);
void gate_rows_add_bytes(struct gate_rows *r, int row, uint64_t out, uint64_t in);

/* Sends the keeper what has changed. Returns 0, -EAGAIN if its socket is full, or -errno. */
int gate_rows_tell(struct gate_rows *r, int keeper);

/* --- the cage's network: gate_main.c --- */

#define GATE_LOOPBACK      1 /* index of the loopback interface in every namespace */
#define GATE_PORT_OF_NAMES 53
#define GATE_WATCH_COUNT   4

struct gate_listener {
	int fd;
	uint16_t port;
};

struct gate_net {
	bool has_v6;
	int names;                     /* port 53, UDP */
	int watches[GATE_WATCH_COUNT]; /* packet sockets that see what the kernel refuses */
	uint32_t watch_count;
	struct gate_listener listeners[GATE_MAX_LISTENERS];
	uint32_t listener_count;
};

/* --- what the kernel refuses: gate_take.c --- */

/* Opens the sockets that see the kernel refuse connections, and datagrams to nobody. */
int gate_watch_open(struct gate_net *net, struct err *e);

/* --- the gate itself --- */

/* The source of an event: the upper half of its epoll data; the lower half is an index. */
enum gate_source {
	GATE_FROM_KEEPER,
	GATE_FROM_DIALER,
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
	GATE_CONN_HEAD,    /* waiting for the client's first bytes */
	GATE_CONN_CALLING, /* waiting for the dialer, or for a connection into the cage */
	GATE_CONN_OPEN,
	GATE_CONN_LEAVING, /* refused: the reason is sent, and the client has time to read it */
};

/* One direction of a connection. */
struct gate_way {
	int pipe;    /* index of the pipe that buffers bytes, or -1 */
	size_t held; /* bytes in the pipe */
	uint64_t bytes;
	bool is_over; /* the sender has sent EOF … */
	bool is_shut; /* … and it was passed on */
};

enum gate_way_kind {
	GATE_OUT, /* from `inside` to `outside` */
	GATE_IN,
	GATE_WAY_COUNT,
};

#define GATE_BOTH_WAYS (1U << GATE_OUT | 1U << GATE_IN)

struct gate_conn {
	enum gate_conn_state state;
	uint16_t generation; /* of the slot: a late answer is for an older connection */
	uint16_t port;
	enum wire_protocol protocol;
	bool is_published;       /* it came from outside to the published port … */
	uint32_t published;      /* … with this index in the rules */
	bool is_v6;              /* a published one goes to ::1 in the cage */
	bool is_address;         /* `name` is a declared address */
	bool is_asked;           /* the dialer was asked to connect */
	bool is_ready;           /* in the list of connections with more to do */
	bool is_request_read;    /* `http` decides which bytes pass; otherwise all do */
	enum wire_reason denied; /* decided at accept; the first bytes say how to tell the client */
	int row;
	int inside, outside;  /* descriptors, or -1 */
	uint64_t deadline_ns; /* 0: none */
	struct gate_way ways[GATE_WAY_COUNT];
	struct gate_http http;
	uint8_t address[16]; /* that the client connected to */
	char name[WIRE_NAME_SIZE];
	uint32_t head_len, head_good; /* bytes of the head that came, and that may go on */
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

/* A client that asks for names over TCP. */
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
	int usher; /* the channel to the usher */
	pid_t usher_pid;
	bool is_ending, has_dialer, has_askers;
	bool has_vault;
	int vault_rows[WIRE_MAX_SECRETS]; /* the row of each secret's last allowed request, or -1 */
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

/* Adds a descriptor to the epoll set, level-triggered, for reading. Returns 0 or -errno. */
int gate_add_source(struct gate *g, int fd, enum gate_source source, uint32_t index);

/* Adds one side of a connection, edge-triggered, for reading and writing. */
int gate_add_conn(struct gate *g, const struct gate_conn *c, bool is_inside);

/* --- the name server: gate_names.c --- */

void gate_answer_datagrams(struct gate *g);
void gate_take_asker(struct gate *g, int fd);
void gate_hear_asker(struct gate *g, uint32_t index);
void gate_drop_old_askers(struct gate *g);

void gate_hear_watch(struct gate *g, uint32_t index);

/* --- connections: gate_conn.c --- */

/* Timeouts for the client: */
#define GATE_SECOND_NS 1000000000ULL
#define GATE_HEAD_NS   (10 * GATE_SECOND_NS) /* until its head is complete */
#define GATE_DENY_NS   (GATE_SECOND_NS / 4)  /* of a refused one, until its first bytes */
#define GATE_LEAVE_NS  (2 * GATE_SECOND_NS)  /* to read why it was refused */

/* Returns a free slot, or NULL. */
struct gate_conn *gate_conn_take(struct gate *g);
void gate_conn_end(struct gate *g, struct gate_conn *c, bool is_orderly);

/* Asks the dialer to connect, when the rules allow the head. */
void gate_conn_call(struct gate *g, struct gate_conn *c);

/* Starts passing bytes, when both sides are connected. */
void gate_conn_open(
	struct gate *g, struct gate_conn *c, enum wire_decision_kind kind, const char *other);

/* Refuses a connection: counts the decision, tells the client why, and ends it. */
void gate_conn_deny(struct gate *g, struct gate_conn *c, enum wire_decision_kind kind,
	enum wire_reason reason, const char *other);

/* Refuses a connection whose decision is counted already, in `row`. */
void gate_conn_leave(struct gate *g, struct gate_conn *c, int row, enum wire_decision_kind kind,
	enum wire_reason reason);

void gate_hear_conn(struct gate *g, uint32_t index, bool is_inside, uint32_t events);
void gate_hear_dialer(struct gate *g);

/* Continues connections that had more to do than one turn allows. */
void gate_go_on(struct gate *g);

/* Ends connections whose deadline has passed. */
void gate_drop_old_conns(struct gate *g);

/* At the end of the run: ends connections that have no buffered bytes. */
void gate_end_said(struct gate *g);

/* Ends all connections and counts their bytes. */
void gate_close_all(struct gate *g);

/* Closes a socket with a TCP reset, which drops unread bytes on both sides. */
void gate_reset(int fd);

/* Sets TCP_NODELAY. */
void gate_hurry(int fd);

/* --- accepting connections: gate_take.c --- */

void gate_take_conns(struct gate *g, uint32_t listener);

/* Reads a connection's first bytes and decides when they are complete: gate_head.c */
void gate_hear_head(struct gate *g, struct gate_conn *c);

/* --- the usher, which connects into the cage: gate_usher.c --- */

/* Starts it. Must be called before gate_confine; the usher's wall is like the gate's. */
int gate_usher_start(struct gate *g, const struct gate_wall *wall, struct err *e);

/* Returns a socket that connects to a published port at 127.0.0.1 or ::1, or -errno. */
int gate_usher_connect(const struct gate *g, uint32_t index, bool is_v6);
void gate_usher_end(struct gate *g);

/* Waits until the vault says that it is confined and has the keys. */
int gate_vault_await(struct gate *g, struct err *e);

/* Takes the vault's messages: its decisions and the bytes that it passed. */
void gate_hear_vault(struct gate *g);

/* Tells the vault that the run ends (shutdown); gate_hear_vault still takes its last messages. */
void gate_vault_end(struct gate *g);

void gate_take_published(struct gate *g, uint32_t index);

/* Takes the result of a connection into the cage. */
void gate_hear_inside(struct gate *g, struct gate_conn *c);

/* Why a request is refused. */
struct gate_refusal {
	enum wire_reason reason;
	char other[WIRE_NAME_SIZE];
};

static inline uint8_t *gate_head(struct gate *g, const struct gate_conn *c)
{
	return g->heads[c - g->conns];
}
