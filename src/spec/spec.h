#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "spec/diag.h"
#include "spec/spec_table.h"

/*
 * A spec: for every key the value that each layer sets, where it stands, and the value that counts
 * once the layers are merged. Pure: works on bytes, opens nothing.
 */

/* A later layer overrides an earlier one; the project's own file may only tighten. */
enum spec_layer {
	SPEC_LAYER_BUILTIN,
	SPEC_LAYER_SYSTEM,  /* /etc/bawn/policy.yaml */
	SPEC_LAYER_USER,    /* ~/.config/bawn/policy.yaml */
	SPEC_LAYER_FILE,    /* bawn.yaml, or the file named by -f */
	SPEC_LAYER_OPTIONS, /* the command line */
	SPEC_LAYER_COUNT,
};

/* The path of an agent's program in the cage, where nobody in the cage can write. */
#define SPEC_AGENT_PLACE "/opt/agent"

struct spec_bind {
	const char *from; /* "/abs", "~", "~/…", "$PROJECT", "$PROJECT/…" */
	const char *to;   /* absolute and normalised */
	bool is_writable;
};

enum spec_protocol {
	SPEC_TLS,
	SPEC_HTTP,
	SPEC_TCP,
};

extern const char *const spec_protocol_names[]; /* by enum spec_protocol */

/* A destination: a host name, "*.name", a network in CIDR form, or the registry of a client. */
struct spec_egress {
	const char *client;  /* the client whose registry it is, one of spec_clients; or NULL */
	const char *host;    /* lower case, without "*." and trailing dot; NULL for a network */
	bool is_wildcard;    /* any name below host, at any depth, and not host itself */
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix;      /* bits of address that count, of 128 */
	uint16_t port;       /* 0: the client's configuration has not been read yet */
	enum spec_protocol protocol;
};

/* Clients whose registries an allow-list may name by the client's name; NULL at the end. */
extern const char *const spec_clients[];

/* Toolchain managers that a spec may name; NULL at the end. */
extern const char *const spec_toolchains[];

struct spec_publish {
	const char *address; /* an IP address of the host */
	uint16_t host_port, cage_port;
};

/* A key that only the vault knows, and the requests that it is added to. */
struct spec_secret {
	const char *name;   /* in the cage: http://bawn-host/NAME/ */
	const char *host;   /* lower case */
	const char *header; /* lower case */
	const char *scheme; /* before the key, as in "Bearer KEY"; or NULL */
	const char *source; /* the name of a variable, or a path that starts with / or ~ */
	const char *ca;     /* a file of certificates to trust instead of the system's; or NULL */
	uint16_t port;
	bool is_file; /* the source is a path */
};

struct spec_var {
	const char *name, *value;
};

/* One entry of a list or map; `text` is its canonical form. */
struct spec_item {
	struct diag_pos at;
	const char *text;
	union {
		struct spec_bind bind;
		struct spec_egress egress;
		struct spec_publish publish;
		struct spec_secret secret;
		struct spec_var var;
		uint16_t port;
	};
};

/* The value of a key in one layer. The key's type says which member holds it. */
struct spec_value {
	bool is_set;
	bool adds; /* a list whose entries are added to those of the layers below */
	bool yes;
	unsigned choice;
	uint64_t number; /* bytes, milliseconds, thousandths of a processor, or a count */
	const char *text;
	struct spec_item *items;
	size_t count;
	struct diag_pos at;
};

struct spec_layer_values {
	struct spec_value v[SPEC_KEY_COUNT];
};

struct spec {
	struct arena arena;
	struct diags diags;
	struct spec_layer_values layers[SPEC_LAYER_COUNT];
	struct spec_layer_values may; /* project_may of the policies: the project file's ceiling */
	struct spec_layer_values settled; /* the merged values, set by spec_settle */
	enum spec_layer set_by[SPEC_KEY_COUNT];
	bool is_narrowing;     /* the file holds the wishes of one run in a session */
	bool is_file_trusted;  /* the operator trusts the file: no ceiling */
	bool is_at_own_path;   /* project.at was `own`, and was replaced by a path of this host */
	bool is_self_governed; /* self_governance names this project, and it is writable */
};

void spec_init(struct spec *s);
void spec_done(struct spec *s);

/*
 * Add the file of a layer. Borrow `name` and `bytes` until spec_done. Errors go to s->diags;
 * reading goes on after them, so that all are found.
 */
void spec_add_policy(
	struct spec *s, enum spec_layer layer, const char *name, const char *bytes, size_t n);
void spec_add_file(struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted);

/*
 * Adds one option of the command line: sets a key, or adds to its list. Replaces a variable or a
 * bind target of the layers below. `option` names it in diagnostics.
 */
void spec_add_option(struct spec *s, enum spec_key key, const char *option, const char *text);

/* Sets a whole list and drops that of the layers below: for the command after "--". */
void spec_add_option_list(struct spec *s, enum spec_key key, const char *option,
	const char *const *texts, size_t count);

/*
 * Merges the layers into s->settled and, unless s->is_file_trusted is set, checks that the file
 * does not loosen what the layers below say. False if there are errors.
 */
bool spec_settle(struct spec *s);

/*
 * Makes the project writable because self_governance names it, unless a layer has set its mode:
 * then it stays a project like any other. `path`, which is borrowed, is the project. The spec must
 * be settled.
 */
void spec_let_govern(struct spec *s, const char *path);

/* Return a settled value. Each function is for keys of the types that it names. */
bool spec_bool(const struct spec *s, enum spec_key key);        /* BOOL */
unsigned spec_choice(const struct spec *s, enum spec_key key);  /* CHOICE */
uint64_t spec_number(const struct spec *s, enum spec_key key);  /* SIZE … INT; 0: not set */
const char *spec_text(const struct spec *s, enum spec_key key); /* TEXT; NULL: not set */
const struct spec_value *spec_list(const struct spec *s, enum spec_key key); /* the lists */

/* True if a layer above the built-in defaults sets the key. */
bool spec_is_declared(const struct spec *s, enum spec_key key);
struct diag_pos spec_where(const struct spec *s, enum spec_key key);

/* True if `below` is within `above`, by the key's meaning of that: a path, a network, a name. */
bool spec_covers(enum spec_key key, const struct spec_item *above, const struct spec_item *below);

/* The hint for a project's file that loosens what the operator's layers say. */
extern const char spec_loosen_hint[];

/*
 * Prints the canonical form: one line of JSON with every key in the table's order, each value in
 * its canonical spelling, sets sorted. Specs that mean the same have the same bytes, whatever the
 * order of keys, the comments or the operator. The digest of these bytes identifies the spec.
 */
void spec_print_canonical(const struct spec *s, struct buf *out);

/*
 * Reads a canonical form, which a stranger may have written, into a new spec and settles it. No
 * other layer may be added. Returns -EBADMSG for bytes that spec_print_canonical would not print
 * for the result; only keys that a later version added may be missing.
 */
int spec_read_canonical(struct spec *s, const char *bytes, size_t n, struct err *e);

/*
 * Adds a canonical form as the layer of the file; `name`, which is borrowed, names it in
 * diagnostics. spec_read_canonical must have accepted the bytes before.
 */
void spec_add_canonical(
	struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted);

/*
 * Returns the entries in canonical order: as written for a list, sorted and without duplicates for
 * a set. The caller frees the array. NULL: no memory.
 */
const struct spec_item **spec_ordered(
	enum spec_key key, const struct spec_value *v, size_t *ret_count);

/* Prints one value in its canonical spelling for people: 2G, [a, b]. */
void spec_print_value(enum spec_key key, const struct spec_value *v, struct buf *out);

/*
 * One line of the account of a key: `role` is "value" for the settled value, "overrides" or "and"
 * for a layer below it, or the ceiling of the project's file. `where` may be NULL. The texts live
 * in the spec's arena.
 */
struct spec_account {
	const char *role, *value, *where;
};

#define SPEC_ACCOUNT_MAX (SPEC_LAYER_COUNT + 1)

size_t spec_account(
	const struct spec *s, enum spec_key key, struct spec_account ret[static SPEC_ACCOUNT_MAX]);

/* Prints the account of a key, as `bawn check --explain` shows it. */
void spec_explain(const struct spec *s, enum spec_key key, struct buf *out);

/* Prints the JSON Schema of the spec file, for editors. */
void spec_print_schema(struct buf *out);
