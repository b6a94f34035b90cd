/*
 * A plan that arrives as bytes is data from a stranger. Everything a reader relies on is made
 * wrong here once, on purpose, and then at random.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "is_json.h"
#include "make_spec.h"
#include "plan/plan.h"

static struct plan *good; /* never changed */

static struct plan *build(const char *file)
{
	struct plan *p = NULL;
	struct host host;
	struct spec spec;

	fake_host_init(&host);
	CHECK(make_spec(&spec, file) && plan_build(&spec, &host, &p, NULL, NULL) == 0);
	spec_done(&spec);
	return p;
}

/* A copy of `good` with room for a text of its own, whose place is *ret_at. */
static struct plan *copy_with(const char *text, uint32_t *ret_at)
{
	size_t n = strlen(text) + 1;
	struct plan *p = calloc(1, good->size + n);

	if (!p)
		abort();
	memcpy(p, good, good->size);
	memcpy((char *)p + good->size, text, n);
	*ret_at = p->string_size;
	p->string_size += (uint32_t)n;
	p->size += (uint32_t)n;
	return p;
}

static struct plan_op *ops_of(struct plan *p)
{
	return (struct plan_op *)(p + 1);
}

static struct plan_promise *promises_of(struct plan *p)
{
	return (struct plan_promise *)(ops_of(p) + p->op_count);
}

/* NULL: it must be accepted. Frees the plan. */
static void check_verdict(struct plan *p, size_t n, const char *said, int line)
{
	struct err e = { 0 };
	int r = plan_check(p, n, &e);

	check_that((r == 0) == (said == NULL) && (r == 0 || r == -EBADMSG),
		said ? said : "accepted", __FILE__, line);
	check_equal(e.text, said ? said : "", __FILE__, line);
	free(p);
}

#define CHECK_VERDICT(p, said) check_verdict((p), (p)->size, (said), __LINE__)

/* Makes one change to a copy and expects the sentence. */
#define CHECK_CHANGE(change, said)                                                                 \
	do {                                                                                       \
		uint32_t at_;                                                                      \
		struct plan *p = copy_with("", &at_);                                              \
		change;                                                                            \
		check_verdict(p, p->size, (said), __LINE__);                                       \
	} while (0)

/* --- the head --- */

static void test_head(void)
{
	static const char not_a_plan[] = "these bytes are not a plan";
	static const char sizes[] = "the plan's parts do not add up to its size";
	static const char head[] = "the plan has a head that this bawn does not understand";
	static const char engine[] = "the plan names no engine or level";
	static const char outside[] = "the plan's head points outside the strings";
	static const char digest[] = "the plan's spec digest is none";

	CHECK_CHANGE((void)0, NULL);
	CHECK_CHANGE(p->magic ^= 1, not_a_plan);
	CHECK_CHANGE(p->version = 2, "the plan has version 2; this bawn understands 1");
	CHECK_CHANGE(p->version = 0, "the plan has version 0; this bawn understands 1");
	CHECK_CHANGE(p->op_count++, sizes);
	CHECK_CHANGE(p->op_count--, sizes);
	CHECK_CHANGE(p->op_count = UINT32_MAX, sizes);
	CHECK_CHANGE(p->op_count += 0xaaaaaaabU, sizes); /* 24 times that is 8, in 32 bits */
	CHECK_CHANGE(p->string_size++, sizes);
	CHECK_CHANGE(p->string_size = UINT32_MAX, sizes);
	CHECK_CHANGE(p->promise_count++, head);
	CHECK_CHANGE(p->promise_count = 0, head);
	CHECK_CHANGE(p->pad = 1, head);
	CHECK_CHANGE(p->engine = SPEC_ENGINE_AUTO, engine);
	CHECK_CHANGE(p->engine = SPEC_ENGINE_LOGICAL, NULL);
	CHECK_CHANGE(p->engine = SPEC_ENGINE_LOGICAL + 1, engine);
	CHECK_CHANGE(p->is_hardened = 2, engine);
	CHECK_CHANGE(p->name = p->string_size - 1, NULL);
	CHECK_CHANGE(p->name = p->string_size, outside);
	CHECK_CHANGE(p->level_reasons = UINT32_MAX, outside);
	CHECK_CHANGE(p->spec_digest[0] = 'G', digest);
	CHECK_CHANGE(p->spec_digest[0] = 'A', digest);
	CHECK_CHANGE(p->spec_digest[63] = '\0', digest);
	CHECK_CHANGE(p->spec_digest[64] = '0', digest);
	CHECK_CHANGE(memset(p->spec_digest, '0', sizeof(p->spec_digest)), digest);
}

static void test_sizes(void)
{
	own_free char *odd = malloc(good->size + 8);
	own_free char *huge = calloc(1, PLAN_MAX_SIZE + 8);
	size_t accepted = 0;

	if (!odd || !huge)
		return;
	for (size_t n = 0; n < good->size; n++) {
		struct plan *p = malloc(n ? n : 1); /* exactly as long, so that a byte more shows */

		if (!p)
			return;
		memcpy(p, good, n);
		accepted += plan_check(p, n, NULL) == 0;
		free(p);
	}
	CHECK(accepted == 0);
	memcpy(odd + 4, good, good->size);
	CHECK(plan_check(odd + 4, good->size, NULL) == -EBADMSG); /* not aligned */
	memcpy(odd, good, good->size);
	CHECK(plan_check(odd, good->size, NULL) == 0);
	CHECK(plan_check(odd, good->size + 1, NULL) == -EBADMSG);
	memcpy(huge, good, sizeof(*good));
	CHECK(plan_check(huge, PLAN_MAX_SIZE + 8, NULL) == -EBADMSG);
}

static void test_strings(void)
{
	static const char not_ended[] = "the plan's strings are not ended";

	CHECK_CHANGE(((char *)p)[p->size - 1] = 'x', not_ended);
	CHECK_CHANGE(((char *)p)[p->size - p->string_size] = 'x', not_ended);
	CHECK_CHANGE(p->size -= p->string_size, "the plan's parts do not add up to its size");
	CHECK_CHANGE((p->size -= p->string_size, p->string_size = 0), not_ended);
}

/* --- operations --- */

static void test_operations(void)
{
	static const char outside[] = "operation 0 (namespace) points outside the strings";
	static const char need[] = "operation 0 (namespace) is neither must nor may";

	CHECK_CHANGE(ops_of(p)[0].kind = PLAN_OP_KIND_COUNT, "operation 0 is of no known kind");
	CHECK_CHANGE(ops_of(p)[0].kind = UINT16_MAX, "operation 0 is of no known kind");
	CHECK_CHANGE(ops_of(p)[0].need = PLAN_MAY, NULL);
	CHECK_CHANGE(ops_of(p)[0].need = PLAN_NONE, need);
	CHECK_CHANGE(ops_of(p)[0].need = PLAN_MUST + 1, need);
	CHECK_CHANGE(ops_of(p)[0].need = UINT8_MAX, need);
	CHECK_CHANGE(ops_of(p)[0].a = p->string_size, outside);
	CHECK_CHANGE(ops_of(p)[0].a = UINT32_MAX, outside);
	CHECK_CHANGE(ops_of(p)[0].b = p->string_size, outside);
	CHECK_CHANGE(ops_of(p)[0].mode = 07777, NULL);
	CHECK_CHANGE(ops_of(p)[0].mode = 010000, "operation 0 (namespace) has an impossible mode");
	CHECK_CHANGE(
		ops_of(p)[0].a = 0, "operation 0 (namespace) has an operand of the wrong form");
	CHECK_CHANGE(ops_of(p)[0].b = ops_of(p)[0].a,
		"operation 0 (namespace) has an operand of the wrong form");
	CHECK_CHANGE((ops_of(p)[8] = ops_of(p)[0]), "operation 8 makes a namespace too late");
}

/* Every flag of every kind: known where the table says so, refused everywhere else. */
static void test_flags(void)
{
	for (uint16_t kind = 0; kind < PLAN_OP_KIND_COUNT; kind++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			uint32_t at;
			struct plan *p = copy_with("/x", &at);
			const struct plan_op_def *def = &plan_op_defs[kind];
			char said[100];

			ops_of(p)[0] = (struct plan_op){ .kind = kind, .need = PLAN_MUST };
			ops_of(p)[0].a =
				def->a == PLAN_OPERAND_NONE || def->a == PLAN_OPERAND_TREE ? 0 : at;
			ops_of(p)[0].b = def->b == PLAN_OPERAND_NONE
						 ? 0
						 : at + (def->b == PLAN_OPERAND_INSIDE);
			ops_of(p)[0].flags = (uint8_t)(1U << bit);
			/* The namespaces that follow would come too late behind another kind. */
			while (ops_of(p)[1].kind == PLAN_NAMESPACE) {
				memmove(&ops_of(p)[1], &ops_of(p)[2],
					p->size - sizeof(*p) - 2 * sizeof(struct plan_op));
				p->op_count--;
				p->size -= (uint32_t)sizeof(struct plan_op);
			}
			snprintf(said, sizeof(said), "operation 0 (%s) has flags that mean nothing",
				def->name);
			CHECK_VERDICT(p, def->flags & 1U << bit ? NULL : said);
		}
	}
}

/* --- operands --- */

static const struct {
	const char *text;
	bool source, target, place, inside;
} spellings[] = {
	{ "/", true, true, true, false },
	{ "/a", true, true, true, false },
	{ "/a/b.c/..d/e..", true, true, true, false },
	{ "~", true, false, false, true }, /* in the project it is a name like any other */
	{ "~/a", true, false, false, true },
	{ "$PROJECT", true, false, true, true },
	{ "$PROJECT/a", true, false, true, true },
	{ "$GIT", true, false, true, true },
	{ "$GIT/a", false, false, false, true },
	{ "$PROJECT/..", true, false, false, false },
	{ "$PROJECT/../../a", true, false, false, false },
	{ "a", false, false, false, true },
	{ ".git/hooks", false, false, false, true },
	{ "", false, false, false, false },
	{ ".", false, false, false, false },
	{ "..", false, false, false, false },
	{ "../a", false, false, false, false },
	{ "./a", false, false, false, false },
	{ "a/..", false, false, false, false },
	{ "a/../b", false, false, false, false },
	{ "a//b", false, false, false, false },
	{ "a/", false, false, false, false },
	{ "//", false, false, false, false },
	{ "//a", false, false, false, false },
	{ "/a/", false, false, false, false },
	{ "/a//b", false, false, false, false },
	{ "/.", false, false, false, false },
	{ "/a/./b", false, false, false, false },
	{ "/..", false, false, false, false },
	{ "/../a", false, false, false, false },
	{ "/a/../b", false, false, false, false },
	{ "~/", false, false, false, false },
	{ "~/..", false, false, false, false },
	{ "~/../a", false, false, false, false },
	{ "$PROJECT/", false, false, false, false },
	{ "$PROJECT/../", false, false, false, false },
	{ "$PROJECT/a/..", false, false, false, false },
	{ "$PROJECT/../a/../b", false, false, false, false },
};

static bool is_spelled(enum plan_operand operand, size_t i)
{
	switch (operand) {
	case PLAN_OPERAND_NONE:
		return !spellings[i].text[0];
	case PLAN_OPERAND_TEXT:
	case PLAN_OPERAND_NOTE:
		return true;
	case PLAN_OPERAND_WORD:
		return spellings[i].text[0];
	case PLAN_OPERAND_SOURCE:
		return spellings[i].source;
	case PLAN_OPERAND_TARGET:
		return spellings[i].target;
	case PLAN_OPERAND_PLACE:
		return spellings[i].place;
	case PLAN_OPERAND_TREE:
		return !spellings[i].text[0] || str_eq(spellings[i].text, "$GIT");
	case PLAN_OPERAND_INSIDE:
		return spellings[i].inside;
	}
	return false;
}

/* Both operands of every kind of operation, in every spelling. */
static void test_operands(void)
{
	for (uint16_t kind = 0; kind < PLAN_OP_KIND_COUNT; kind++) {
		for (size_t i = 0; i < 2 * COUNT_OF(spellings); i++) {
			const struct plan_op_def *def = &plan_op_defs[kind];
			bool is_b = i % 2;
			enum plan_operand other = is_b ? def->a : def->b;
			bool is_good = is_spelled(is_b ? def->b : def->a, i / 2);
			uint32_t at, root;
			struct plan *p = copy_with(spellings[i / 2].text, &at);
			struct plan_op *op =
				&ops_of(p)[kind == PLAN_NAMESPACE ? 0 : p->op_count - 1];
			char what[100];

			/* "/work" and "work" are in every plan of ours. */
			root = plan_promises(good)[0].declared; /* "yes" */
			for (uint32_t k = 0; k < good->op_count; k++)
				if (plan_ops(good)[k].kind == PLAN_PROJECT)
					root = plan_ops(good)[k].b;
			root += other == PLAN_OPERAND_INSIDE;
			root = other == PLAN_OPERAND_NONE || other == PLAN_OPERAND_TREE ? 0 : root;
			*op = (struct plan_op){ .kind = kind, .need = PLAN_MUST, .n = 1 };
			op->a = is_b ? root : at;
			op->b = is_b ? at : root;
			snprintf(what, sizeof(what), "%s %s '%s' is %s", def->name,
				is_b ? "b" : "a", spellings[i / 2].text,
				is_good ? "good" : "refused");
			check_that((plan_check(p, p->size, NULL) == 0) == is_good, what, __FILE__,
				__LINE__);
			free(p);
		}
	}
}

/* Numbers that no engine could take. */
static void test_numbers(void)
{
	static const uint64_t ports[] = { 0, 65536, UINT64_MAX };

	for (size_t i = 0; i < COUNT_OF(ports); i++) {
		uint32_t at;
		struct plan *p = copy_with("", &at);

		ops_of(p)[p->op_count - 1] = (struct plan_op){
			.kind = PLAN_HOST_PORT, .need = PLAN_MUST, .n = ports[i]
		};
		CHECK(plan_check(p, p->size, NULL) < 0);
		ops_of(p)[p->op_count - 1].n = 65535;
		CHECK(plan_check(p, p->size, NULL) == 0);
		free(p);
	}
}

/* --- promises --- */

static void test_promises(void)
{
	static const char order[] = "promise 3 is out of order";
	static const char value[] = "promise 3 has an impossible value";

	CHECK_CHANGE(promises_of(p)[3].guarantee = 4, order);
	CHECK_CHANGE(promises_of(p)[3].guarantee = PLAN_GUARANTEE_COUNT, order);
	CHECK_CHANGE(promises_of(p)[3].need = PLAN_MUST + 1, value);
	CHECK_CHANGE(promises_of(p)[3].is_given = 2, value);
	CHECK_CHANGE(promises_of(p)[3].pad = 1, value);
	CHECK_CHANGE(promises_of(p)[3].ability = HOST_ABILITY_COUNT + 1, value);
	CHECK_CHANGE(promises_of(p)[3].declared = p->string_size, value);
	CHECK_CHANGE(promises_of(p)[3].is_given = 0,
		"the plan requires fs.project and does not give it");
	CHECK_CHANGE((promises_of(p)[3].is_given = 0, promises_of(p)[3].need = PLAN_MAY), NULL);
	CHECK_CHANGE(promises_of(p)[3].need = PLAN_NONE,
		"the plan gives fs.project, which nobody asked for");
	CHECK_CHANGE((promises_of(p)[3].is_given = 0, promises_of(p)[3].need = PLAN_NONE), NULL);
}

/* --- at random --- */

static size_t accepted_count, ugly_count;

/* Whatever is accepted can be shown: as text that obeys nothing, and as JSON. */
static void show(const struct plan *p, struct buf *out)
{
	accepted_count++;
	out->len = 0;
	plan_print(p, out, false);
	for (size_t i = 0; i < out->len; i++)
		if (((unsigned char)out->data[i] < 0x20 && out->data[i] != '\n') ||
			out->data[i] == 0x7f) {
			ugly_count++;
			break;
		}
	out->len = 0;
	plan_print_json(p, out);
	ugly_count += !is_json(buf_text(out));
}

/* Every bit of a plan, one at a time; where text is only text, a few of them. */
static void test_every_bit(struct plan *p, unsigned every)
{
	own(buf) struct buf out = { .max = (size_t)1 << 22 };
	unsigned char *bytes = (unsigned char *)p;
	unsigned turn = 0;

	for (size_t i = 0; i < p->size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			size_t n = p->size;

			bytes[i] ^= (unsigned char)(1U << bit);
			if (plan_check(p, n, NULL) == 0 && (turn++ % every == 0))
				show(p, &out);
			bytes[i] ^= (unsigned char)(1U << bit);
		}
	}
	CHECK(plan_check(p, p->size, NULL) == 0);
}

/* Several words at a time: values that are near the limits, or those of another place. */
static void test_random(struct plan *p, int rounds)
{
	own(buf) struct buf out = { .max = (size_t)1 << 22 };
	own_free uint32_t *words = malloc(p->size);
	uint64_t seed = 88172645463325252U;
	size_t n = p->size;

	if (!words)
		return;
	memcpy(words, p, n);
	for (int i = 0; i < rounds; i++) {
		size_t at[3];

		for (int k = 0; k < 3; k++) {
			static const uint32_t values[] = { 0, 1, 2, 0x7fffffff, 0x80000000,
				UINT32_MAX };

			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			at[k] = seed % (n / 4);
			words[at[k]] = seed & 1 << 20 ? values[(seed >> 21) % 6]
				       : seed & 1 << 22
					       ? words[(seed >> 24) % (n / 4)]
					       : words[at[k]] + (uint32_t)((seed >> 24) % 9) - 4;
		}
		if (plan_check(words, n, NULL) == 0 && i % 16 == 0)
			show((const struct plan *)(const void *)words, &out);
		for (int k = 0; k < 3; k++)
			memcpy(&words[at[k]], (const char *)p + 4 * at[k], 4);
	}
}

static void test_mutations(void)
{
	own_free struct plan *small = build("version: 1\nengine: logical\nenv: {pass: [LANG]}\n"
					    "limits: {time: 1h}\ncommand: [a, b]\n");

	test_every_bit(good, 32);
	test_every_bit(small, 8);
	test_random(good, 150000);
	test_random(small, 150000);
	CHECK(accepted_count > 1000);
	CHECK(ugly_count == 0);
}

/* A buffer that is too small fails, and does no more than that. */
static void test_small_buffers(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		for (size_t max = 0; max < 6000; max += max < 300 ? 1 : 61) {
			struct buf out = { .max = max };

			plan_print(good, &out, max % 2);
			if (out.failed ? out.len > max : out.len == 0)
				_exit(1);
			buf_done(&out);
			buf_init(&out, max);
			plan_print_json(good, &out);
			buf_done(&out);
		}
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	good = build(
		"version: 1\nname: n\nbinds: [~/a:/b]\nenv: {pass: [LANG]}\ncommand: [c, d]\n"
		"project: {mode: writable, write_allowlist: [$PROJECT/e/**]}\n"
		"network: {mode: allowlist, allow: [f.org:1], host_ports: [2], publish: "
		"[\"3:3\"]}\nlimits: {time: 1h}\nstartup_commands: [g]\nagent: x\nstartup_prompts: [h]\n");
	if (!good) {
		check_report();
		return 1;
	}
	test_head();
	test_sizes();
	test_strings();
	test_operations();
	test_flags();
	test_operands();
	test_numbers();
	test_promises();
	test_mutations();
	test_small_buffers();
	free(good);
	return check_report();
}
