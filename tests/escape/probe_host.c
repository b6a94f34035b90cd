/*
 * The other side: what the operator has lying about while a command runs. Each of these makes the
 * thing, runs the command and takes the thing away; the status is the command's unless it says
 * otherwise.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void make_canary(char *ret, size_t size, const char *end)
{
	snprintf(ret, size, "%s%s", CANARY, end);
}

/* The session keyring is a new one and ends with us. */
static int with_key(char **args)
{
	char name[64], text[128];

	snprintf(name, sizeof(name), "bawn-escape-%s", args[0]);
	make_canary(text, sizeof(text), args[0]);
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ||
		syscall(SYS_add_key, "user", name, text, strlen(text), KEY_SPEC_SESSION_KEYRING) <
			0)
		return untried("add_key: %s", error_name(errno));
	return run_command(args + 1);
}

/* Open to everybody: only the namespace keeps others out. */
static int with_ipc(char **args)
{
	key_t key = (key_t)strtol(args[0], NULL, 16);
	char name[64], text[128];
	struct {
		long type;
		char text[128];
	} message = { 1, "" };

	make_canary(text, sizeof(text), args[0]);
	make_canary(message.text, sizeof(message.text), args[0]);
	snprintf(name, sizeof(name), "/bawn-escape-%s", args[0]);
	umask(0);
	int shm = shmget(key, TEXT_MAX, IPC_CREAT | IPC_EXCL | 0666);
	int sem = semget(key, 1, IPC_CREAT | IPC_EXCL | 0666);
	int msg = msgget(key, IPC_CREAT | IPC_EXCL | 0666);
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0666, NULL);
	void *memory = shm < 0 ? (void *)-1 : shmat(shm, NULL, 0);
	int status = 255;

	if (memory == (void *)-1 || sem < 0 || msg < 0 || queue < 0)
		untried("make objects: %s", error_name(errno));
	else {
		memcpy(memory, text, sizeof(text));
		msgsnd(msg, &message, sizeof(message.text), IPC_NOWAIT);
		mq_send(queue, text, strlen(text), 0);
		status = run_command(args + 1);
	}
	shmctl(shm, IPC_RMID, NULL);
	semctl(sem, 0, IPC_RMID);
	msgctl(msg, IPC_RMID, NULL);
	mq_unlink(name);
	return status;
}

/* --- a terminal --- */

/* With a session of its own, or as a terminal whose session has ended. */
static void take_terminal(const char *slave, bool is_controlling)
{
	setsid();
	int fd = open(slave, O_RDWR | O_NOCTTY);

	if (is_controlling)
		ioctl(fd, TIOCSCTTY, 1);
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

/* Shows what the terminal shows until its child is gone. */
static int show_until_end(int master, pid_t pid)
{
	char text[TEXT_MAX];
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct pollfd wait = { master, POLLIN, 0 };

		if (poll(&wait, 1, 20) == 1 && wait.revents & POLLIN) {
			ssize_t size = read(master, text, sizeof(text));

			fwrite(text, 1, size > 0 ? (size_t)size : 0, stdout);
		}
	}
	for (ssize_t size; (size = read(master, text, sizeof(text))) > 0;)
		fwrite(text, 1, (size_t)size, stdout);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* What was typed waits to be read by the shell that started the command: that is us. */
static bool is_typed(int slave, const char *text)
{
	char got[TEXT_MAX] = "";
	ssize_t size = read(slave, got, sizeof(got) - 1);

	return size > 0 && strstr(got, text);
}

/* 0: TEXT was typed into the terminal; 1: it was not. With - the status is the command's. */
static int run_on_terminal(char **args, bool is_controlling)
{
	char name[64];
	int master, slave;

	if (openpty(&master, &slave, name, NULL, NULL))
		return untried("openpty: %s", error_name(errno));
	struct termios mode;

	tcgetattr(slave, &mode);
	cfmakeraw(&mode);
	mode.c_oflag |= OPOST;
	tcsetattr(slave, TCSANOW, &mode);
	fcntl(master, F_SETFL, O_NONBLOCK);
	fcntl(slave, F_SETFL, O_NONBLOCK);
	pid_t pid = fork();

	if (pid == 0) {
		close(master);
		close(slave);
		take_terminal(name, is_controlling);
		execvp(args[1], args + 1);
		_exit(255);
	}
	int status = show_until_end(master, pid);

	if (strcmp(args[0], "-") == 0)
		return status;
	if (is_typed(slave, args[0]))
		return worked("'%s' waits in the operator's terminal", args[0]);
	return refused("nothing was typed into the terminal; status %d", status);
}

static int on_terminal(char **args)
{
	return run_on_terminal(args, true);
}

static int on_free_terminal(char **args)
{
	return run_on_terminal(args, false);
}

/* --- swapping --- */

/* Exchanges two names as fast as it can, until it is killed. */
static int swap_names(char **args)
{
	for (;;)
		if (syscall(SYS_renameat2, AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_EXCHANGE))
			return untried("renameat2: %s", error_name(errno));
}

/* --- a process group --- */

static volatile sig_atomic_t is_signalled;

static void note_signal(int number)
{
	(void)number;
	is_signalled = 1;
}

/* 0: a signal from the command reached us, its neighbour in one group. */
static int in_group(char **args)
{
	if (setpgid(0, 0))
		return untried("setpgid: %s", error_name(errno));
	signal(SIGUSR1, note_signal);
	int status = run_command(args);

	return is_signalled ? worked("the operator's process was signalled")
			    : refused("no signal came out; status %d", status);
}

/* The operator stands in a folder that is gone. */
static int in_removed(char **args)
{
	if (chdir(args[0]))
		return untried("%s: %s", args[0], error_name(errno));
	if (rmdir(args[0]))
		return untried("rmdir %s: %s", args[0], error_name(errno));
	return run_command(args + 1);
}

const struct attack attacks_host[] = {
	{ "with-key", "END COMMAND …", with_key, "a key in the session keyring" },
	{ "with-ipc", "END COMMAND …", with_ipc, "System V and POSIX objects" },
	{ "on-terminal", "TEXT|- COMMAND …", on_terminal, "a terminal; was TEXT typed into it?" },
	{ "on-free", "TEXT COMMAND …", on_free_terminal, "the same, of a session that has ended" },
	{ "swap", "NAME NAME", swap_names, "exchanges two names until it is killed" },
	{ "in-group", "COMMAND …", in_group, "a process group; did a signal come out?" },
	{ "in-removed", "DIR COMMAND …", in_removed, "a current directory that is gone" },
	{ 0 },
};
