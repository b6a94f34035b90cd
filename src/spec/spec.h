#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "spec/diag.h"
#include "spec/spec_table.h"

/*
 * What was asked, by whom, and where it stands: the values of every key, layer by layer, and the
 * one that counts. Pure: takes bytes, touches nothing.
 */

/* Who speaks. A later layer overrides an earlier one; the project's own file only to tighten. */
enum spec_layer {
	SPEC_LAYER_BUILTIN,
	SPEC_LAYER_SYSTEM,  /* /etc/bawn/policy.yaml */
	SPEC_LAYER_USER,    /* ~/.config/bawn/policy.yaml */
	SPEC_LAYER_FILE,    /* bawn.yaml, or the file named by -f */
	SPEC_LAYER_OPTIONS, /* the command line */
	SPEC_LAYER_COUNT,
};

/* Where a cage has the program of an agent. Nobody in the cage can write there. */
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

/* A destination: a host name, "*.name", a network in CIDR form, or what a client is set up to use.
 */
struct spec_egress {
	const char *client;  /* whose registry it is: one of spec_clients; or NULL */
	const char *host;    /* lower case, without "*." and trailing dot; NULL for a network */
	bool is_wildcard;    /* any name below host, at any depth, and not host itself */
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix;      /* bits of address that count, of 128 */
	uint16_t port;       /* 0: the client has not been asked yet */
	enum spec_protocol protocol;
};

/* Programs whose registries an allow-list may name by the program's name; NULL at the end. */
extern const char *const spec_clients[];

/* Managers of tools that a spec may name; NULL at the end. */
extern const char *const spec_toolchains[];

struct spec_publish {
	const char *address; /* an IP address of the host */
	uint16_t host_port, cage_port;
};

/* A key that only bawn's side of the wall knows, and where it is added. */
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

/* The value of a key in one layer; which member counts follows from the key's type. */
struct spec_value {
	bool is_set;
	bool adds; /* a list: entries are added to those of the layers below */
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
	struct spec_layer_values settled; /* what counts */
	enum spec_layer set_by[SPEC_KEY_COUNT];
	bool is_narrowing;     /* the file is what one run asks for in a session */
	bool is_file_trusted;  /* the file is the operator's own word: no ceiling */
	bool is_at_own_path;   /* project.at was own, and is a path of this host now */
	bool is_self_governed; /* the project is writable, and the one of self_governance */
};

void spec_init(struct spec *s);
void spec_done(struct spec *s);

/*
 * Add what a layer says. Names and bytes are borrowed until spec_done. Problems are in
 * s->diags; adding goes on after them, so that all are found.
 */
void spec_add_policy(
	struct spec *s, enum spec_layer layer, const char *name, const char *bytes, size_t n);
void spec_add_file(struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted);

/*
 * One option of the command line: sets a key, or adds to its list. A variable or a bind target
 * that a layer below has too is replaced. `option` names it in messages.
 */
void spec_add_option(struct spec *s, enum spec_key key, const char *option, const char *text);

/* Sets a whole list, whatever the layers below say: the command after "--". */
void spec_add_option_list(struct spec *s, enum spec_key key, const char *option,
	const char *const *texts, size_t count);

/*
 * Merges the layers and, unless s->is_file_trusted was set, holds the file to its ceiling. False
 * when there are errors.
 */
bool spec_settle(struct spec *s);

/*
 * Of a settled one: the project is `path`, which self_governance names; borrowed. It is writable
 * then, unless somebody said otherwise: then it is a project like any other.
 */
void spec_let_govern(struct spec *s, const char *path);

/* Values that count. Each is for keys of the types it names. */
bool spec_bool(const struct spec *s, enum spec_key key);        /* BOOL */
unsigned spec_choice(const struct spec *s, enum spec_key key);  /* CHOICE */
uint64_t spec_number(const struct spec *s, enum spec_key key);  /* SIZE … INT; 0: not set */
const char *spec_text(const struct spec *s, enum spec_key key); /* TEXT; NULL: not set */
const struct spec_value *spec_list(const struct spec *s, enum spec_key key); /* the lists */

/* True if a layer above the built-in defaults set it. */
bool spec_is_declared(const struct spec *s, enum spec_key key);
struct diag_pos spec_where(const struct spec *s, enum spec_key key);

/* True if the entry above allows the one below, by the key's own meaning of "within". */
bool spec_covers(enum spec_key key, const struct spec_item *above, const struct spec_item *below);

/* The hint for a file that asks for more than a project's own file may. */
extern const char spec_loosen_hint[];

/*
 * The canonical form: one line of JSON with every key in the table's order, each value in one
 * spelling, sets sorted. The same meaning gives the same bytes, whatever the order, the comments
 * or the operator. Its digest names the spec.
 */
void spec_print_canonical(const struct spec *s, struct buf *out);

/*
 * Reads one back into a new spec, and settles it; nothing else is added to it. -EBADMSG for what
 * spec_print_canonical of the result would not print, except for later keys that are missing. The
 * bytes may be anybody's.
 */
int spec_read_canonical(struct spec *s, const char *bytes, size_t n, struct err *e);

/*
 * Adds one as what the file says, with its name in messages, which is borrowed; to be settled like
 * any other. It was read back before, so that it is one.
 */
void spec_add_canonical(
	struct spec *s, const char *name, const char *bytes, size_t n, bool is_trusted);

/*
 * The entries in canonical order: as they stand for a list, sorted and once each for a set. The
 * caller frees the array; NULL without memory.
 */
const struct spec_item **spec_ordered(
	enum spec_key key, const struct spec_value *v, size_t *ret_count);

/* One value in its canonical spelling, as people read it: 2G, [a, b]. */
void spec_print_value(enum spec_key key, const struct spec_value *v, struct buf *out);

/* Who says what about a key: "value", then what it "overrides" or adds to ("and"), then how far
 * the project's file may go. `where` may be NULL. Both texts live in the spec's arena. */
struct spec_account {
	const char *role, *value, *where;
};

#define SPEC_ACCOUNT_MAX (SPEC_LAYER_COUNT + 1)

size_t spec_account(
	const struct spec *s, enum spec_key key, struct spec_account ret[static SPEC_ACCOUNT_MAX]);

/* The same as text. */
void spec_explain(const struct spec *s, enum spec_key key, struct buf *out);

/* The JSON Schema of the spec file, for editors. */
void spec_print_schema(struct buf *out);
