#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What programs do with the words of their commands. */

enum hook_habit {
	HOOK_READS,       /* those that look like paths */
	HOOK_SAYS,        /* nothing: it prints them, or they are of another place */
	HOOK_SEARCHES,    /* reads, but for the first, which is a pattern or a program */
	HOOK_WRITES,      /* all of them */
	HOOK_MARKS,       /* writes all but the first, which says how */
	HOOK_WRITES_LAST, /* and reads the others */
	HOOK_LINKS,       /* writes the last */
	HOOK_COPIES_RAW,  /* dd: if= and of= */
	HOOK_GOES,        /* cd */
	HOOK_RUNS,        /* a shell: what is behind -c is another script */
	HOOK_EVALUATES,   /* its words are a script */
	HOOK_STARTS,      /* another program, which follows */
	HOOK_TESTS,       /* looks at what follows an option; other words are compared */
	HOOK_FINDS,       /* reads those before the first option; then come expressions */
};

struct hook_program {
	const char *name;
	enum hook_habit habit;
	/* Options of one letter: those with a value as the next word that is not written; of one
	 * that searches those whose value is the pattern, those with a value in the same word only.
	 */
	const char *values, *patterns, *attached;
};

struct hook_option {
	size_t values;   /* how many of the next words are its own */
	bool is_pattern; /* it says what is searched for */
	bool writes;     /* sed and perl: the files are changed in place */
};
