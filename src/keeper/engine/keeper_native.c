/*
 * keeper_native - the engine that makes cages by system calls of bawn's own.
 *
 * Runs as:  the keeper. The first process is a copy of it, and src/cage is what it does.
 * Must not: let the command of a run that joins its session's cage outlive what ends it for a
 *           reason: its process group is ended with it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

/* --- start --- */

/* Where the first process may not write its own maps, the keeper does. */
static int native_map_ids(struct keeper *k, struct err *e)
{
	const struct plan_op *ids = plan_find(k->start.plan, PLAN_IDS, NULL);
	unsigned inside = ids ? (unsigned)ids->n : 0;
	int r;

	if (k->start.join || (!k->start.ids.is_given && !k->start.ids.is_team))
		return 0;
	r = cage_write_maps(k->process.pid, &k->start.ids, inside, e);
	if (r == 0 && k->start.ids.is_team) {
		r = keeper_team_map(k->process.pid, k->start.ids.gid, inside, k->q->folder, e);
		/* What fails here is a reason to do without. */
		if (r < 0)
			k->record->failed_op = (int)(ids - plan_ops(k->start.plan));
	}
	if (r == 0 && wire_send(k->process.channel, WIRE_MAPPED, 0, NULL) < 0)
		r = err_set(
			e, ERR_SYS, EPIPE, "cannot make the cage: it ended before it was complete");
	return r;
}

static int native_start(struct keeper *k, struct err *e)
{
	struct keeper_process *p = &k->process;
	int r = k->start.join ? cage_spawn_join(&k->start, &p->pid, &p->pidfd, e)
			      : cage_spawn(&k->start, &p->pid, &p->pidfd, e);

	/* From here on the channel ends with the cage. */
	close(take_fd(&k->start.channel));
	return r == 0 ? native_map_ids(k, e) : r;
}

/* --- signals --- */

static void native_signal_group(const struct keeper_process *p, int number)
{
	bool is_for_group = number == SIGINT || number == SIGQUIT || number == SIGHUP ||
			    number == SIGTSTP || number == SIGWINCH || number == SIGSTOP ||
			    number == SIGCONT || number == SIGKILL;

	/* It is not reaped, so the number is its own. */
	if (p->pid > 0 && (!is_for_group || kill(-p->pid, number) < 0))
		kill(p->pid, number);
}

/* The init passes signals on; a command that joined is a process of the keeper's own. */
static void native_signal(const struct keeper *k, int number)
{
	if (k->start.join)
		native_signal_group(&k->process, number);
	else
		wire_send(k->process.channel, WIRE_SIGNAL, number, NULL);
}

/* The kernel ends all others of a pid namespace with its first process. */
static void native_kill(const struct keeper *k)
{
	if (k->start.join)
		native_signal_group(&k->process, SIGKILL);
	else if (k->process.pidfd >= 0)
		syscall(SYS_pidfd_send_signal, k->process.pidfd, SIGKILL, NULL, 0);
	else if (k->process.pid > 0)
		kill(k->process.pid, SIGKILL);
}

/* --- the end --- */

static int native_wait(struct keeper *k, int *ret_status, struct err *e)
{
	struct keeper_process *p = &k->process;
	struct pollfd end = { .fd = p->pidfd, .events = POLLIN };
	struct rusage used = { 0 };
	int status = 0;

	if (p->pidfd >= 0 && poll(&end, 1, KEEPER_REAP_MS) == 0)
		return err_set(e, ERR_SYS, ETIMEDOUT,
			"cannot end process %d of the cage: it was killed and hangs in the kernel "
			"until a system call returns",
			p->pid);
	while (p->pid > 0 && wait4(p->pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	p->cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * (int64_t)1000000 +
		    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	p->pid = -1;
	if (ret_status)
		*ret_status = status;
	return 0;
}

/* utime, stime, cutime and cstime of proc_pid_stat(5), counted from the field behind the name. */
#define FIRST_TIME 11
#define LAST_TIME  14

static int64_t native_cpu_us(const struct keeper *k)
{
	char path[64], text[1024], *rest, *field;
	uint64_t ticks = 0;
	int i = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", k->process.pid);
	if (file_read_small(path, text, sizeof(text)) <= 0)
		return -1;
	/* Its name, which may have anything in it, ends with the last bracket. */
	rest = strrchr(text, ')');
	rest = rest && rest[1] ? rest + 2 : NULL;
	for (; rest && i <= LAST_TIME && (field = lines_field(&rest, ' ')); i++)
		if (i >= FIRST_TIME)
			ticks += strtoull(field, NULL, 10);
	return i > LAST_TIME ? (int64_t)(ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK)) : -1;
}

/* --- evidence --- */

static int native_inspect(
	const struct keeper *k, struct keeper_snapshot *ret, struct arena *arena, struct err *e)
{
	return keeper_snapshot_read(ret, k->process.pid, arena, e);
}

static void native_versions(struct record *record)
{
	struct utsname kernel;

	if (uname(&kernel) == 0)
		snprintf(record->kernel, sizeof(record->kernel), "%s", kernel.release);
}

const struct keeper_engine keeper_native = {
	.engine = SPEC_ENGINE_NATIVE,
	.start = native_start,
	.signal = native_signal,
	.kill = native_kill,
	.wait = native_wait,
	.cpu_us = native_cpu_us,
	.inspect = native_inspect,
	.versions = native_versions,
};
