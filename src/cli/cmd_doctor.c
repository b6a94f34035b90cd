#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cli/commands.h"

const struct cli_option cmd_doctor_options[] = {
	CLI_OWN("host", 0, "FILE", "judge a host that doctor --json described"),
	{ 0 },
};

static const char *engine_name(enum spec_engine e)
{
	return spec_keys[SPEC_ENGINE].choices[e];
}

/* The result for one guarantee on this host. */
struct finding {
	bool is_possible;
	enum host_cause cause; /* why not */
	enum host_ability missing;
};

static void doctor_look(const struct host *h, enum plan_guarantee g, struct finding *ret)
{
	struct plan_verdict native = plan_engine_gives(SPEC_ENGINE_NATIVE, g, h);

	*ret = (struct finding){ .is_possible = native.can };
	if (!native.can) {
		ret->missing = native.missing;
		ret->cause = h->abilities[native.missing].cause;
	}
}

static void print_row(const struct host *h, enum plan_guarantee g, struct buf *out, bool color)
{
	struct finding f;

	doctor_look(h, g, &f);
	buf_printf(out, "  %s%-4s%s%-15s ",
		!color          ? ""
		: f.is_possible ? "\x1b[32m"
				: "\x1b[31m",
		f.is_possible ? "yes" : "no", color ? "\x1b[0m" : "", plan_guarantee_defs[g].name);
	if (f.is_possible)
		buf_printf(out, "%s\n", plan_guarantee_defs[g].meaning);
	else
		buf_printf(out, "needs %s: %s\n", host_ability_defs[f.missing].meaning,
			host_cause_defs[f.cause].because);
}

/* Each remedy once, with what it brings back. */
static void print_remedies(const struct host *h, struct buf *out)
{
	bool has_title = false;

	for (enum host_cause cause = HOST_CAUSE_NONE + 1; cause < HOST_CAUSE_COUNT; cause++) {
		bool is_first = true;

		for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
			struct finding f;

			doctor_look(h, g, &f);
			if (f.cause != cause)
				continue;
			if (!has_title)
				buf_puts(out, "\nWhat would help\n");
			has_title = true;
			buf_printf(
				out, "%s%s", is_first ? "  " : ", ", plan_guarantee_defs[g].name);
			is_first = false;
		}
		if (!is_first)
			buf_printf(out, "\n    %s\n", host_cause_defs[cause].remedy);
	}
}

static void doctor_print_text(const struct host *h, const struct plan_choice *c, bool is_nested,
	struct buf *out, bool color)
{
	if (c->engine != SPEC_ENGINE_AUTO)
		buf_printf(out, "Hardened cages are possible here, with engine %s.\n\n",
			engine_name(c->engine));
	else
		buf_printf(out, "Hardened cages are not possible here%s.\n\n",
			is_nested ? ": this is already a cage" : "");
	buf_printf(out, "  %-4s%-15s %s\n", "", "guarantee", "what it means");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		print_row(h, g, out, color);
	print_remedies(h, out);
	buf_printf(out, "\nThis host: Linux %s %s, as %s, Landlock ABI %d, cgroup v%d%s%s\n",
		h->kernel, h->arch, h->is_root ? "root" : "an ordinary user", h->landlock_abi,
		h->cgroup_version, *h->container ? ", inside " : "", h->container);
}

static void print_guarantee_json(const struct host *h, enum plan_guarantee g, struct json *j)
{
	struct finding f;

	doctor_look(h, g, &f);
	json_open_map(j, plan_guarantee_defs[g].name);
	json_bool(j, "possible", f.is_possible);
	json_open_list(j, "engines");
	for (enum spec_engine e = SPEC_ENGINE_NATIVE; e < SPEC_ENGINE_LOGICAL; e++)
		if (plan_engine_runs(e) && plan_engine_gives(e, g, h).can)
			json_text(j, NULL, engine_name(e));
	json_close_list(j);
	if (f.cause != HOST_CAUSE_NONE) {
		json_text(j, "missing", host_ability_defs[f.missing].name);
		json_text(j, "cause", host_cause_defs[f.cause].because);
		json_text(j, "remedy", host_cause_defs[f.cause].remedy);
	}
	json_close_map(j);
}

static void doctor_print_json(const struct host *h, const struct plan_choice *c, struct buf *out)
{
	struct json j;

	/* In lines, so that it can be read back: a spec's reader takes no endless line. */
	json_init(&j, out, 1);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_bool(&j, "hardened", c->engine != SPEC_ENGINE_AUTO);
	json_text(&j, "engine", c->engine == SPEC_ENGINE_AUTO ? NULL : engine_name(c->engine));
	json_open_map(&j, "guarantees");
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		print_guarantee_json(h, g, &j);
	json_close_map(&j);
	json_open_map(&j, "host");
	host_print_json(h, &j);
	json_close_map(&j);
	cli_json_end(&j);
}

int cmd_doctor(struct cli *cli)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	struct plan_choice choice;
	struct spec s;
	struct host h;
	int status = cli_probe(cli, &h);

	if (status != CLI_OK)
		return status;
	/* The question is what a spec that says nothing would get. */
	spec_init(&s);
	spec_settle(&s);
	plan_choose(&s, &h, &choice);
	spec_done(&s);
	if (cli->is_json)
		doctor_print_json(&h, &choice, &out);
	else
		doctor_print_text(&h, &choice, run_is_in_cage() && !cli_value(cli, CLI_OPT_HOST),
			&out, cli->has_color);
	return cli_write(&out, choice.engine == SPEC_ENGINE_AUTO ? CLI_NO : CLI_OK);
}
