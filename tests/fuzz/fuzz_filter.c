/* Bytes as a profile of system calls. What is read is a program, and no hole in the wall. */
#include <errno.h>

#include "base/own.h"
#include "bpf.h"
#include "fuzz.h"
#include "seccomp/filter_rules.h"

static uint32_t ask(const struct filter *program, const char *name, uint64_t flags)
{
	struct seccomp_data data = { .nr = filter_find_call(filter_arch_native(), name),
		.arch = filter_arch_native()->audit,
		.args = { flags, flags } };
	unsigned steps;

	return bpf_run(program, &data, &steps);
}

static void check_wall(const struct filter *program)
{
	const uint32_t eperm = SECCOMP_RET_ERRNO | EPERM, enosys = SECCOMP_RET_ERRNO | ENOSYS;
	struct seccomp_data other = { .arch = 0x40000003 };
	struct seccomp_data x32 = { .nr = 0x40000000, .arch = filter_arch_native()->audit };
	unsigned steps;

	if (!bpf_is_sound(program) ||
		bpf_run(program, &other, &steps) != SECCOMP_RET_KILL_PROCESS ||
		bpf_run(program, &x32, &steps) != enosys || ask(program, "clone3", 0) != enosys ||
		ask(program, "setns", 0) != eperm || ask(program, "mount", 0) != eperm ||
		ask(program, "keyctl", 0) != eperm || ask(program, "clone", 0x10000000) != eperm ||
		ask(program, "unshare", 0x80) != eperm ||
		ask(program, "ioctl", 0x100005412) != eperm || ask(program, "seccomp", 8) != eperm)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	own(filter_made) struct filter_made made = { 0 };
	struct err e = { 0 };

	if (filter_read_profile("f", text, size, &made, &e) == 0) {
		check_wall(&(struct filter){ made.code, made.count });
	} else if (made.code || e.kind == ERR_NONE || strncmp(e.text, "f:", 2) != 0) {
		abort();
	}
	for (const char *p = e.text; *p; p++) /* nothing in it moves a cursor */
		if ((unsigned char)*p < 0x20)
			abort();
	free(text);
	return 0;
}
