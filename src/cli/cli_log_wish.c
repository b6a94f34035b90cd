#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli_log.h"

/* --- options --- */

static int add_type(struct cli_log_wish *w, const char *type)
{
	const char *names[CLI_MOST_TYPES], *near;
	size_t n = 0;

	for (const char *name; n < CLI_MOST_TYPES && (name = log_type_name(n)); n++) {
		names[n] = name;
		if (!str_eq(name, type))
			continue;
		if (w->type_count < CLI_MOST_TYPES)
			w->types[w->type_count++] = name;
		return CLI_OK;
	}
	near = str_nearest(type, names, n);
	if (near)
		cli_complain("there is no type '%s' of events; did you mean %s?", type, near);
	else
		cli_complain("there is no type '%s' of events; bawn(1) lists them", type);
	return CLI_MISUSE;
}

/* As events have it, or less exactly: a T may be a blank, and what is not said is zero. */
static bool log_wish_read_time(const char *text, struct timespec *ret)
{
	static const char *const ends[] = { "", "Z", ":00Z", "T00:00:00Z" };
	char whole[CLOCK_TEXT_SIZE];

	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		if (snprintf(whole, sizeof(whole), "%s%s", text, ends[i]) >= (int)sizeof(whole))
			return false;
		if (strlen(whole) > 10 && whole[10] == ' ')
			whole[10] = 'T';
		if (clock_parse(whole, ret) == 0)
			return true;
	}
	return false;
}

/* A moment, or how long ago it was. */
static int read_since(struct cli_log_wish *w, const char *text)
{
	uint64_t ms;

	w->has_since = true;
	if (log_wish_read_time(text, &w->since))
		return CLI_OK;
	if (num_parse_duration(text, &ms, NULL) < 0) {
		cli_complain(
			"--since takes a time, such as 2026-11-15T22:45, or how long ago, such "
			"as 1h30m; not '%s'",
			text);
		return CLI_MISUSE;
	}
	clock_gettime(CLOCK_REALTIME, &w->since);
	w->since.tv_sec -= (time_t)((ms + 999) / 1000);
	return CLI_OK;
}

static int read_most(struct cli_log_wish *w, const char *text)
{
	w->has_most = true;
	if (num_parse_int(text, 0, INT64_MAX, &w->most, NULL) == 0)
		return CLI_OK;
	cli_complain("--lines takes a number, not '%s'", text);
	return CLI_MISUSE;
}

int cli_log_read_wish(const struct cli *cli, struct cli_log_wish *ret)
{
	const char *since = cli_value(cli, CLI_OPT_SINCE), *most = cli_value(cli, CLI_OPT_LINES);
	int status = CLI_OK;

	*ret = (struct cli_log_wish){
		.session = cli_value(cli, CLI_OPT_SESSION),
		.is_denials = cli_value(cli, CLI_OPT_DENIALS) != NULL,
		.is_followed = cli_value(cli, CLI_OPT_FOLLOW) != NULL,
	};
	for (size_t i = 0; i < cli->given_count && status == CLI_OK; i++)
		if (cli_is(&cli->given[i], CLI_OPT_TYPE))
			status = add_type(ret, cli->given[i].value);
	if (status == CLI_OK && since)
		status = read_since(ret, since);
	if (status == CLI_OK && most)
		status = read_most(ret, most);
	return status;
}

/* --- events --- */

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool has_type(const struct cli_log_wish *w, const char *type)
{
	for (size_t i = 0; i < w->type_count; i++)
		if (str_eq(w->types[i], type))
			return true;
	return w->type_count == 0;
}

bool cli_log_is_wished(const struct cli_log_wish *w, const struct log_event *x)
{
	struct timespec time;

	/* One whose time cannot be read is rather shown than not. */
	if (w->has_since && clock_parse(x->time, &time) == 0 && is_before(&time, &w->since))
		return false;
	return has_type(w, x->type) && (!w->is_denials || log_is_denial(x)) &&
	       (!w->run || str_eq(w->run, x->run)) &&
	       (!w->session || str_eq(w->session, x->session));
}
