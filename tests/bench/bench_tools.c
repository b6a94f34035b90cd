#include "bench_tools.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const bench_etc[] = { "/etc/alternatives", "/etc/ca-certificates", "/etc/ld.so.cache",
	"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ssl", NULL };

/* An empty command for a program; `missing` where it is not installed. */
static bool make_command(struct bench_command *ret, const struct bench_who *who, const char *name)
{
	const char *path = bench_find_program(name);

	*ret = (struct bench_command){ .name = name, .who = who, .mount_ns = -1 };
	if (path)
		bench_add_arg(ret, path);
	else
		ret->missing = "not installed";
	return path != NULL;
}

void bench_make_true(struct bench_command *ret, const struct bench_who *who)
{
	make_command(ret, who, "true");
	ret->is_ours = true;
}

void bench_make_bawn(struct bench_command *ret, const struct bench_who *who, const char *bawn)
{
	const char *const args[] = { bawn, "run", "--", "/bin/true", NULL };

	*ret = (struct bench_command){
		.name = "bawn", .who = who, .mount_ns = -1, .is_ours = true
	};
	bench_add_args(ret, args);
}

void bench_make_unlimited(struct bench_command *ret, const struct bench_who *who, const char *bawn)
{
	bench_make_bawn(ret, who, bawn);
	ret->name = "unlimited";
	ret->mount_ns = who->id == 0 ? bench_hide_cgroups() : -1;
	if (ret->mount_ns < 0)
		ret->missing = "no cgroups to go without";
}

void bench_make_version(struct bench_command *ret, const struct bench_who *who, const char *bawn)
{
	const char *const args[] = { bawn, "version", NULL };

	*ret = (struct bench_command){
		.name = "version", .who = who, .mount_ns = -1, .is_ours = true
	};
	bench_add_args(ret, args);
}

void bench_make_bwrap(struct bench_command *ret, const struct bench_who *who)
{
	static const char *const before[] = { "--unshare-all", "--new-session", "--die-with-parent",
		"--uid", "1000", "--gid", "1000", "--hostname", "bawn", "--clearenv", "--setenv",
		"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--setenv",
		"HOME", "/home/agent", "--setenv", "LANG", "C.UTF-8", "--setenv", "TMPDIR", "/tmp",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink",
		"usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
		"/lib64", NULL };
	static const char *const after[] = { "--symlink", "/proc/self/mounts", "/etc/mtab",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs",
		"/var", "--dir", "/home/agent", "--dir", "/mnt", "--dir", "/opt", "--dir", "/srv",
		"--bind", ".", "/work", "--chdir", "/work", "--", "/bin/true", NULL };

	if (!make_command(ret, who, "bwrap"))
		return;
	bench_add_args(ret, before);
	for (const char *const *path = bench_etc; *path; path++)
		if (access(*path, F_OK) == 0)
			bench_add_args(
				ret, (const char *const[]){ "--ro-bind", *path, *path, NULL });
	bench_add_args(ret, after);
}

void bench_make_firejail(struct bench_command *ret, const struct bench_who *who)
{
	static const char *const args[] = { "--quiet", "--noprofile", "--net=none", "--private-tmp",
		"--private-dev", "--caps.drop=all", "--nonewprivs", "--seccomp", "--ipc-namespace",
		"--hostname=bawn", NULL };

	if (!make_command(ret, who, "firejail"))
		return;
	bench_add_args(ret, args);
	bench_add_arg(ret, bench_print("--private=%s", who->project));
	bench_add_arg(ret, "/bin/true");
}
