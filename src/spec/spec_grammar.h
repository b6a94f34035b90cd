#pragma once

#include "spec/spec.h"

/*
 * Parses a text by a grammar. Fills ret->text, the canonical spelling in the arena, and the member
 * of the union for that grammar. Returns 0, or -errno and in `e` what is wrong and how to write it.
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

/* Makes a bind of a parsed source and target. False: the arena is full. */
bool spec_join_bind(struct arena *arena, const struct spec_item *from, const struct spec_item *to,
	bool is_writable, struct spec_item *ret);

/* The parts of a secret, in the order in which they are written on one line. */
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

/*
 * Makes a secret of its parts, of which some may be NULL. Returns 0, or -errno, `e` and in
 * *ret_wrong the part that is wrong, or SPEC_SECRET_PARTS.
 */
int spec_make_secret(struct arena *arena, const char *const parts[static SPEC_SECRET_PARTS],
	struct spec_item *ret, enum spec_secret_part *ret_wrong, struct err *e);

/* Print the canonical text of a parsed item. */
#define SPEC_NET_SIZE 320 /* the longest: a host name with protocol, ports and address */
void spec_print_egress(const struct spec_egress *to, char ret[static SPEC_NET_SIZE]);
void spec_print_publish(const struct spec_publish *port, char ret[static SPEC_NET_SIZE]);
void spec_print_secret(const struct spec_secret *s, struct buf *out);

/* True if the network `inner` is a part of `outer`. */
bool spec_network_holds(const struct spec_egress *outer, const struct spec_egress *inner);

/* True if ".." leads the path out of the folder that it begins in. */
bool spec_climbs(const char *path);

/* True if a source begins with $PROJECT and stays there. Looks only at the text. */
bool spec_is_inside_project(const char *source);

/* Returns what to write instead of a destination that spec_parse refused, or NULL. */
const char *spec_hint_destination(
	struct arena *arena, const char *text, const struct spec_item *item, bool is_option);
