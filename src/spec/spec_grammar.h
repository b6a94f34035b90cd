#pragma once

#include "spec/spec.h"

/*
 * One grammar per kind of text. Each parses the whole text or explains, in `e`, what is wrong and
 * how to write it; on success ret->text is the canonical spelling, in the arena.
 */
spec_grammar spec_grammar_any;       /* any text that is not empty */
spec_grammar spec_grammar_word;      /* any text at all */
spec_grammar spec_grammar_name;      /* letters, digits and . _ - ; starts with one of the first */
spec_grammar spec_grammar_source;    /* a path of the host */
spec_grammar spec_grammar_project;   /* a directory of the host; relative to the current one */
spec_grammar spec_grammar_trusted;   /* a directory of the host by its whole path */
spec_grammar spec_grammar_toolchain; /* auto, or one of spec_toolchains */
spec_grammar spec_grammar_at;        /* the same, or the word own */
spec_grammar spec_grammar_target;    /* an absolute path in the cage */
spec_grammar spec_grammar_inside;    /* a path below the project, relative */
spec_grammar spec_grammar_pattern;   /* a path, or a path and "/ **" without the space */
spec_grammar spec_grammar_bind;      /* SOURCE:TARGET[:ro|:rw] */
spec_grammar spec_grammar_variable;  /* the name of an environment variable that may pass */
spec_grammar spec_grammar_setting;   /* NAME=VALUE */
spec_grammar spec_grammar_file;      /* PATH=TEXT */
spec_grammar spec_grammar_kept;      /* a folder below /home/agent */
spec_grammar spec_grammar_allow;     /* the same, or the name of a client */
spec_grammar spec_grammar_egress;    /* HOST:PORT[/tls|/http|/tcp] */
spec_grammar spec_grammar_publish;   /* [ADDRESS:]PORT:PORT */
spec_grammar spec_grammar_secret;    /* name=… host=… header=… from=… */
spec_grammar spec_grammar_port;      /* 1 to 65535 */
spec_grammar spec_grammar_image;     /* host, dir:PATH, oci:PATH, sif:PATH or a name */
spec_grammar spec_grammar_overlay;   /* ephemeral or a path of the host */
spec_grammar spec_grammar_syscalls;  /* default, strict or the path of a profile */
spec_grammar spec_grammar_guarantee; /* the name of a guarantee, such as limits.memory */

/* A bind from a parsed source and target; false when the arena is full. */
bool spec_join_bind(struct arena *arena, const struct spec_item *from, const struct spec_item *to,
	bool is_writable, struct spec_item *ret);

/* What a secret consists of, in the order of its one line. */
enum spec_secret_part {
	SPEC_SECRET_NAME,
	SPEC_SECRET_HOST,
	SPEC_SECRET_HEADER,
	SPEC_SECRET_SCHEME,
	SPEC_SECRET_FROM,
	SPEC_SECRET_CA,
	SPEC_SECRET_PARTS,
};

extern const char *const spec_secret_parts[SPEC_SECRET_PARTS];

/* A secret from its parts; NULL for one that is not said. *ret_wrong is the one to blame, or none.
 */
int spec_make_secret(struct arena *arena, const char *const parts[static SPEC_SECRET_PARTS],
	struct spec_item *ret, enum spec_secret_part *ret_wrong, struct err *e);

/* The canonical texts, from what they stand for: what the grammars above give, and plans print. */
#define SPEC_NET_SIZE 320 /* of a host with all that may stand around it */
void spec_print_egress(const struct spec_egress *to, char ret[static SPEC_NET_SIZE]);
void spec_print_publish(const struct spec_publish *port, char ret[static SPEC_NET_SIZE]);
void spec_print_secret(const struct spec_secret *s, struct buf *out);

/* Is all of a network in another? */
bool spec_network_holds(const struct spec_egress *outer, const struct spec_egress *inner);

/* Does the path leave, by "..", the place it seems to be in? */
bool spec_climbs(const char *path);

/* Is a host path of the spec inside the project, as far as its spelling tells? */
bool spec_is_inside_project(const char *source);

/* What to write instead of a destination that spec_grammar_egress refused and left in `item`; or
 * NULL. */
const char *spec_hint_destination(
	struct arena *arena, const char *text, const struct spec_item *item, bool is_option);
