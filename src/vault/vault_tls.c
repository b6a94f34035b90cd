/*
 * vault_tls - the host's certificate, and TLS over a socket that somebody else connected.
 *
 * Runs as:  the vault, confined.
 * Must not: open a file: certificates come as bytes; go on with a host whose certificate is not
 *           accepted, or not for its name.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "vault/vault_inside.h"

/* All there are. -EINVAL: there is none; -EBADMSG: one of them is damaged. */
static int add_certificates(X509_STORE *store, BIO *bytes)
{
	unsigned long error;
	int count = 0;
	X509 *one;

	ERR_clear_error();
	while ((one = PEM_read_bio_X509(bytes, NULL, NULL, NULL)) != NULL) {
		int added = X509_STORE_add_cert(store, one);

		X509_free(one);
		if (added != 1)
			return -EBADMSG;
		count++;
	}
	/* The reason where OpenSSL gives none. */
	error = ERR_peek_last_error();
	if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
		return -EBADMSG;
	return count ? 0 : -EINVAL;
}

int vault_tls_trust(struct vault_trust *t)
{
	BIO *bytes;
	int r = -ENOMEM;

	if (t->store)
		return 0;
	t->store = X509_STORE_new();
	bytes = BIO_new_mem_buf(t->bytes, (int)t->size);
	if (t->store && bytes)
		r = add_certificates(t->store, bytes);
	BIO_free(bytes);
	ERR_clear_error();
	if (r < 0) {
		X509_STORE_free(t->store);
		t->store = NULL;
	}
	return r;
}

/* --- how a host is spoken to --- */

/* The last session is kept, to be taken up again by the next connection. */
static int keep_session(SSL *tls, SSL_SESSION *session)
{
	struct vault_peer *peer = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));

	SSL_SESSION_free(peer->session);
	peer->session = session;
	return 1;
}

static SSL_CTX *make_context(struct vault_peer *peer)
{
	static const unsigned char http[] = "\x08http/1.1";
	SSL_CTX *context;

	if (vault_tls_trust(peer->trust) < 0)
		return NULL;
	context = SSL_CTX_new(TLS_client_method());
	if (!context)
		return NULL;
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set1_cert_store(context, peer->trust->store);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, keep_session);
	SSL_CTX_set_app_data(context, peer);
	if (SSL_CTX_set_alpn_protos(context, http, sizeof(http) - 1) != 0) {
		SSL_CTX_free(context);
		return NULL;
	}
	return context;
}

/* The macro of OpenSSL's for this takes the name for something that it could write to. */
static bool name_server(SSL *tls, const char *host)
{
	void *name;

	memcpy(&name, &host, sizeof(name));
	return SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) == 1;
}

bool vault_tls_begin(struct vault *v, struct vault_conn *c)
{
	struct vault_peer *peer = &v->peers[c->secret];
	const char *host = v->secrets[c->secret].host;

	if (!peer->context)
		peer->context = make_context(peer);
	c->tls = peer->context ? SSL_new(peer->context) : NULL;
	if (!c->tls)
		return false;
	SSL_set_hostflags(c->tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (SSL_set1_host(c->tls, host) != 1 || !name_server(c->tls, host) ||
		SSL_set_fd(c->tls, c->server) != 1)
		return false;
	if (peer->session)
		SSL_set_session(c->tls, peer->session);
	SSL_set_connect_state(c->tls);
	return true;
}

void vault_tls_end(struct vault_conn *c)
{
	if (!c->tls)
		return;
	/* Sends close_notify once and does not wait for the answer. */
	if (SSL_is_init_finished(c->tls))
		SSL_shutdown(c->tls);
	SSL_free(c->tls);
	ERR_clear_error();
	c->tls = NULL;
}

/* --- what happened --- */

static enum vault_io tls_judge(SSL *tls, int r, bool *ret_is_clean)
{
	switch (SSL_get_error(tls, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return VAULT_IO_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		*ret_is_clean = true;
		return VAULT_IO_END;
	default:
		/* Also a connection that just ends, of which OpenSSL makes an error. */
		return VAULT_IO_END;
	}
}

static void tls_explain(struct vault_conn *c, struct vault_refusal *no)
{
	long verified = SSL_get_verify_result(c->tls);
	unsigned long error = ERR_peek_error();
	const char *why = ERR_reason_error_string(error);

	no->status = 502;
	no->reason = verified == X509_V_OK ? WIRE_BECAUSE_NO_TLS : WIRE_BECAUSE_UNTRUSTED;
	if (verified != X509_V_OK)
		why = X509_verify_cert_error_string(verified);
	else if (!why)
		why = "the connection ended";
	snprintf(no->other, sizeof(no->other), "%s", why);
}

enum vault_io vault_tls_shake(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	bool is_clean;
	int r;

	(void)v;
	ERR_clear_error();
	r = SSL_do_handshake(c->tls);
	if (r == 1)
		return VAULT_IO_DONE;
	if (tls_judge(c->tls, r, &is_clean) == VAULT_IO_WAIT)
		return VAULT_IO_WAIT;
	tls_explain(c, no);
	return VAULT_IO_FAILED;
}

enum vault_io vault_tls_read(SSL *tls, char *ret, size_t size, size_t *ret_n, bool *ret_is_clean)
{
	int r;

	ERR_clear_error();
	r = SSL_read_ex(tls, ret, size, ret_n);
	return r == 1 ? VAULT_IO_DONE : tls_judge(tls, r, ret_is_clean);
}

enum vault_io vault_tls_write(SSL *tls, const char *bytes, size_t size, size_t *ret_n)
{
	bool is_clean;
	int r;

	ERR_clear_error();
	r = SSL_write_ex(tls, bytes, size, ret_n);
	return r == 1 ? VAULT_IO_DONE : tls_judge(tls, r, &is_clean);
}
