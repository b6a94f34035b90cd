/*
 * without - runs a program on a kernel that lacks something.
 *
 *     without RULE... -- PROGRAM [ARGUMENT...]
 *
 *     NAME[=ERRNO]             the system call is not there (ENOSYS), or refused
 *     NAME:NUMBER[=ERRNO]      where its first argument is this, as in prctl:22=EINVAL
 *     NAME:NEWUSER[=ERRNO]     where clone, clone3 or unshare has this flag
 *     NAME:TYPE[=ERRNO]        where fsopen or mount is for this type of file system
 *     landlock:ABI             Landlock as in this version; 0: there, and not switched on
 *
 * A filter answers where the registers tell enough. For the rest the kernel asks us, and we look
 * into the caller's memory, which is good enough for tests: a hostile program could change it after
 * we have looked. Without rights this sets no_new_privs, so set-user-id programs do not work below.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "name the architecture here"
#endif

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define RULES_MAX   64

struct name {
	const char *name;
	uint64_t value;
};

#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}
#define ERROR(name)                                                                                \
	{                                                                                          \
#name, name                                                                        \
	}
#define FLAG(name)                                                                                 \
	{                                                                                          \
#name, CLONE_##name                                                                \
	}

static const struct name calls[] = {
	CALL(capset),
	CALL(clone),
	CALL(clone3),
	CALL(close_range),
	CALL(execveat),
	CALL(faccessat2),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fsopen),
	CALL(ioctl),
	CALL(keyctl),
	CALL(landlock_add_rule),
	CALL(landlock_create_ruleset),
	CALL(landlock_restrict_self),
	CALL(memfd_create),
	CALL(mknodat),
	CALL(mount),
	CALL(mount_setattr),
	CALL(move_mount),
	CALL(open_tree),
	{ "open_tree_attr", 467 }, /* newer than the headers */
	CALL(openat2),
	CALL(pidfd_getfd),
	CALL(pidfd_open),
	CALL(pidfd_send_signal),
	CALL(pivot_root),
	CALL(prctl),
	CALL(prlimit64),
	CALL(renameat2),
	CALL(seccomp),
	CALL(setgroups),
	CALL(sethostname),
	CALL(setns),
	CALL(setresgid),
	CALL(setresuid),
	CALL(socket),
	CALL(statx),
	CALL(umount2),
	CALL(unshare),
	CALL(waitid),
};

static const struct name errors[] = {
	ERROR(E2BIG),
	ERROR(EACCES),
	ERROR(EAFNOSUPPORT),
	ERROR(EAGAIN),
	ERROR(EBUSY),
	ERROR(EINVAL),
	ERROR(EMFILE),
	ERROR(ENODEV),
	ERROR(ENOENT),
	ERROR(ENOMEM),
	ERROR(ENOSPC),
	ERROR(ENOSYS),
	ERROR(EOPNOTSUPP),
	ERROR(EPERM),
	ERROR(EUSERS),
};

static const struct name flags[] = {
	FLAG(NEWCGROUP),
	FLAG(NEWIPC),
	FLAG(NEWNET),
	FLAG(NEWNS),
	FLAG(NEWPID),
	FLAG(NEWUSER),
	FLAG(NEWUTS),
};

enum condition {
	ALWAYS,
	IS_NUMBER, /* the first argument is `value` */
	HAS_FLAG,  /* the first argument has `value`; of clone3, the structure it points to */
	IS_TYPE,   /* the string argument is `text` */
	IS_NEWER,  /* this call of Landlock's came later than version `value`, or has something that
		      did */
};

struct rule {
	int call, error;
	enum condition condition;
	uint64_t value;
	const char *text;
	bool is_asked; /* by us, not by the filter */
};

static struct rule rules[RULES_MAX];
static size_t rule_count;

static const struct name *find(const struct name *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

static void add(struct rule r)
{
	if (rule_count == RULES_MAX)
		errx(2, "more than %d rules", RULES_MAX);
	rules[rule_count++] = r;
}

static void add_landlock(const char *version)
{
	static const int its_calls[] = { SYS_landlock_create_ruleset, SYS_landlock_add_rule,
		SYS_landlock_restrict_self };

	for (size_t i = 0; i < COUNT(its_calls); i++) {
		bool is_off = strcmp(version, "0") == 0;

		add((struct rule){ .call = its_calls[i],
			.error = EOPNOTSUPP,
			.condition = is_off ? ALWAYS : IS_NEWER,
			.value = strtoull(version, NULL, 10),
			.is_asked = !is_off });
	}
}

static void add_rule(char *text)
{
	char *error = strchr(text, '='), *condition = strchr(text, ':');
	const struct name *call, *found;
	struct rule r = { .error = ENOSYS };

	if (error)
		*error++ = '\0';
	if (condition)
		*condition++ = '\0';
	if (condition && strcmp(text, "landlock") == 0) {
		add_landlock(condition);
		return;
	}
	call = find(calls, COUNT(calls), text);
	if (!call)
		errx(2, "the system call '%s' is not in the table", text);
	r.call = (int)call->value;
	if (error) {
		found = find(errors, COUNT(errors), error);
		if (!found)
			errx(2, "the error '%s' is not in the table", error);
		r.error = (int)found->value;
	}
	found = condition ? find(flags, COUNT(flags), condition) : NULL;
	if (found) {
		r.condition = HAS_FLAG;
		r.value = found->value;
		r.is_asked = r.call == SYS_clone3;
	} else if (condition && (r.call == SYS_fsopen || r.call == SYS_mount)) {
		r.condition = IS_TYPE;
		r.text = condition;
		r.is_asked = true;
	} else if (condition) {
		r.condition = IS_NUMBER;
		r.value = strtoull(condition, NULL, 0);
	}
	add(r);
}

/* --- the filter --- */

static struct sock_filter program[RULES_MAX * 6 + 8];
static unsigned short program_length;

static void emit(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	program[program_length++] = (struct sock_filter){ code, yes, no, k };
}

static void make_filter(void)
{
	uint32_t first = offsetof(struct seccomp_data, args);

	emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	for (size_t i = 0; i < rule_count; i++) {
		const struct rule *r = &rules[i];
		bool has_test = !r->is_asked && r->condition != ALWAYS;

		emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
		emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->call, 0, has_test ? 3 : 1);
		if (has_test) {
			emit(BPF_LD | BPF_W | BPF_ABS, first, 0, 0);
			emit(BPF_JMP | (r->condition == HAS_FLAG ? BPF_JSET : BPF_JEQ) | BPF_K,
				(uint32_t)r->value, 0, 1);
		}
		emit(BPF_RET | BPF_K,
			r->is_asked ? SECCOMP_RET_USER_NOTIF
				    : SECCOMP_RET_ERRNO | (uint32_t)r->error,
			0, 0);
	}
	emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static int install(bool is_asked)
{
	struct sock_fprog prog = { program_length, program };
	unsigned flag = is_asked ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, &prog);

	if (fd < 0 && errno == EACCES) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, &prog);
	}
	if (fd < 0)
		err(2, "cannot install the filter");
	return (int)fd;
}

/* --- answers --- */

static bool read_memory(pid_t pid, uint64_t address, void *ret, size_t size)
{
	char path[32];
	int fd;
	ssize_t n;

	memset(ret, 0, size);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		warn("cannot look into process %d", pid);
		return false;
	}
	n = pread(fd, ret, size, (off_t)address);
	close(fd);
	return n > 0;
}

/* 0: let it through; else what to answer: an errno, negative, or a version. */
static int answer_landlock(const struct seccomp_notif *n, uint64_t version)
{
	static const uint64_t file_rights[] = { 0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff };
	uint64_t rights = file_rights[version < 5 ? version : 5];
	size_t known = version < 4 ? 8 : version < 6 ? 16 : 24, size = (size_t)n->data.args[1];
	struct {
		uint64_t files, net, scoped, more[5];
	} attr = { 0 };

	if (n->data.nr == SYS_landlock_add_rule)
		return n->data.args[1] == LANDLOCK_RULE_PATH_BENEATH || version >= 4 ? 0 : -EINVAL;
	if (n->data.nr == SYS_landlock_restrict_self)
		return n->data.args[1] == 0 || version >= 7 ? 0 : -EINVAL;
	if (n->data.args[2] == LANDLOCK_CREATE_RULESET_VERSION)
		return n->data.args[0] || size ? -EINVAL : (int)version;
	if (n->data.args[2] != 0 || size < 8)
		return -EINVAL;
	if (!read_memory((pid_t)n->pid, n->data.args[0], &attr,
		    size < sizeof(attr) ? size : sizeof(attr)))
		return -EFAULT;
	/* What a kernel does not know must be zero: too big where it knows no such member at all.
	 */
	if ((attr.net && known < 16) || (attr.scoped && known < 24))
		return -E2BIG;
	return attr.files & ~rights ? -EINVAL : 0;
}

static bool is_refused(const struct rule *r, const struct seccomp_notif *n)
{
	struct clone_args args;
	char type[32];
	bool is_mount = r->call == SYS_mount;

	if (r->condition == HAS_FLAG)
		return read_memory((pid_t)n->pid, n->data.args[0], &args, CLONE_ARGS_SIZE_VER0) &&
		       (args.flags & r->value);
	return read_memory((pid_t)n->pid, n->data.args[is_mount ? 2 : 0], type, sizeof(type) - 1) &&
	       strcmp(type, r->text) == 0;
}

static int answer(const struct seccomp_notif *n)
{
	int result = 0;

	for (size_t i = 0; i < rule_count && result == 0; i++) {
		const struct rule *r = &rules[i];

		if (!r->is_asked || r->call != n->data.nr)
			continue;
		if (r->condition == IS_NEWER)
			result = answer_landlock(n, r->value);
		else if (is_refused(r, n))
			result = -r->error;
	}
	return result;
}

static void answer_one(int listener)
{
	union {
		struct seccomp_notif n;
		char room[512]; /* for kernels with more in it */
	} ask;
	union {
		struct seccomp_notif_resp r;
		char room[512];
	} say;
	int result;

	memset(&ask, 0, sizeof(ask));
	memset(&say, 0, sizeof(say));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) < 0)
		return; /* killed meanwhile */
	result = answer(&ask.n);
	say.r.id = ask.n.id;
	if (result == 0)
		say.r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		say.r.error = result;
	else
		say.r.val = result;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &say);
}

/* --- the program --- */

static void send_descriptor(int to, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(to, &m, 0) != 1)
		err(2, "cannot hand over the listener");
}

static int receive_descriptor(int from)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	int fd = -1;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		exit(2); /* the child has said why */
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

static _Noreturn void run(char **command)
{
	execvp(command[0], command);
	err(127, "%s", command[0]);
}

/* As the parent of the program, so that one may look into it where only parents may. */
static _Noreturn void supervise(char **command)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int pair[2], status = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		err(2, "socketpair");
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (pid == 0) {
		int listener;

		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		listener = install(true);
		send_descriptor(pair[1], listener);
		close(listener);
		close(pair[0]);
		close(pair[1]);
		run(command);
	}
	close(pair[1]);
	fds[0].fd = receive_descriptor(pair[0]);
	fds[1].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (!fds[1].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			err(2, "poll");
		if (fds[0].revents & POLLIN)
			answer_one(fds[0].fd);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	exit(WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	bool is_asked = false;
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		add_rule(argv[i]);
	if (i + 1 >= argc)
		errx(2, "usage: without RULE... -- PROGRAM [ARGUMENT...]");
	make_filter();
	for (size_t k = 0; k < rule_count; k++)
		is_asked |= rules[k].is_asked;
	if (is_asked)
		supervise(argv + i + 1);
	install(false);
	run(argv + i + 1);
}
