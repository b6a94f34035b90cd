/*
 * keeper_words - the command's arguments and environment, built from nothing.
 *
 * Runs as:  the keeper, before the clone.
 * Reads:    the plan, and of the operator's variables those that the plan passes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/str.h"
#include "cage/cage_break.h"
#include "keeper/start/keeper_sources.h"

#define MAX_WORDS_SIZE ((size_t)64 * 1024 * 1024)

/* NAME=VALUE; a later one replaces an earlier one of the same name. */
static bool set_variable(
	struct keeper_words *w, char **list, size_t *count, const char *name, const char *value)
{
	char *pair = arena_printf(&w->arena, "%s=%s", name, value);
	size_t n = strlen(name) + 1;

	if (!pair)
		return false;
	for (size_t i = 0; i < *count; i++) {
		if (strncmp(list[i], pair, n) == 0) {
			list[i] = pair;
			return true;
		}
	}
	list[(*count)++] = pair;
	return true;
}

static bool words_add_variable(struct keeper_words *w, const struct cage_start *start,
	const struct plan_op *op, size_t *count)
{
	const char *name = plan_str(start->plan, op->a), *value = plan_str(start->plan, op->b);
	char filled[4096];

	if (op->kind == PLAN_ENV_PASS) {
		value = getenv(name);
		return !value || set_variable(w, w->environment, count, name, value);
	}
	if (op->flags & PLAN_OWN) {
		if (cage_is_broken("home") && str_eq(name, "HOME"))
			value = "/";
		if (!cage_fill_in(start, op->b_root, value, filled, sizeof(filled)))
			return false;
		value = filled;
		/* Its terminal is shown on the operator's, and understands what that does. */
		if (start->term && str_eq(name, "TERM"))
			value = start->term;
	}
	return set_variable(w, w->environment, count, name, value);
}

#ifdef BAWN_BREAKABLE
extern char **environ;

/* Adds the operator's variables, but for those of the plan: the preflight would stop another HOME.
 */
static bool leak_variables(struct keeper_words *w, size_t count)
{
	size_t n = 0, own = count;
	char **all;

	while (environ[n])
		n++;
	all = arena_array(&w->arena, count + n + 1, sizeof(char *));
	if (!all)
		return false;
	memcpy(all, w->environment, count * sizeof(char *));
	for (size_t i = 0; i < n; i++) {
		size_t name = strcspn(environ[i], "=") + 1, at = 0;

		while (at < own && strncmp(all[at], environ[i], name) != 0)
			at++;
		if (at == own)
			all[count++] = environ[i];
	}
	w->environment = all;
	return true;
}
#else
static bool leak_variables(struct keeper_words *w, size_t count)
{
	(void)w;
	(void)count;
	return true;
}
#endif

int keeper_words_make(struct keeper_words *ret, const struct cage_start *start, struct err *e)
{
	size_t n = start->plan->op_count + 1, arguments = 0, variables = 0;
	bool is_good;

	arena_init(&ret->arena, MAX_WORDS_SIZE);
	ret->arguments = arena_array(&ret->arena, n, sizeof(char *));
	ret->environment = arena_array(&ret->arena, n, sizeof(char *));
	is_good = ret->arguments && ret->environment;
	for (uint32_t i = 0; is_good && i < start->plan->op_count; i++) {
		const struct plan_op *op = &plan_ops(start->plan)[i];
		const char *a = plan_str(start->plan, op->a);

		if (op->kind == PLAN_ARGUMENT)
			is_good = (ret->arguments[arguments++] =
						  arena_copy(&ret->arena, a, strlen(a))) != NULL;
		else if (op->kind == PLAN_ENV || op->kind == PLAN_ENV_PASS)
			is_good = words_add_variable(ret, start, op, &variables);
	}
	if (is_good && cage_is_broken("environment"))
		is_good = leak_variables(ret, variables);
	if (!is_good)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot set the command's variables: out of memory");
	return 0;
}

void keeper_words_done(struct keeper_words *words)
{
	arena_done(&words->arena);
	if (words->shared)
		munmap(words->shared, words->shared_size);
	words->shared = NULL;
}
