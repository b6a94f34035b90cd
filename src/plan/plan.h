#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "host/host.h"
#include "plan/plan_data.h"
#include "plan/plan_guarantees.h"
#include "spec/spec.h"

/*
 * Builds and prints plans. The plan as data is in plan_data.h, which is all that the code that
 * carries one out includes.
 */

/*
 * Adds to s->diags the errors that do not depend on the host: binds of credentials that are not
 * acknowledged, binds over what the cage makes itself, two binds for one target, patterns outside
 * the project, unknown guarantees. plan_build calls it too.
 */
void plan_check_spec(struct spec *s);

/*
 * Returns why a path of the host must not be bound, such as "holds credentials"; NULL: it may be.
 */
const char *plan_leak_of(struct spec *s, const char *from);

/* True if the value of the key ends the level `hardened`. */
bool plan_ends_hardened(const struct spec *s, enum spec_key key);

/*
 * Builds the plan of a settled spec for a host. The caller frees *ret. Errors of the spec go to
 * s->diags, with ERR_SPEC in `e`. If the host cannot give a required guarantee, the error is
 * ERR_REFUSED and *ret_choice, which may be NULL, says what each engine lacks.
 */
int plan_build(struct spec *s, const struct host *h, struct plan **ret,
	struct plan_choice *ret_choice, struct err *e);

/* Does the same, and prints the spec's canonical form, of which the plan has the digest. */
int plan_build_with_spec(struct spec *s, const struct host *h, struct plan **ret,
	struct buf *ret_spec, struct plan_choice *ret_choice, struct err *e);

/*
 * Return an operand of an operation as people and digests see it. The text is borrowed from the
 * plan, or from `scratch`.
 */
const char *plan_text_a(const struct plan *p, const struct plan_op *op, struct buf *scratch);
const char *plan_text_b(const struct plan *p, const struct plan_op *op, struct buf *scratch);

/* True if operation `x` of plan `a` equals operation `y` of plan `b`. */
bool plan_is_same_op(const struct plan *a, const struct plan_op *x, const struct plan *b,
	const struct plan_op *y);

/* Adds an operation with its operands to a digest. */
void plan_digest_op(const struct plan *p, const struct plan_op *op, struct sha256 *s);

/* Prints the plan for people. */
void plan_print(const struct plan *p, struct buf *out, bool color);

/*
 * Print the plan as one line of JSON, as `bawn plan --json` does, and compute the SHA-256 of
 * exactly that line, so that anybody can check it.
 */
void plan_print_json(const struct plan *p, struct buf *out);
int plan_digest(const struct plan *p, char ret[static SHA256_HEX_SIZE]);

/* The text of the preflight, the same for every run, and its digest. */
extern const char plan_preflight_text[];
void plan_preflight_digest(char ret[static SHA256_HEX_SIZE]);
