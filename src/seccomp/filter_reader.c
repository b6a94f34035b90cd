#include "seccomp/filter_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

int filter_refuse(struct filter_reader *r, struct diag_pos at, const char *fmt, ...)
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

bool filter_is_absent(const struct yaml_node *n)
{
	return !n || (n->kind == YAML_SCALAR && n->type == YAML_NULL);
}

int filter_check_kind(struct filter_reader *r, const struct yaml_node *n, enum yaml_kind kind)
{
	const struct yaml_node wanted = { .kind = kind };

	if (n->kind == kind)
		return 0;
	return filter_refuse(
		r, n->at, "this must be %s, not %s", yaml_describe(&wanted), yaml_describe(n));
}

int filter_check_text(struct filter_reader *r, const struct yaml_node *n)
{
	if (n->kind == YAML_SCALAR && n->type == YAML_TEXT)
		return 0;
	return filter_refuse(r, n->at, "this must be text, not %s", yaml_describe(n));
}

int filter_check_map(
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

int filter_need(struct filter_reader *r, const struct yaml_node *map, const char *key,
	const struct yaml_node **ret)
{
	*ret = yaml_get(map, key);
	return filter_is_absent(*ret) ? filter_refuse(r, map->at, "the key '%s' is missing", key)
				      : 0;
}

int filter_read_number(
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

int filter_read_word(struct filter_reader *r, const struct yaml_node *n, const char *what,
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
