#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

/*
 * The schema: one row per key. The parser, defaults, layers, `bawn check`, the man page, the JSON
 * Schema and the canonical form all follow from it.
 */
enum spec_key {
	SPEC_VERSION,
	SPEC_ENVIRONMENT,
	SPEC_TRUSTED_PROJECTS,
	SPEC_SELF_GOVERNANCE,
	SPEC_KEEP_RUNS,
	SPEC_KEEP_AGE,
	SPEC_KEEP_SIZE,
	SPEC_NAME,
	SPEC_AGENT,
	SPEC_COMMAND,
	SPEC_STARTUP_COMMANDS,
	SPEC_STARTUP_PROMPTS,
	SPEC_WORKDIR,
	SPEC_FILES,
	SPEC_INITIAL_FILES,
	SPEC_STATE,
	SPEC_ENGINE,
	SPEC_ENGINE_ARGS,
	SPEC_RELAXED,
	SPEC_FAKEROOT,
	SPEC_TOOLS,
	SPEC_TOOLCHAINS,
	SPEC_ROOT_IMAGE,
	SPEC_ROOT_OVERLAY,
	SPEC_ROOT_OVERLAY_SIZE,
	SPEC_ROOT_OVERLAY_CREATE,
	SPEC_PROJECT_PATH,
	SPEC_PROJECT_AT,
	SPEC_PROJECT_MODE,
	SPEC_PROJECT_CAGE,
	SPEC_PROJECT_GIT,
	SPEC_PROJECT_READ,
	SPEC_PROJECT_WRITE,
	SPEC_PROJECT_PROTECT,
	SPEC_BINDS,
	SPEC_ENV_PASS,
	SPEC_ENV_SET,
	SPEC_NETWORK_MODE,
	SPEC_NETWORK_ALLOW,
	SPEC_NETWORK_HOST_PORTS,
	SPEC_NETWORK_PUBLISH,
	SPEC_SECRETS,
	SPEC_LIMITS_MEMORY,
	SPEC_LIMITS_CPU,
	SPEC_LIMITS_PIDS,
	SPEC_LIMITS_DISK,
	SPEC_LIMITS_TIME,
	SPEC_LIMITS_OUTPUT,
	SPEC_LIMITS_OUTPUT_THEN,
	SPEC_LIMITS_FILES,
	SPEC_SYSCALLS,
	SPEC_PREFLIGHT_ALLOW,
	SPEC_ALLOW_DEGRADED,
	SPEC_SESSION_TTL,
	SPEC_SESSION_BACKGROUND,
	SPEC_AUDIT_STRICT_BINDS,
	SPEC_AUDIT_DIGEST_PROJECT,
	SPEC_AUDIT_WATCH_PROTECTED,
	SPEC_RECORD_OUTPUT,
	SPEC_KEY_COUNT,
};

enum spec_type {
	SPEC_TYPE_VERSION,
	SPEC_TYPE_BOOL,
	SPEC_TYPE_CHOICE,
	SPEC_TYPE_INT,
	SPEC_TYPE_SIZE,
	SPEC_TYPE_DURATION,
	SPEC_TYPE_CPUS,
	SPEC_TYPE_TEXT,
	SPEC_TYPE_LIST,    /* in order */
	SPEC_TYPE_SET,     /* a list whose order means nothing */
	SPEC_TYPE_PORTS,   /* a set of port numbers */
	SPEC_TYPE_BINDS,   /* a set of texts or maps */
	SPEC_TYPE_VARS,    /* a map of name to text */
	SPEC_TYPE_SECRETS, /* a set of texts or maps */
};

/* How a project's own file may differ from the operator's layers. */
enum spec_tighten {
	SPEC_FREE,       /* any value: the key does not concern the wall */
	SPEC_ONLY_FALSE, /* false, or true if the operator says true */
	SPEC_ONLY_TRUE,
	SPEC_RANK,          /* the operator's choice, or one before it in the list of choices */
	SPEC_HARDENED,      /* the choice that the operator named; else one that keeps the level */
	SPEC_AT_MOST,       /* a number not larger than the operator's, if there is one */
	SPEC_SUBSET,        /* entries that the operator's entries cover */
	SPEC_ADD,           /* entries are added to the operator's, none is removed */
	SPEC_SAME,          /* the operator's value, or one inside the project */
	SPEC_OPERATOR_ONLY, /* no value: the key belongs in a policy */
};

struct spec_item;

/* How a text is written; spec_grammar.c has the rules. */
enum spec_grammar {
	SPEC_GRAMMAR_NONE,
	SPEC_GRAMMAR_ANY,       /* any text that is not empty */
	SPEC_GRAMMAR_WORD,      /* any text at all */
	SPEC_GRAMMAR_NAME,      /* letters, digits and . _ - ; starts with a letter or a digit */
	SPEC_GRAMMAR_SOURCE,    /* a path of the host */
	SPEC_GRAMMAR_PROJECT,   /* a directory of the host; relative to the current one */
	SPEC_GRAMMAR_TRUSTED,   /* a directory of the host by its whole path */
	SPEC_GRAMMAR_TOOLCHAIN, /* auto, or one of spec_toolchains */
	SPEC_GRAMMAR_TARGET,    /* an absolute path in the cage */
	SPEC_GRAMMAR_AT,        /* the same, or the word own */
	SPEC_GRAMMAR_INSIDE,    /* a path below the project, relative */
	SPEC_GRAMMAR_PATTERN,   /* a path, or a path and "/ **" without the space */
	SPEC_GRAMMAR_BIND,      /* SOURCE:TARGET[:ro|:rw] */
	SPEC_GRAMMAR_VARIABLE,  /* the name of an environment variable that may pass */
	SPEC_GRAMMAR_SETTING,   /* NAME=VALUE */
	SPEC_GRAMMAR_FILE,      /* PATH=TEXT */
	SPEC_GRAMMAR_KEPT,      /* a folder below /home/agent */
	SPEC_GRAMMAR_EGRESS,    /* HOST:PORT[/tls|/http|/tcp] */
	SPEC_GRAMMAR_ALLOW,     /* the same, or the name of a client */
	SPEC_GRAMMAR_PUBLISH,   /* [ADDRESS:]PORT:PORT */
	SPEC_GRAMMAR_SECRET,    /* name=… host=… header=… from=… */
	SPEC_GRAMMAR_PORT,      /* 1 to 65535 */
	SPEC_GRAMMAR_IMAGE,     /* host, dir:PATH, oci:PATH, sif:PATH or a name */
	SPEC_GRAMMAR_OVERLAY,   /* ephemeral or a path of the host */
	SPEC_GRAMMAR_SYSCALLS,  /* default, strict or the path of a profile */
	SPEC_GRAMMAR_GUARANTEE, /* the name of a guarantee, such as limits.memory */
};

struct spec_key_def {
	const char *path; /* "project.mode" */
	enum spec_type type;
	enum spec_tighten tighten;
	const char *def;            /* the default as an option would write it; NULL: none */
	const char *const *choices; /* CHOICE: tightest first, ended with NULL */
	unsigned hardened_choices;  /* CHOICE: how many from the front keep the level `hardened` */
	bool makes_custom;          /* true, or not empty, ends the level `hardened` */
	enum spec_grammar grammar;  /* of a TEXT, or of an entry of a list */
	const char *pattern;        /* the same for editors, as a regular expression; or NULL */
	bool is_later;              /* canonical forms of before it was there mean the default */
	const char *example;        /* YAML, as one flow value */
	const char *doc;            /* sentences */
};

extern const struct spec_key_def spec_keys[SPEC_KEY_COUNT];

/* Returns the key of a dotted path, or SPEC_KEY_COUNT. */
enum spec_key spec_key_find(const char *path);

/* Copies the section of a key, "project" for "project.mode". False for a key at the top. */
bool spec_key_section(enum spec_key key, char *ret, size_t size);

/* Returns the last part of the key's path: "mode" for "project.mode". */
const char *spec_key_leaf(enum spec_key key);

/* True for types whose value is a list of items. */
bool spec_is_list(enum spec_type type);

/* The values of keys of SPEC_TYPE_CHOICE, in the order of `choices` of the key's row. */
enum spec_engine {
	SPEC_ENGINE_AUTO,
	SPEC_ENGINE_NATIVE,
	SPEC_ENGINE_BWRAP,
	SPEC_ENGINE_CONTAINER,
	SPEC_ENGINE_MICROVM,
	SPEC_ENGINE_LANDLOCK,
	SPEC_ENGINE_LOGICAL,
};

enum spec_project_mode {
	SPEC_MODE_READ_ONLY,
	SPEC_MODE_CAPTURED,
	SPEC_MODE_WRITABLE,
};

enum spec_project_cage {
	SPEC_CAGE_FULL,
	SPEC_CAGE_PROJECT,
};

enum spec_project_git {
	SPEC_GIT_NONE,
	SPEC_GIT_AUTO,
};

enum spec_output_end {
	SPEC_OUTPUT_END,
	SPEC_OUTPUT_CUT,
};

enum spec_network_mode {
	SPEC_NET_NONE,
	SPEC_NET_ALLOWLIST,
	SPEC_NET_HOST,
};

enum spec_environment {
	SPEC_DEV,
	SPEC_PROD,
};
