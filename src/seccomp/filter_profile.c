/* Profiles in the containers' JSON format, as docker and podman write it. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "seccomp/filter_rules.h"
#include "spec/yaml.h"

/* A profile being read. The first error ends it: every function returns 0 or what went wrong. */
struct filter_reader {
	struct arena arena;
	struct diags *diags;
	struct err *e;
	const struct filter_arch *arch;
	struct filter_rules rules;
};

/* --- reader --- */

/* The sentence of an error, behind its place. Always -EINVAL. */
__attribute__((format(printf, 3, 4))) static int filter_refuse(
	struct filter_reader *r, struct diag_pos at, const char *fmt, ...)
{
	own(buf) struct buf shown = { .max = (size_t)4 * ERR_TEXT_SIZE };
	char text[ERR_TEXT_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_add_visible(&shown, text, strlen(text)); /* a stranger's words may be in it */
	return err_set(r->e, ERR_SPEC, 0, "%s: %s", diags_where(r->diags, at), buf_text(&shown));
}

/* Not there, or null: containers' tools write both. */
static bool filter_is_absent(const struct yaml_node *n)
{
	return !n || (n->kind == YAML_SCALAR && n->type == YAML_NULL);
}

static int filter_check_kind(
	struct filter_reader *r, const struct yaml_node *n, enum yaml_kind kind)
{
	const struct yaml_node wanted = { .kind = kind };

	if (n->kind == kind)
		return 0;
	return filter_refuse(
		r, n->at, "this must be %s, not %s", yaml_describe(&wanted), yaml_describe(n));
}

static int filter_check_text(struct filter_reader *r, const struct yaml_node *n)
{
	if (n->kind == YAML_SCALAR && n->type == YAML_TEXT)
		return 0;
	return filter_refuse(r, n->at, "this must be text, not %s", yaml_describe(n));
}

/* True for a map with no other keys than these. */
static int filter_check_map(
	struct filter_reader *r, const struct yaml_node *map, const char *const *keys, size_t count)
{
	int ret = filter_check_kind(r, map, YAML_MAP);

	for (const struct yaml_node *n = map->first; n && ret == 0; n = n->next) {
		const char *nearest = str_nearest(yaml_key(n), keys, count);
		size_t i = 0;

		while (i < count && !str_eq(keys[i], yaml_key(n)))
			i++;
		if (i == count)
			ret = filter_refuse(r, n->key->at, "unknown key '%.60s'%s%s%s", yaml_key(n),
				nearest ? "; did you mean '" : "", nearest ? nearest : "",
				nearest ? "'?" : "");
	}
	return ret;
}

/* The value of a key that must be there. */
static int filter_need(struct filter_reader *r, const struct yaml_node *map, const char *key,
	const struct yaml_node **ret)
{
	*ret = yaml_get(map, key);
	return filter_is_absent(*ret) ? filter_refuse(r, map->at, "the key '%s' is missing", key)
				      : 0;
}

static int filter_read_number(
	struct filter_reader *r, const struct yaml_node *n, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (n->kind != YAML_SCALAR || n->type != YAML_INT)
		return filter_refuse(r, n->at, "this must be a number, not %s", yaml_describe(n));
	errno = 0;
	value = strtoull(n->text, NULL, 10);
	if (n->text[0] == '-' || errno || value > max)
		return filter_refuse(r, n->at, "'%.40s' is not a number from 0 to %llu", n->text,
			(unsigned long long)max);
	*ret = value;
	return 0;
}

/* The place of a text in a list of words; `what` they are is for the message. */
static int filter_read_word(struct filter_reader *r, const struct yaml_node *n, const char *what,
	const char *const *words, size_t count, size_t *ret)
{
	int bad = filter_check_text(r, n);

	for (size_t i = 0; i < count && !bad; i++) {
		if (str_eq(words[i], n->text)) {
			*ret = i;
			return 0;
		}
	}
	return bad ? bad : filter_refuse(r, n->at, "'%.60s' is not %s", n->text, what);
}

/* The rule that an entry gives each of its names. */
struct entry {
	uint32_t action;
	bool applies;
	struct filter_test tests[FILTER_MAX_ARGS];
	unsigned test_count;
	bool has_doubles; /* an argument is tested twice */
};

/* --- actions --- */

/* From the strictest to the most lenient. */
static const char *const action_names[] = { "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD",
	"SCMP_ACT_KILL", "SCMP_ACT_TRAP", "SCMP_ACT_ERRNO", "SCMP_ACT_LOG", "SCMP_ACT_ALLOW",
	"SCMP_ACT_NOTIFY", "SCMP_ACT_TRACE" };
static const uint32_t actions[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
	SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO, SECCOMP_RET_LOG,
	SECCOMP_RET_ALLOW };

/* The kernel orders actions in the same way, as numbers with a sign. */
static int32_t strictness(uint32_t action)
{
	return (int32_t)(action & SECCOMP_RET_ACTION_FULL);
}

static bool lets_through(uint32_t action)
{
	return strictness(action) >= strictness(SECCOMP_RET_LOG);
}

/* An error by number, by name, or EPERM; where both are said, podman's own files have both. */
static int read_errno(struct filter_reader *r, const struct yaml_node *number,
	const struct yaml_node *name, uint32_t *ret)
{
	uint64_t value = EPERM;
	int bad = 0;

	if (!filter_is_absent(number)) {
		bad = filter_read_number(r, number, FILTER_MAX_ERRNO, &value);
	} else if (!filter_is_absent(name)) {
		if ((bad = filter_check_text(r, name)) < 0)
			return bad;
		value = (uint64_t)filter_find_errno(name->text);
		if (value == 0)
			return filter_refuse(
				r, name->at, "'%.60s' is not the name of an error", name->text);
	}
	*ret = (uint32_t)value;
	return bad;
}

static int read_action(struct filter_reader *r, const struct yaml_node *map, const char *key,
	const char *const errno_keys[static 2], uint32_t *ret)
{
	const struct yaml_node *n;
	uint32_t num = 0;
	size_t i = 0;
	int bad = filter_need(r, map, key, &n);

	if (!bad)
		bad = filter_read_word(r, n, "an action", action_names, COUNT_OF(action_names), &i);
	if (!bad && i >= COUNT_OF(actions))
		bad = filter_refuse(r, n->at,
			"%s needs a program outside that answers; bawn has none", n->text);
	if (!bad)
		bad = read_errno(
			r, yaml_get(map, errno_keys[0]), yaml_get(map, errno_keys[1]), &num);
	if (!bad)
		*ret = actions[i] | (actions[i] == SECCOMP_RET_ERRNO ? num : 0);
	return bad;
}

/* --- arguments --- */

static int profile_read_test(
	struct filter_reader *r, const struct yaml_node *map, struct filter_test *ret)
{
	static const char *const keys[] = { "index", "value", "valueTwo", "op" };
	static const char *const op_names[] = { "SCMP_CMP_EQ", "SCMP_CMP_NE", "SCMP_CMP_LT",
		"SCMP_CMP_LE", "SCMP_CMP_GT", "SCMP_CMP_GE", "SCMP_CMP_MASKED_EQ" };
	static const enum filter_op ops[] = { FILTER_EQ, FILTER_NE, FILTER_LT, FILTER_LE, FILTER_GT,
		FILTER_GE, FILTER_EQ };
	const struct yaml_node *index, *value, *op, *two = yaml_get(map, "valueTwo");
	uint64_t arg = 0, one = 0, second = 0;
	size_t i = 0;
	int bad = filter_check_map(r, map, keys, COUNT_OF(keys));

	if (bad || (bad = filter_need(r, map, "index", &index)) ||
		(bad = filter_need(r, map, "value", &value)) ||
		(bad = filter_need(r, map, "op", &op)) ||
		(bad = filter_read_number(r, index, FILTER_MAX_ARGS - 1, &arg)) ||
		(bad = filter_read_number(r, value, UINT64_MAX, &one)) ||
		(bad = filter_read_word(r, op, "a comparison", op_names, COUNT_OF(op_names), &i)) ||
		(!filter_is_absent(two) && (bad = filter_read_number(r, two, UINT64_MAX, &second))))
		return bad;
	*ret = (struct filter_test){ (unsigned)arg, ops[i], UINT64_MAX, one };
	if (str_eq(op_names[i], "SCMP_CMP_MASKED_EQ")) {
		ret->mask = one;
		ret->value = second & one;
	}
	return 0;
}

static int read_tests(struct filter_reader *r, const struct yaml_node *list, struct entry *entry)
{
	unsigned seen = 0;
	int bad = filter_is_absent(list) ? 0 : filter_check_kind(r, list, YAML_LIST);

	if (filter_is_absent(list) || bad)
		return bad;
	if (list->count > FILTER_MAX_ARGS)
		return filter_refuse(r, list->at, "a call has no more than six arguments");
	for (const struct yaml_node *n = list->first; n; n = n->next) {
		struct filter_test *test = &entry->tests[entry->test_count];

		if ((bad = profile_read_test(r, n, test)) < 0)
			return bad;
		entry->has_doubles |= (seen & 1U << test->arg) != 0;
		seen |= 1U << test->arg;
		entry->test_count++;
	}
	return 0;
}

/*
 * Arguments of which the kernel reads 32 bits, among those that profiles test. The rest of the
 * register is the caller's to choose: compared too, "not family 40" would let 40 + 2^32 through.
 */
static void profile_narrow(struct filter_rule *rule, const char *name)
{
	static const struct {
		const char *name;
		unsigned args;
	} narrow[] = { { "clone", 1 }, { "fcntl", 3 }, { "getsockopt", 7 }, { "ioctl", 3 },
		{ "personality", 1 }, { "prctl", 1 }, { "seccomp", 3 }, { "setsockopt", 7 },
		{ "socket", 7 }, { "socketpair", 7 } };

	for (size_t i = 0; i < COUNT_OF(narrow); i++) {
		if (!str_eq(narrow[i].name, name))
			continue;
		for (unsigned k = 0; k < rule->test_count; k++) {
			if (narrow[i].args & 1U << rule->tests[k].arg) {
				rule->tests[k].mask &= FILTER_LOW;
				rule->tests[k].value &= FILTER_LOW;
			}
		}
	}
}

/* --- where an entry applies --- */

/* True if the running kernel is at least this version, such as "4.8". */
static int read_kernel(struct filter_reader *r, const struct yaml_node *n, bool *ret)
{
	struct utsname here;
	char *end = NULL, *here_end = NULL;
	unsigned long major, minor, here_major, here_minor;
	int bad = filter_check_text(r, n);

	if (bad)
		return bad;
	major = strtoul(n->text, &end, 10);
	minor = *end == '.' && str_is_digit(end[1]) ? strtoul(end + 1, &end, 10) : 0;
	if (!str_is_digit(n->text[0]) || *end)
		return filter_refuse(
			r, n->at, "'%.60s' is not a kernel's version, such as 4.8", n->text);
	uname(&here);
	here_major = strtoul(here.release, &here_end, 10);
	here_minor = *here_end == '.' ? strtoul(here_end + 1, NULL, 10) : 0;
	*ret = here_major != major ? here_major > major : here_minor >= minor;
	return 0;
}

/* Evaluates a condition of an entry: *has, whether it is there; *is, whether it holds here. */
struct condition {
	bool has_caps, has_arches, is_arch, has_kernel, is_kernel;
};

static int read_condition(
	struct filter_reader *r, const struct yaml_node *map, struct condition *ret)
{
	static const char *const keys[] = { "caps", "arches", "minKernel" };
	const struct yaml_node *caps, *arches, *kernel;
	int bad;

	*ret = (struct condition){ 0 };
	if (filter_is_absent(map))
		return 0;
	if ((bad = filter_check_map(r, map, keys, COUNT_OF(keys))) < 0)
		return bad;
	caps = yaml_get(map, "caps");
	arches = yaml_get(map, "arches");
	kernel = yaml_get(map, "minKernel");
	if (!filter_is_absent(caps)) {
		if ((bad = filter_check_kind(r, caps, YAML_LIST)) < 0)
			return bad;
		ret->has_caps = caps->count > 0;
	}
	if (!filter_is_absent(arches)) {
		if ((bad = filter_check_kind(r, arches, YAML_LIST)) < 0)
			return bad;
		ret->has_arches = arches->count > 0;
		for (const struct yaml_node *n = arches->first; n; n = n->next)
			ret->is_arch |= n->text && str_eq(n->text, r->arch->go_name);
	}
	ret->has_kernel = !filter_is_absent(kernel);
	return ret->has_kernel ? read_kernel(r, kernel, &ret->is_kernel) : 0;
}

static int read_applies(struct filter_reader *r, const struct yaml_node *map, bool *ret)
{
	struct condition in, out;
	int bad;

	if ((bad = read_condition(r, yaml_get(map, "includes"), &in)) < 0 ||
		(bad = read_condition(r, yaml_get(map, "excludes"), &out)) < 0)
		return bad;
	*ret = !in.has_caps && (!in.has_arches || in.is_arch) && (!in.has_kernel || in.is_kernel) &&
	       !out.is_arch && !out.is_kernel;
	return 0;
}

/* --- entries --- */

static int profile_add_rule(
	struct filter_reader *r, const struct yaml_node *name, struct filter_rule *rule)
{
	profile_narrow(rule, name->text);
	if (filter_rules_add(&r->rules, rule) == 0)
		return 0;
	return filter_refuse(r, name->at, "more than %d rules", FILTER_MAX_RULES);
}

static int add_call(
	struct filter_reader *r, const struct yaml_node *name, const struct entry *entry)
{
	struct filter_rule rule = { .action = entry->action };
	int number, bad = filter_check_text(r, name);

	if (bad || !entry->applies)
		return bad;
	number = filter_find_call(r->arch, name->text);
	if (number == -ENOENT && lets_through(r->rules.action) && !lets_through(entry->action))
		return filter_refuse(r, name->at,
			"'%.60s' cannot be refused: this bawn knows no such system call",
			name->text);
	if (number < 0)
		return 0;
	rule.number = (uint32_t)number;
	if (!entry->has_doubles) {
		rule.test_count = entry->test_count;
		memcpy(rule.tests, entry->tests, sizeof(rule.tests));
		return profile_add_rule(r, name, &rule);
	}
	/* Containers' runtimes take tests of one argument for alternatives, and all with them. */
	for (unsigned i = 0; i < entry->test_count && !bad; i++) {
		rule.test_count = 1;
		rule.tests[0] = entry->tests[i];
		bad = profile_add_rule(r, name, &rule);
	}
	return bad;
}

static int profile_read_entry(struct filter_reader *r, const struct yaml_node *map)
{
	static const char *const keys[] = { "names", "name", "action", "errnoRet", "errno", "args",
		"comment", "includes", "excludes" };
	static const char *const errno_keys[] = { "errnoRet", "errno" };
	const struct yaml_node *names = yaml_get(map, "names"), *name = yaml_get(map, "name");
	struct entry entry = { 0 };
	int bad;

	if ((bad = filter_check_map(r, map, keys, COUNT_OF(keys))) < 0 ||
		(bad = read_action(r, map, "action", errno_keys, &entry.action)) < 0 ||
		(bad = read_tests(r, yaml_get(map, "args"), &entry)) < 0 ||
		(bad = read_applies(r, map, &entry.applies)) < 0)
		return bad;
	if (filter_is_absent(names) == filter_is_absent(name))
		return filter_refuse(r, map->at, "an entry has the key 'names'");
	if (filter_is_absent(names))
		return add_call(r, name, &entry);
	bad = filter_check_kind(r, names, YAML_LIST);
	for (const struct yaml_node *n = names->first; n && !bad; n = n->next)
		bad = add_call(r, n, &entry);
	return bad;
}

static int read_top(struct filter_reader *r, const struct yaml_node *map)
{
	static const char *const keys[] = { "defaultAction", "defaultErrnoRet", "defaultErrno",
		"archMap", "architectures", "syscalls", "flags", "listenerPath",
		"listenerMetadata" };
	static const char *const errno_keys[] = { "defaultErrnoRet", "defaultErrno" };
	static const char *const not_ours[] = { "flags", "listenerPath", "listenerMetadata" };
	const struct yaml_node *list;
	int bad = filter_check_map(r, map, keys, COUNT_OF(keys));

	for (size_t i = 0; i < COUNT_OF(not_ours) && !bad; i++) {
		const struct yaml_node *n = yaml_get(map, not_ours[i]);

		if (!filter_is_absent(n) && (n->kind != YAML_LIST || n->count))
			bad = filter_refuse(r, n->key->at,
				"'%s' is not a profile's to choose in a cage", not_ours[i]);
	}
	if (bad || (bad = read_action(r, map, "defaultAction", errno_keys, &r->rules.action)) < 0)
		return bad;
	list = yaml_get(map, "syscalls");
	if (filter_is_absent(list))
		return 0;
	bad = filter_check_kind(r, list, YAML_LIST);
	for (const struct yaml_node *n = list->first; n && !bad; n = n->next)
		bad = profile_read_entry(r, n);
	return bad;
}

/* --- the whole --- */

/* JSON may be indented with tabs, which the reader of specs refuses; a space is as wide. */
static char *copy_json(struct arena *arena, const char *bytes, size_t n)
{
	char *copy = arena_copy(arena, bytes, n);

	for (size_t i = 0; copy && i < n; i++)
		if (copy[i] == '\t')
			copy[i] = ' ';
	return copy;
}

static int read_json(struct filter_reader *r, const char *name, const char *bytes, size_t n)
{
	unsigned source = diags_add_source(r->diags, name, bytes, n);
	struct diag_pos whole = { .source = source };
	size_t start = 0;
	const struct yaml_node *root;
	const struct diag *first = r->diags->items;

	while (start < n && bytes[start] && strchr(" \r\n", bytes[start]))
		start++;
	if (start == n || bytes[start] != '{')
		return filter_refuse(
			r, whole, "a profile of system calls is JSON and starts with '{'");
	root = yaml_read(&r->arena, r->diags, source, bytes, n);
	if (r->diags->errors)
		return filter_refuse(r, first->at, "%s", first->text);
	return root ? read_top(r, root) : filter_refuse(r, whole, "nothing can be read");
}

/* The wall first; then the strictest, and of equals the first. */
static int order_rules(struct filter_reader *r, struct filter_rules *ret)
{
	struct filter_rules ordered = { r->arch->audit, r->rules.action, NULL, 0 };
	int bad = 0;

	ordered.items = arena_array(&r->arena, FILTER_MAX_RULES, sizeof(*ordered.items));
	if (!ordered.items)
		return -ENOMEM;
	for (size_t i = 0; i < filter_always_count && !bad; i++)
		bad = filter_rules_add(&ordered, &filter_always[i]);
	for (size_t a = 0; a < COUNT_OF(actions); a++) {
		if (a && actions[a] == actions[a - 1])
			continue;
		for (size_t i = 0; i < r->rules.count && !bad; i++)
			if (strictness(r->rules.items[i].action) == strictness(actions[a]))
				bad = filter_rules_add(&ordered, &r->rules.items[i]);
	}
	*ret = ordered;
	return bad;
}

static int read_profile(struct filter_reader *r, const char *name, const char *bytes, size_t n,
	struct filter_made *ret)
{
	struct filter_rules ordered;
	struct filter program;
	char *copy = copy_json(&r->arena, bytes, n);
	int bad;

	r->diags = arena_alloc(&r->arena, sizeof(*r->diags));
	r->rules.items = arena_array(&r->arena, FILTER_MAX_RULES, sizeof(*r->rules.items));
	if (!copy || !r->diags || !r->rules.items)
		return -ENOMEM;
	diags_init(r->diags, &r->arena);
	if ((bad = read_json(r, name, copy, n)) < 0)
		return bad;
	bad = order_rules(r, &ordered);
	if (!bad)
		bad = filter_compile(&ordered, &r->arena, &program);
	if (bad == -E2BIG)
		return err_set(r->e, ERR_SPEC, 0,
			"%s: the profile is longer than the kernel accepts", name);
	if (bad)
		return bad;
	ret->code = malloc(program.count * sizeof(*program.code));
	if (!ret->code)
		return -ENOMEM;
	memcpy(ret->code, program.code, program.count * sizeof(*program.code));
	ret->count = program.count;
	return 0;
}

int filter_read_profile(
	const char *name, const char *bytes, size_t n, struct filter_made *ret, struct err *e)
{
	struct filter_reader r = { .e = e, .arch = filter_arch_native() };
	int bad;

	if (n > YAML_MAX_SIZE)
		return err_set(e, ERR_SPEC, 0, "%s: the file is larger than 256 kB", name);
	arena_init(&r.arena, (size_t)64 << 20);
	bad = read_profile(&r, name, bytes, n, ret);
	if (bad == -ENOMEM)
		err_set(e, ERR_SYS, ENOMEM, "%s: out of memory", name);
	arena_done(&r.arena);
	return bad;
}
