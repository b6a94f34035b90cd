#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/hook/hook.h"

/*
 * A shell command as its words: quotes taken off, what is between commands and where files are
 * opened by it told apart. No shell: what only one that runs could know is marked as not known.
 */

enum hook_token {
	HOOK_END,
	HOOK_WORD,
	HOOK_BREAK, /* another command begins */
	HOOK_TO,    /* the next word is a file that is written */
	HOOK_FROM,  /* … or one that is read */
};

#define HOOK_MAX_NESTED   8 /* commands in one word, as "$(ls)" */
#define HOOK_MAX_HEREDOCS 8

struct hook_words {
	const char *at;
	const char *home; /* what $HOME stands for */
	char word[HOOK_PATH_SIZE];
	size_t size;
	bool is_known; /* nothing in it has to be filled in by a shell, and it fits */
	size_t wild;   /* where it begins to stand for several names; its size: nowhere */
	struct {
		const char *at;
		size_t size;
	} nested[HOOK_MAX_NESTED];
	size_t nested_count;
	struct {
		char end[64]; /* the line after which it is over */
		bool has_tabs;
	} heredocs[HOOK_MAX_HEREDOCS];
	size_t heredoc_count;
	char bracket; /* by which the last break was made, or NUL */
};
