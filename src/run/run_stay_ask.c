/*
 * run_stay_ask - asks the stay-keeper of a session to do a command.
 *
 * Runs as:  the operator, in the process that was asked to run something.
 * Must not: have a command done twice. It is begun only when both sides have said so: who asks may
 *           still do it itself until it has said "go".
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "run/run_stay.h"
#include "session/folder/session.h"
#include "wire/wire.h"

extern char **environ;

unsigned run_stay_seconds(void)
{
	const char *text = getenv("BAWN_STAY_SECONDS");
	struct err e;
	int64_t n;

	return text && num_parse_int(text, 0, 3600, &n, &e) == 0 ? (unsigned)n : RUN_STAY_S;
}

/* --- what a process is --- */

static void identify_file(struct sha256 *s, const char *path)
{
	char bytes[8192] __attribute__((uninitialized));
	own_fd int fd = file_open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	sha256_add(s, path, strlen(path) + 1);
	if (n > 0)
		sha256_add(s, bytes, (size_t)n);
}

/* Lines of /proc/self/status that a child inherits. */
static void identify_status(struct sha256 *s)
{
	static const char *const names[] = { "Uid:", "Gid:", "Groups:", "SigIgn:", "CapInh:",
		"CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:",
		"Seccomp_filters:", "Cpus_allowed:", "Mems_allowed:" };
	char text[8192] __attribute__((uninitialized));
	own_fd int fd = file_open("/proc/self/status", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *rest = text;

	text[n < 0 ? 0 : n] = '\0';
	for (char *line; (line = strsep(&rest, "\n"));)
		for (size_t i = 0; i < COUNT_OF(names); i++)
			if (str_starts(line, names[i]))
				sha256_add(s, line, strlen(line) + 1);
}

static void identify_namespaces(struct sha256 *s)
{
	static const char *const names[] = { "cgroup", "ipc", "mnt", "net", "pid_for_children",
		"time_for_children", "user", "uts" };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char path[64], where[64] = { 0 };

		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		if (readlink(path, where, sizeof(where)) > 0)
			sha256_add(s, where, sizeof(where));
	}
}

static void identify_place(struct sha256 *s, const char *path)
{
	struct stat st = { 0 };

	if (stat(path, &st) == 0) {
		sha256_add(s, &st.st_dev, sizeof(st.st_dev));
		sha256_add(s, &st.st_ino, sizeof(st.st_ino));
		sha256_add(s, &st.st_mtim, sizeof(st.st_mtim));
	}
}

/* Variables by which bawn itself finds its files. */
static void identify_variables(struct sha256 *s)
{
	for (char **at = environ; *at; at++)
		if (str_starts(*at, "BAWN_") || str_starts(*at, "XDG_") || str_starts(*at, "HOME="))
			sha256_add(s, *at, strlen(*at) + 1);
}

void run_stay_identify(char ret[static SHA256_HEX_SIZE])
{
	const int numbers[] = { getpriority(PRIO_PROCESS, 0), personality(0xffffffff),
		(int)syscall(SYS_ioprio_get, 1, 0), (int)syscall(SYS_sched_getscheduler, 0) };
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, BAWN_VERSION, sizeof(BAWN_VERSION));
	sha256_add(&s, numbers, sizeof(numbers));
	identify_place(&s, "/proc/self/exe");
	identify_status(&s);
	identify_namespaces(&s);
	identify_file(&s, "/proc/self/limits");
	identify_file(&s, "/proc/self/cgroup");
	identify_file(&s, "/proc/self/oom_score_adj");
	identify_file(&s, "/proc/self/attr/current");
	identify_variables(&s);
	sha256_finish(&s, digest);
	sha256_print(digest, ret);
}

/* --- its folder --- */

int run_stay_open_folder(int root, const char *session)
{
	return file_open_name(root, session, O_RDONLY | O_DIRECTORY);
}

/* Locked, or -errno. */
int run_stay_open_lock(int folder, const char *name, bool makes)
{
	int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (makes ? O_CREAT : 0);
	int fd = openat(folder, name, flags, 0600), failure;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	failure = -errno;
	close(fd);
	return failure;
}

pid_t run_stay_find(int root, const char *session)
{
	own_fd int folder = run_stay_open_folder(root, session);
	own_fd int file = folder < 0 ? -1 : file_open_name(folder, "stay", O_RDONLY);
	char text[32] = { 0 };
	struct err e;
	int64_t pid;

	/* Who has it locked wrote it. */
	if (file < 0 || flock(file, LOCK_SH | LOCK_NB) == 0 ||
		read(file, text, sizeof(text) - 1) <= 0 ||
		num_parse_int(text, 1, INT32_MAX, &pid, &e) < 0)
		return 0;
	return (pid_t)pid;
}

/* --- asking --- */

bool run_stay_is_possible(const struct run_request *q)
{
	bool is_possible = !run_request_find_local(q) && run_stay_seconds() > 0;

	for (int fd = 0; fd < 3; fd++)
		is_possible = is_possible && fcntl(fd, F_GETFD) >= 0 && !isatty(fd);
	return is_possible;
}

static int ask_connect(int folder)
{
	own_fd int fd = wire_socket(AF_UNIX, SOCK_SEQPACKET, 0);
	const struct timeval patience = { .tv_usec = RUN_STAY_ANSWER_MS * 1000 - 1 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred who;
	socklen_t n = sizeof(who);

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/stay-door", folder);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.uid != geteuid() ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -ENOENT;
	return take_fd(&fd);
}

/* The request and the variables, in memory. */
static int ask_print(const struct run_request *q, struct run_stay_asked *ret)
{
	own(buf) struct buf text = { .max = RUN_REQUEST_SIZE + RUN_STAY_VARIABLES };
	own_fd int fd = memfd_create("request", MFD_CLOEXEC);
	struct err e;

	if (fd < 0 || run_request_print(q, &text, &e) < 0)
		return -ENOENT;
	buf_putc(&text, '\0');
	ret->request_size = (uint32_t)text.len;
	for (char **at = environ; *at; at++)
		buf_add(&text, *at, strlen(*at) + 1);
	ret->variables_size = (uint32_t)text.len - ret->request_size;
	if (text.failed || file_write_all(fd, buf_text(&text), text.len) < 0 ||
		lseek(fd, 0, SEEK_SET) < 0)
		return -ENOENT;
	return take_fd(&fd);
}

static int ask_send(int door, const struct run_request *q, struct run_stay_asked *asked)
{
	own_fd int text = ask_print(q, asked);
	own_fd int folder = file_open(".", O_PATH | O_DIRECTORY);
	int r = text < 0 || folder < 0 ? -ENOENT
				       : wire_send_message(door, asked, sizeof(*asked), text);

	for (int i = 0; r == 0 && i < RUN_STAY_STREAMS; i++)
		r = wire_send_fd(door, WIRE_STDIO, i < 3 ? i : folder);
	return r;
}

/* --- signals --- */

/* All but those that were ignored when this process began, by nohup for example. */
static int ask_open_signals(sigset_t *ret_before)
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP,
		SIGCONT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT_OF(passed); i++) {
		struct sigaction old;

		if (sigaction(passed[i], NULL, &old) < 0 || old.sa_handler != SIG_IGN)
			sigaddset(&set, passed[i]);
	}
	sigprocmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void ask_pass_signal(int door, int signals)
{
	struct signalfd_siginfo got;

	if (read(signals, &got, sizeof(got)) == (ssize_t)sizeof(got))
		(void)wire_send(door, WIRE_SIGNAL, (int)got.ssi_signo, NULL);
}

/* Until the command has ended. */
static int ask_wait(int door, int signals, int *ret_status)
{
	for (;;) {
		struct pollfd fds[2] = { { door, POLLIN, 0 }, { signals, POLLIN, 0 } };
		struct wire_message m = { 0 };

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			ask_pass_signal(door, signals);
		if (!fds[0].revents)
			continue;
		if (wire_receive(door, &m, NULL) < 0)
			return -EPIPE;
		*ret_status = m.n;
		if (m.kind == WIRE_EXITED)
			return 0;
		/* As a job of the operator's shell. Where no shell is there to continue us, the
		 * kernel goes on at once. */
		if (m.kind == WIRE_STOPPED) {
			sigset_t only;

			sigemptyset(&only);
			sigaddset(&only, SIGTSTP);
			kill(getpid(), SIGTSTP);
			sigprocmask(SIG_UNBLOCK, &only, NULL);
			sigprocmask(SIG_BLOCK, &only, NULL);
			(void)wire_send(door, WIRE_SIGNAL, SIGCONT, NULL);
		}
	}
}

static int ask_begin(int door, const struct run_request *q, struct run_stay_asked *asked)
{
	struct wire_message m = { 0 };
	int r = ask_send(door, q, asked);

	if (r == 0)
		r = wire_receive(door, &m, NULL);
	if (r == 0 && m.kind == WIRE_READY)
		r = wire_send(door, WIRE_GO, 0, NULL);
	else
		r = -ENOENT;
	return r < 0 ? -ENOENT : 0;
}

int run_stay_ask(
	int root, const char *session, const struct run_request *q, bool is_quiet, int *ret_status)
{
	struct run_stay_asked asked = { .is_quiet = is_quiet };
	own_fd int folder = run_stay_open_folder(root, session);
	own_fd int turn = folder < 0 ? -1 : run_stay_open_lock(folder, "stay-turn", false);
	own_fd int door = turn < 0 ? -1 : ask_connect(folder);
	own_fd int signals = -1;
	sigset_t before;
	int r;

	if (door < 0)
		return -ENOENT;
	run_stay_identify(asked.identity);
	signals = ask_open_signals(&before);
	r = signals < 0 ? -ENOENT : ask_begin(door, q, &asked);
	if (r == 0)
		r = ask_wait(door, signals, ret_status);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
