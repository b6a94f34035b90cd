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
	ERR_SIGNAL,    /* signal `num` ended the process */
	ERR_KIND_COUNT,
};

/*
 * One failure. The struct has a fixed size and no pointers, so that a child can write it down a
 * pipe. `text` is a sentence without a full stop, "cannot VERB 'OBJECT': REASON"; `hint` says what
 * to do about it, or is ""; `num` is an errno or 0.
 */
#define ERR_TEXT_SIZE 496
#define ERR_HINT_SIZE 160

struct err {
	enum err_kind kind;
	int num;
	char text[ERR_TEXT_SIZE];
	char hint[ERR_HINT_SIZE];
};

/* Fills `e`, which may be NULL. Returns -num, or -EINVAL if num is 0. */
int err_set(struct err *e, enum err_kind kind, int num, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Fills `e` for a failed system call: kind ERR_SYS, the sentence, ": " and the text of the errno.
 * Returns -num. */
int err_sys(struct err *e, int num, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Sets the hint of an error that err_set() has filled; "" is no hint. Returns r. */
int err_hint(struct err *e, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Appends "; HINT" to the sentence, for readers that are shown only the sentence. */
void err_join_hint(struct err *e);

/* Terminates both texts with a NUL. Must be called for an error that came from another process. */
void err_end_texts(struct err *e);

/* Puts "CONTEXT: " in front of the sentence. */
void err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the exit status for a kind of error. */
int err_exit_status(enum err_kind kind);

/* Returns the kind as one word for JSON, such as "refused". */
const char *err_kind_word(enum err_kind kind);
