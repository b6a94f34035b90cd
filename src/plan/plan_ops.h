#pragma once

#include <stdint.h>

/* At the end of /etc/gitconfig: there the cage has name and e-mail of the operator, if any. */
#define PLAN_IDENTITY "$GIT_IDENTITY\n"

/*
 * The operations that make a cage, in the order in which an engine carries them out. There are no
 * others.
 */
enum plan_op_kind {
	PLAN_ENGINE_ARGUMENT, /* a: for the engine, as it is */
	PLAN_NAMESPACE,       /* a: its name */
	PLAN_IDS, /* a: whose id outside (team: with the project's group); n: uid and gid inside */
	PLAN_SHARE,    /* a: what the kernel counts for the operator too; n: the cage's part */
	PLAN_HOSTNAME, /* a */
	PLAN_IMAGE, /* a: a folder, read-only; b: where; n: bytes of the throw-away layer above */
	PLAN_IMAGE_OCI,   /* the same for an archive; no engine of this version can use it … */
	PLAN_IMAGE_SIF,   /* … nor this, … */
	PLAN_IMAGE_NAMED, /* … nor one that is known by a name alone */
	PLAN_OVERLAY,     /* a: a kept layer for writes; b: above what; n: bytes, or 0: as it has */
	PLAN_TMPFS,       /* b: where; n: bytes, or 0; mode; with a flag read-only for the cage */
	PLAN_DIR,         /* b: where; mode */
	PLAN_BIND,        /* a: from; b: where; flags */
	PLAN_SYMLINK,     /* a: its content; b: where */
	PLAN_FILE,        /* a: its content; b: where; mode; with a flag only if it is missing */
	PLAN_DESCRIBE,    /* a: JSON, whose paths may begin with $PROJECT or $GIT; b: where; mode */
	PLAN_PROC,        /* b: where; all but processes is covered, or with a flag not there */
	PLAN_PROC_FILE,   /* b: a file of /proc that is not covered */
	PLAN_DEVICE,      /* b: a device of the host */
	PLAN_DEVPTS,      /* b: where */
	PLAN_GIT,     /* a: from; b: where; flags: the folder of the project's git, outside of it */
	PLAN_PROJECT, /* a: from; b: where; flags */
	PLAN_PART,    /* b: a path of the project with rights of its own; flags */
	PLAN_PROTECT, /* a: the project, or its git; b: a path of that, which stays as it is */
	PLAN_ENTER,   /* the tree becomes the root, and the host's root is unmounted */
	PLAN_AWAIT,   /* a: the operations that follow need a session, and wait for it */
	PLAN_ENV,     /* a: name; b: value */
	PLAN_ENV_PASS,  /* a: name of the operator's variable */
	PLAN_NETWORK,   /* a: mode */
	PLAN_ALLOW,     /* rule: a destination; b: the client whose registry it is, or "" */
	PLAN_HOST_PORT, /* n: port of the host's loopback */
	PLAN_PUBLISH,   /* rule: address and ports */
	PLAN_SECRET,    /* rule: name, host, header and source of a key; never the key */
	PLAN_LIMIT,     /* a: which; b: by what; n */
	PLAN_DROP,      /* a: what the processes lose */
	PLAN_LANDLOCK,  /* n: ABI; flags: shared, if commands of a session reach each other */
	PLAN_RULE,      /* b: a path Landlock opens; flags */
	PLAN_CONFINE,   /* from here on Landlock holds */
	PLAN_SYSCALLS,  /* a: profile */
	PLAN_TELL,      /* a: which system calls the filter notifies the keeper of */
	PLAN_PREFLIGHT, /* a: digest of its text */
	PLAN_STARTUP,   /* a: a shell command */
	PLAN_WORKDIR,   /* b: where the command starts */
	PLAN_ARGUMENT,  /* a: one word of the command */
	PLAN_OP_KIND_COUNT,
};

#define PLAN_MAX_SECRETS 32
#define PLAN_SECRET_PORT 80 /* of bawn-host */

#define PLAN_TELL_DENIED "denied system calls"
#define PLAN_TELL_WRITES "writes to what is protected"

enum plan_op_flags {
	PLAN_READ_ONLY = 1,
	PLAN_NO_EXEC = 2,
	PLAN_NO_DEV = 4, /* devices inside are inert; set-user-id never works anywhere */
	PLAN_SUBSET = 8, /* /proc with process directories only */
	PLAN_CAPTURED = 16,
	PLAN_COPIED = 32, /* captured by copying, where overlay is impossible */
	PLAN_IDMAPPED = 64,
	PLAN_CREATE = 128,   /* made where it is missing */
	PLAN_LIST = 256,     /* a rule: names can be listed, nothing more */
	PLAN_OWN = 1024,     /* a variable of bawn's own */
	PLAN_PARTS = 512,    /* a project: nothing of it is seen but its parts */
	PLAN_VIEW = 2048,    /* a folder shown through a read-only overlay: its sockets cannot be
				used, and its path on the host is hidden */
	PLAN_ENDS = 4096,    /* a limit that ends the run when it is reached */
	PLAN_IN_POOL = 8192, /* captured: in the cage's own file system, and saved at its end */
	PLAN_PROTECTS =
		16384, /* writable: shown through a layer that keeps protected paths as they are */
	PLAN_SHARED = 32768, /* captured: in a session's workspace, for all of its runs */
};

/* The type of an operand. */
enum plan_operand {
	PLAN_OPERAND_NONE,   /* not used */
	PLAN_OPERAND_TEXT,   /* any text */
	PLAN_OPERAND_NOTE,   /* any text; "" is not printed */
	PLAN_OPERAND_WORD,   /* a text that is not empty */
	PLAN_OPERAND_SOURCE, /* a path of the host, at any root */
	PLAN_OPERAND_TARGET, /* a path of the cage: absolute, normalised */
	PLAN_OPERAND_PLACE,  /* a target, or the host's own path of the project or its git */
	PLAN_OPERAND_TREE,   /* the project or its git: a root alone */
	PLAN_OPERAND_INSIDE, /* a path below the project or its git: relative, normalised */
	PLAN_OPERAND_RULE,   /* a rule of the network, whose number is n: struct plan_rule */
};

struct plan_op_def {
	const char *name;
	enum plan_operand a, b;
	const char *prefix; /* of the text of `a`, or NULL */
};

extern const struct plan_op_def plan_op_defs[PLAN_OP_KIND_COUNT];
