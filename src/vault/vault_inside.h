#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/gate.h"
#include "vault/vault_http.h"

/*
 * Shared by the files of the vault. Nobody else includes it.
 *
 * A connection of the cage has a slot in a table, with all of its buffers. Only OpenSSL allocates
 * memory, and the number of connections is limited.
 */

#define VAULT_MAX_CONNS 256
#define VAULT_MAX_FILES (2 * VAULT_MAX_CONNS + 64)

#define VAULT_SECOND_NS 1000000000ULL

/* --- keys --- */

/* Certificates to trust: the bytes of a file, which are parsed when they are first needed. */
struct vault_trust {
	char *bytes;
	size_t size;
	X509_STORE *store;
};

/* The TLS state for a secret's host. */
struct vault_peer {
	struct vault_trust *trust;
	SSL_CTX *context;     /* made when it is first needed */
	SSL_SESSION *session; /* to resume, or NULL */
};

/* --- connections --- */

enum vault_conn_state {
	VAULT_CONN_FREE,
	VAULT_CONN_OPEN,
	VAULT_CONN_LEAVING, /* everything is sent, and the client has time to read it */
};

enum vault_server_state {
	VAULT_SERVER_NONE,
	VAULT_SERVER_CALLING, /* waiting for the dialer */
	VAULT_SERVER_SHAKING, /* in the TLS handshake */
	VAULT_SERVER_OPEN,
	VAULT_SERVER_ENDED, /* the server has sent EOF */
};

enum vault_request_state {
	VAULT_REQUEST_HEAD,
	VAULT_REQUEST_BODY,
	VAULT_REQUEST_WHOLE,
};

enum vault_answer_state {
	VAULT_ANSWER_NONE, /* no request is open */
	VAULT_ANSWER_HEAD,
	VAULT_ANSWER_BODY,
};

/* The bytes in a buffer: from `at` to `end`. */
struct vault_pipe {
	size_t at, end;
};

struct vault_conn {
	enum vault_conn_state state;
	uint16_t generation; /* of the slot: a late answer is for an older connection */
	int client;
	bool is_client_over; /* the client has sent EOF */
	bool closes;         /* no request is read after this answer */
	bool is_ready;       /* in the list of connections with more to do */
	uint64_t deadline_ns;

	enum vault_server_state server_state;
	uint32_t secret; /* the secret of the request, to whose host the server is connected */
	int server;
	SSL *tls;
	bool is_used;      /* an answer has come over this connection */
	bool is_clean_end; /* the server has sent close_notify */

	enum vault_request_state request;
	struct gate_http http;
	bool is_head;

	enum vault_answer_state answer;
	bool has_answered; /* a part of this answer was sent to the client */
	struct vault_body body;
	bool server_closes;
	uint64_t bytes_out, bytes_in; /* not reported to the gate yet */

	struct vault_pipe from_client, to_server, from_server, to_client;
	char client_in[GATE_HTTP_MAX_HEAD];
	char server_out[VAULT_MAX_REQUEST + GATE_HTTP_MAX_HEAD];
	char server_in[VAULT_MAX_ANSWER];
	char client_out[VAULT_MAX_ANSWER + WIRE_MAX_KEY + 1024];
};

struct vault {
	const struct wire_rules *rules;
	int epoll;
	uint64_t now_ns;
	bool is_ending;
	struct vault_secret secrets[WIRE_MAX_SECRETS];
	struct vault_peer peers[WIRE_MAX_SECRETS];
	struct vault_trust trusts[WIRE_MAX_SECRETS + 1]; /* the system's, and one for each `ca` */
	struct wire_keys *keys; /* in memory that is never swapped: see take_keys */
	uint32_t count, ready_count;
	uint16_t ready[VAULT_MAX_CONNS];
	struct vault_conn conns[VAULT_MAX_CONNS];
};

/* --- vault_main.c --- */

/* Adds a socket of a connection to the epoll set. Returns 0 or -errno. */
int vault_listen(const struct vault *v, int fd, uint32_t index);

/* Sends a message to the gate. Exits if the gate is gone. */
void vault_tell(const struct vault *v, const struct wire_vault_message *m);

/* --- vault_tls.c --- */

/* Parses the certificates. Returns 0, -EINVAL: there is none; -EBADMSG: one is malformed. */
int vault_tls_trust(struct vault_trust *t);

/* Begins TLS with the connection's server. False: no memory. */
bool vault_tls_begin(struct vault *v, struct vault_conn *c);

enum vault_io {
	VAULT_IO_DONE, /* *ret_n bytes, at least one; or the handshake is complete */
	VAULT_IO_WAIT,
	VAULT_IO_END, /* the connection ended; *ret_is_clean: with close_notify */
	VAULT_IO_FAILED,
};

/* Continue the handshake, read, write. With VAULT_IO_FAILED `no` says why. */
enum vault_io vault_tls_shake(struct vault *v, struct vault_conn *c, struct vault_refusal *no);
enum vault_io vault_tls_read(SSL *tls, char *ret, size_t size, size_t *ret_n, bool *ret_is_clean);
enum vault_io vault_tls_write(SSL *tls, const char *bytes, size_t size, size_t *ret_n);
void vault_tls_end(struct vault_conn *c);

/* --- vault_conn.c --- */

/* Takes ownership of a connection that the gate accepted. */
void vault_conn_take(struct vault *v, int client);

/* Takes the dialer's answer: a connected socket, which it owns then, or -1 and the reason. */
void vault_conn_called(struct vault *v, const struct wire_called *m, int server);

/* Runs the stages of a connection until all wait. */
void vault_conn_run(struct vault *v, struct vault_conn *c);

/* Continues connections that had more to do than one turn allows. */
void vault_go_on(struct vault *v);

/* Ends connections whose deadline has passed. */
void vault_drop_old(struct vault *v);
void vault_close_all(struct vault *v);
