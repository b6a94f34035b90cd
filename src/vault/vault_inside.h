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
 * A connection of the cage's is a place in a table, with all of its buffers; only OpenSSL takes
 * memory, for as many connections as there are places for.
 */

#define VAULT_MAX_CONNS 256
#define VAULT_MAX_FILES (2 * VAULT_MAX_CONNS + 64)

#define VAULT_SECOND_NS 1000000000ULL

/* --- keys --- */

/* Certificates to trust: the bytes of a file, and what they are once they are needed. */
struct vault_trust {
	char *bytes;
	size_t size;
	X509_STORE *store;
};

/* How a secret's host is spoken to. */
struct vault_peer {
	struct vault_trust *trust;
	SSL_CTX *context;     /* made when it is first needed */
	SSL_SESSION *session; /* that may be taken up again, or NULL */
};

/* --- connections --- */

enum vault_conn_state {
	VAULT_CONN_FREE,
	VAULT_CONN_OPEN,
	VAULT_CONN_LEAVING, /* told all, and given the time to read it */
};

enum vault_server_state {
	VAULT_SERVER_NONE,
	VAULT_SERVER_CALLING, /* the dialer is at work */
	VAULT_SERVER_SHAKING, /* hands, by TLS */
	VAULT_SERVER_OPEN,
	VAULT_SERVER_ENDED, /* it has said all */
};

enum vault_request_state {
	VAULT_REQUEST_HEAD,
	VAULT_REQUEST_BODY,
	VAULT_REQUEST_WHOLE,
};

enum vault_answer_state {
	VAULT_ANSWER_NONE, /* nothing was asked */
	VAULT_ANSWER_HEAD,
	VAULT_ANSWER_BODY,
};

/* Bytes on their way: from `at` to `end` of a buffer. */
struct vault_pipe {
	size_t at, end;
};

struct vault_conn {
	enum vault_conn_state state;
	uint16_t generation; /* of the place: what comes late is for another */
	int client;
	bool is_client_over; /* it has said all */
	bool closes;         /* nothing is asked on it after this answer */
	bool is_ready;       /* in the list of those that have more to do */
	uint64_t deadline_ns;

	enum vault_server_state server_state;
	uint32_t secret; /* whose host the server is, and which was asked for */
	int server;
	SSL *tls;
	bool is_used;      /* an answer has come over it */
	bool is_clean_end; /* it has said that it ends */

	enum vault_request_state request;
	struct gate_http http;
	bool is_head;

	enum vault_answer_state answer;
	bool has_answered; /* something of this answer has gone to the client */
	struct vault_body body;
	bool server_closes;
	uint64_t bytes_out, bytes_in; /* not told yet */

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
	struct vault_trust trusts[WIRE_MAX_SECRETS + 1]; /* the system's, and those of `ca` */
	struct wire_keys *keys; /* in memory that is not written to disk: see take_keys */
	uint32_t count, ready_count;
	uint16_t ready[VAULT_MAX_CONNS];
	struct vault_conn conns[VAULT_MAX_CONNS];
};

/* --- vault_main.c --- */

int vault_listen(const struct vault *v, int fd, uint32_t index);

/* Tells the gate; a vault whose gate is gone ends. */
void vault_tell(const struct vault *v, const struct wire_vault_message *m);

/* --- vault_tls.c --- */

/* Of the file's bytes; -EINVAL: there is no certificate in them; -EBADMSG: one is damaged. */
int vault_tls_trust(struct vault_trust *t);

/* Begins TLS on the connection's server; false: there is no memory for it. */
bool vault_tls_begin(struct vault *v, struct vault_conn *c);

enum vault_io {
	VAULT_IO_DONE, /* *ret_n bytes, at least one; of a handshake: it is made */
	VAULT_IO_WAIT,
	VAULT_IO_END, /* with *ret_is_clean: as TLS wants it */
	VAULT_IO_FAILED,
};

/* VAULT_IO_FAILED: `no` says why. */
enum vault_io vault_tls_shake(struct vault *v, struct vault_conn *c, struct vault_refusal *no);
enum vault_io vault_tls_read(SSL *tls, char *ret, size_t size, size_t *ret_n, bool *ret_is_clean);
enum vault_io vault_tls_write(SSL *tls, const char *bytes, size_t size, size_t *ret_n);
void vault_tls_end(struct vault_conn *c);

/* --- vault_conn.c --- */

/* Takes the connection over. */
void vault_conn_take(struct vault *v, int client);

/* Takes the dialer's answer: a socket, or -1 and the reason. */
void vault_conn_called(struct vault *v, const struct wire_called *m, int server);

/* Does all that can be done now. */
void vault_conn_run(struct vault *v, struct vault_conn *c);
void vault_go_on(struct vault *v);
void vault_drop_old(struct vault *v);
void vault_close_all(struct vault *v);
