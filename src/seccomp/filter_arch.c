#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "seccomp/filter_rules.h"

static const struct filter_arch arches[] = {
	{ "x86_64", "amd64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64 },
	{ "aarch64", "arm64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64 },
};

const struct filter_arch *filter_arch_named(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(arches); i++)
		if (str_eq(arches[i].name, name))
			return &arches[i];
	return NULL;
}

const struct filter_arch *filter_arch_native(void)
{
#if defined(__aarch64__)
	return filter_arch_named("aarch64");
#else
	return filter_arch_named("x86_64"); /* gen_filter ends the build for any other */
#endif
}

int filter_find_call(const struct filter_arch *arch, const char *name)
{
	int number = seccomp_syscall_resolve_name_arch(arch->scmp, name);

	if (number == __NR_SCMP_ERROR)
		return -ENOENT;
	/* libseccomp gives calls of other architectures numbers below that. */
	return number < 0 ? -ENOTSUP : number;
}

int filter_find_errno(const char *name)
{
	for (int num = 1; num <= FILTER_MAX_ERRNO; num++) {
		const char *known = strerrorname_np(num);

		if (known && str_eq(known, name))
			return num;
	}
	return 0;
}
