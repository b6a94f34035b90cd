#pragma once

/*
 * Hostile code, one attack per row of a table. An attack is a function that tries something a cage
 * must refuse and says in one line what came of it:
 *
 *     return worked("…");     0: the attack succeeded
 *     return refused("…");    1: it did not; append_errno() names the error
 *     return untried("…");    2: it cannot be tried here
 *
 * Nothing here may harm the machine it succeeds on: run.py starts each attack with the protection
 * taken out as well, and as root without any cage.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CANARY      "bawn-canary-"
#define SECONDS_MAX 20 /* for an attack */
#define TEXT_MAX    4096
#define ELEMENTS(x) (sizeof(x) / sizeof((x)[0]))

struct attack {
	const char *name;
	const char *args; /* as help shows them; words in [] may be left out */
	int (*run)(char **args);
	const char *help;
	bool is_at_once; /* not in a child: it wants the first moment of a run */
};

/* A table ends with a row without a name. */
extern const struct attack attacks_calls[];
extern const struct attack attacks_files[];
extern const struct attack attacks_host[];
extern const struct attack attacks_ipc[];
extern const struct attack attacks_memory[];
extern const struct attack attacks_mounts[];
extern const struct attack attacks_net[];
extern const struct attack attacks_proc[];
extern const struct attack attacks_resources[];
extern const struct attack attacks_rights[];
extern const struct attack attacks_tty[];

int worked(const char *format, ...) __attribute__((format(printf, 1, 2)));
int refused(const char *format, ...) __attribute__((format(printf, 1, 2)));
int untried(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* worked() if is_done, otherwise refused() with the name of errno. */
int outcome(bool is_done, const char *what);
const char *error_name(int error);

/* A canary is known by its end, so that the whole text is in nobody's arguments. */
bool has_canary(const void *bytes, size_t size, const char *end);
bool fd_has_canary(int fd, const char *end);
bool file_has_canary(int dir, const char *path, const char *end);

/* Reads what there is, as text; the length, or -1 with errno. */
ssize_t read_text(int dir, const char *path, char *text, size_t size);

/* Writes FOLDER/NAME into PATH_MAX bytes; what is too long becomes the empty path. */
void join(char *ret, const char *folder, const char *name);

/* Calls found(path, arg) for every /proc/PID but ours, until it says true. */
bool each_process(bool (*found)(const char *path, const char *arg), const char *arg);

/* Runs a command, waits for it and returns its exit status, 255 if it could not be started. */
int run_command(char **command);
