#pragma once

#include <stdbool.h>

/* Whose fault an error is. One table in err.c maps each kind to its exit status. */
enum err_kind {
	ERR_NONE,
	ERR_USE,       /* the command line is wrong */
	ERR_SPEC,      /* the spec or a policy is wrong */
	ERR_REFUSED,   /* what was asked cannot be guaranteed here, or is forbidden */
	ERR_SYS,       /* the system said no */
	ERR_NOT_FOUND, /* the command does not exist */
	ERR_NOT_EXEC,  /* the command exists and cannot be executed */
	ERR_SIGNAL,    /* somebody ended it: `num` is the signal */
	ERR_KIND_COUNT,
};

/*
 * One failure, told once: fixed size and free of pointers, so that a child can write it whole
 * down a pipe. `text` is a sentence without a full stop, "cannot VERB 'OBJECT': REASON"; `hint` is
 * what to do about it, or ""; `num` is an errno or 0.
 */
#define ERR_TEXT_SIZE 496
#define ERR_HINT_SIZE 160

struct err {
	enum err_kind kind;
	int num;
	char text[ERR_TEXT_SIZE];
	char hint[ERR_HINT_SIZE];
};

/* Fills `e` (which may be NULL) and returns -num, or -EINVAL where num is 0. */
int err_set(struct err *e, enum err_kind kind, int num, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same for a failed system call: the kind is ERR_SYS, and ": " and the errno's text are added.
 */
int err_sys(struct err *e, int num, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Adds the hint, "" for none, to the error that err_set() filled; returns r, which is its result.
 */
int err_hint(struct err *e, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Appends "; HINT" to the sentence, for readers that get the sentence alone. */
void err_join_hint(struct err *e);

/* Ends the texts of an error that came from another process. */
void err_end_texts(struct err *e);

/* Puts "context: " before the sentence already there. */
void err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the exit status that a kind stands for. */
int err_exit_status(enum err_kind kind);

/* One word, as in JSON: "refused". */
const char *err_kind_word(enum err_kind kind);
