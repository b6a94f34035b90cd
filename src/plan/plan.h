#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "host/host.h"
#include "plan/plan_data.h"
#include "plan/plan_guarantees.h"
#include "spec/spec.h"

/*
 * Making and showing plans. What a plan is, as data, is in plan_data.h, which is all that those
 * who carry one out need to know.
 */

/*
 * Says in s->diags what no host could plan: binds that open credentials nobody acknowledged or
 * cover what the cage makes itself, two binds for one target, patterns outside the project,
 * guarantees that do not exist. plan_build does it too.
 */
void plan_check_spec(struct spec *s);

/* What is wrong with showing a path of the host, as "holds credentials"; NULL: nothing known. */
const char *plan_leak_of(struct spec *s, const char *from);

/* Does the value of this key end the level `hardened`? */
bool plan_ends_hardened(const struct spec *s, enum spec_key key);

/*
 * Makes the plan of a settled spec on a host. What is wrong with the spec is said in s->diags and
 * answered with ERR_SPEC; what this host cannot give, with ERR_REFUSED and the choice that was
 * made of its engines in *ret_choice (which may be NULL). The caller frees *ret.
 */
int plan_build(struct spec *s, const struct host *h, struct plan **ret,
	struct plan_choice *ret_choice, struct err *e);

/*
 * The operands of an operation as people and digests see them: borrowed from the plan, or printed
 * into `scratch`, which is the caller's.
 */
const char *plan_text_a(const struct plan *p, const struct plan_op *op, struct buf *scratch);
const char *plan_text_b(const struct plan *p, const struct plan_op *op, struct buf *scratch);

/* Does an operation of one plan say the same as one of another? */
bool plan_is_same_op(const struct plan *a, const struct plan_op *x, const struct plan *b,
	const struct plan_op *y);

/* Adds all that an operation says to a digest. */
void plan_digest_op(const struct plan *p, const struct plan_op *op, struct sha256 *s);

/* For people. */
void plan_print(const struct plan *p, struct buf *out, bool color);

/*
 * The plan as one line of JSON, and the sha256 of exactly that line: what `bawn plan --json`
 * prints can be hashed by anyone.
 */
void plan_print_json(const struct plan *p, struct buf *out);
int plan_digest(const struct plan *p, char ret[static SHA256_HEX_SIZE]);

/* The preflight: a shell script, the same for every run everywhere, and its digest. */
extern const char plan_preflight_text[];
void plan_preflight_digest(char ret[static SHA256_HEX_SIZE]);
