/*
 * Writes the seeds of fuzz_plan: plans of small specs, and such with one thing wrong.
 *
 *   make_plans DIRECTORY
 *
 * To be run again when the form of a plan changes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "fake_host.h"
#include "make_spec.h"
#include "plan/plan.h"

#define ALL "version: 1\n"

static const char *const specs[][2] = {
	{ "default", ALL },
	{ "logical", ALL "engine: logical\n" },
	{ "bwrap", ALL "engine: bwrap\n" },
	{ "container", ALL "engine: container\nengine_args: [--x]\n" },
	{ "microvm", ALL "engine: microvm\n" },
	{ "landlock", ALL "engine: landlock\nrelaxed: true\n" },
	{ "image", ALL "engine: logical\nroot: {image: dir:/srv/image}\n" },
	{ "writable", ALL "project: {mode: writable, protect: [x]}\n" },
	{ "parts",
		ALL "project: {read_allowlist: [$PROJECT/a/**], write_allowlist: [$PROJECT/b]}\n" },
	{ "network", ALL "network: {mode: allowlist, allow: [a.org:443, \"10.0.0.0/8:1\"], "
			 "host_ports: [1], publish: [\"1:1\"]}\n" },
	{ "limits", ALL "engine: logical\nlimits: {time: 1h, output: 1M}\n" },
	{ "command", ALL "engine: logical\nname: n\ncommand: [a, b]\nstartup_commands: [c]\n"
			 "startup_prompts: [d]\nenv: {set: {E: f}, pass: [G]}\n" },
	{ "binds", ALL "binds: [~/a:/b, c:/d:rw, ../e:/f]\n" },
};

static int write_seed(const char *dir, const char *name, const void *bytes, size_t n)
{
	char path[4096];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return fd < 0 || file_write_all(fd, bytes, n) < 0;
}

/* One thing wrong each, in the plan of the logical engine, which is the smallest. */
static int write_bad(const char *dir, struct plan *p)
{
	const struct plan head = *p;
	struct plan_op *op = (struct plan_op *)(p + 1);
	int failed = write_seed(dir, "bad-cut", p, p->size - 9);

	failed += write_seed(dir, "bad-head-only", p, sizeof(*p));
	p->op_count += 0xaaaaaaabU;
	failed += write_seed(dir, "bad-count", p, head.size);
	*p = head;
	p->string_size = 0;
	failed += write_seed(dir, "bad-strings", p, head.size);
	*p = head;
	op->a = head.string_size;
	failed += write_seed(dir, "bad-offset", p, head.size);
	op->a = 1;
	op->kind = PLAN_OP_KIND_COUNT;
	failed += write_seed(dir, "bad-kind", p, head.size);
	op->kind = PLAN_BIND;
	failed += write_seed(dir, "bad-operand", p, head.size);
	return failed;
}

int main(int argc, char **argv)
{
	static struct spec spec;
	struct host host;
	int failed = argc != 2;

	fake_host_init(&host);
	for (size_t i = 0; !failed && i < COUNT_OF(specs); i++) {
		own_free struct plan *p = NULL;
		struct err e = { 0 };

		if (!make_spec(&spec, specs[i][1]) || plan_build(&spec, &host, &p, NULL, &e) < 0) {
			printf("%s: %s\n", specs[i][0], e.text);
			failed = 1;
		} else {
			failed = write_seed(argv[1], specs[i][0], p, p->size);
		}
		if (!failed && i == 1)
			failed = write_bad(argv[1], p);
		spec_done(&spec);
	}
	return failed;
}
