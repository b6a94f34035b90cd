#pragma once

#include "spec/spec.h"

/*
 * Parses the whole text by its grammar: fills ret->text, the canonical spelling, which lives in the
 * arena, and the member of its kind; or explains in `e` what is wrong and how to write it.
 */
int spec_parse(enum spec_grammar grammar, struct arena *arena, const char *text,
	struct spec_item *ret, struct err *e);

/* Parsers of spec_grammar_net.c, for spec_parse. */
int spec_grammar_egress(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e);
int spec_grammar_allow(struct arena *arena, const char *text, struct spec_item *ret, struct err *e);
int spec_grammar_publish(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e);
int spec_grammar_secret(
	struct arena *arena, const char *text, struct spec_item *ret, struct err *e);

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
