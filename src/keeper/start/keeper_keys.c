/*
 * keeper_keys - the keys of secrets, from where the operator keeps them to the vault.
 *
 * Runs as:     the keeper.
 * Enters with: the plan, which says where each key is, and not what it is.
 * Leaves:      a file without a name for the vault, and nothing in memory.
 * Must not:    say a key, or any part of one, in a message; have one in memory when a cage is
 *              started, which begins as a copy of the keeper. So they are read twice: once to see
 *              that they can be, before anything runs, and again when the vault is started.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage.h"
#include "gate/gate.h"
#include "keeper/keeper_inside.h"

_Static_assert(WIRE_MAX_SECRETS >= PLAN_MAX_SECRETS, "all of a plan's have a place");

/* --- what the cage is shown --- */

/*
 * Which source of the plan is this, or holds it, by whatever name? With `is_writable` only of those
 * that the cage can write to. NULL: none. Names are not compared: a folder may have several.
 */
static const struct plan_op *find_shown(const struct keeper *k, const char *path, bool is_writable)
{
	const struct plan_op *ops = plan_ops(k->start.plan);
	char part[PATH_MAX];
	char *end = part + snprintf(part, sizeof(part), "%s", path);

	for (; end; end = strrchr(part, '/')) {
		struct stat st;

		*end = '\0';
		if (stat(part[0] ? part : "/", &st) < 0)
			continue;
		for (uint32_t i = 0; i < k->sources.count; i++)
			if (k->sources.items[i].path && k->sources.items[i].inode == st.st_ino &&
				k->sources.items[i].device == st.st_dev &&
				!(is_writable && ops[i].flags & PLAN_READ_ONLY))
				return &ops[i];
	}
	return NULL;
}

/* Also what is copied for the cage, instead of being shown. */
static bool is_in_project(const struct cage_start *start, const char *real)
{
	return (start->project && start->project[0] && str_path_within(real, start->project)) ||
	       (start->git && start->git[0] && plan_find(start->plan, PLAN_GIT, NULL) &&
		       str_path_within(real, start->git));
}

/*
 * A key is not to be read in the cage; and nothing on the way to it, or to the certificates that
 * say who gets it, is to be written there.
 */
static int keys_check_hidden(const struct keeper *k, int fd, const char *path, bool is_key,
	const char *name, struct err *e)
{
	const char *what = is_key ? "key" : "certificates", *be = is_key ? "is" : "are";
	const char *could = is_key ? "read it" : "change them";
	const struct plan_op *op = NULL;
	char real[PATH_MAX];

	if (file_path_of(fd, real) < 0)
		return err_sys(e, errno, "cannot inspect '%s'", path);
	if (is_in_project(&k->start, real) || is_in_project(&k->start, path))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EACCES,
				"cannot use the secret '%s': its %s %s in '%s', which is in the "
				"project, where the agent could %s",
				name, what, be, path, could),
			"keep %s elsewhere", is_key ? "it" : "them");
	op = find_shown(k, real, !is_key);
	if (!op)
		op = find_shown(k, path, true);
	if (op)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EACCES,
				"cannot use the secret '%s': its %s %s in '%s', which is shown in "
				"the cage at '%s', where the agent could %s",
				name, what, be, path, plan_str(k->start.plan, op->b), could),
			"keep %s elsewhere", is_key ? "it" : "them");
	return 0;
}

/* --- reading one --- */

/* A secret as the plan has it. */
struct secret {
	const struct plan *plan;
	const struct plan_rule *rule;
	const char *name;
	const char *source; /* the variable, or the path of a file, for people */
	char room[PLAN_TEXT_SIZE];
};

static int keys_read_variable(const struct secret *s, struct wire_key *ret, struct err *e)
{
	const char *value = getenv(s->source);
	size_t n = value ? strlen(value) : 0;

	if (n == 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot use the secret '%s': the variable %s is %s", s->name,
				s->source, value ? "empty" : "not set"),
			"set it before you start bawn");
	if (n <= sizeof(ret->bytes))
		memcpy(ret->bytes, value, n);
	ret->size = n <= sizeof(ret->bytes) ? (uint32_t)n : UINT32_MAX;
	return 0;
}

/* Whole, or one byte more than may be. A pipe could not be read a second time. */
static int keys_read_bytes(int fd, struct wire_key *ret)
{
	size_t n = 0;
	struct stat st;
	char more[2];
	ssize_t r = 1;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while (r > 0 && n < sizeof(ret->bytes)) {
		r = read(fd, ret->bytes + n, sizeof(ret->bytes) - n);
		n += r > 0 ? (size_t)r : 0;
	}
	if (r > 0)
		r = read(fd, more, sizeof(more));
	/* Behind the longest key there may be one newline, as behind any other. */
	if (r > 0 && (r > 1 || more[0] != '\n' || ret->bytes[n - 1] == '\n'))
		n = UINT32_MAX;
	ret->size = (uint32_t)n;
	return r < 0 ? -errno : 0;
}

static int keys_read_file(
	const struct keeper *k, const struct secret *s, struct wire_key *ret, struct err *e)
{
	const struct cage_start *start = &k->start;
	const char *source = plan_rule_text(s->plan, s->rule, PLAN_RULE_SOURCE);
	char path[PATH_MAX];
	own_fd int fd = -1;
	int r;

	if (!cage_fill_in(start, s->rule->source_root, source, path, sizeof(path)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG,
			"cannot use the secret '%s': its key is in '%s': %s", s->name, s->source,
			start->home ? "that path is too long" : "there is no home");
	fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (r = keys_check_hidden(k, fd, path, true, s->name, e)) < 0)
		return r;
	r = fd < 0 ? fd : keys_read_bytes(fd, ret);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r,
			"cannot read the key of the secret '%s' from '%s': %s", s->name, path,
			r == -EINVAL ? "that is no file" : strerror(-r));
	return 0;
}

/* One newline at the end is the editor's. What is left has to fit into a header. */
static int keys_check_key(const struct secret *s, struct wire_key *key, struct err *e)
{
	const char *kind = s->rule->is_file ? "the file" : "the variable";

	if (key->size == UINT32_MAX)
		return err_set(e, ERR_REFUSED, EFBIG,
			"cannot use the secret '%s': its key, in %s %s, is longer than %d bytes",
			s->name, kind, s->source, WIRE_MAX_KEY);
	if (key->size && key->bytes[key->size - 1] == '\n')
		key->size--;
	if (!key->size)
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot use the secret '%s': its key, in %s %s, is empty", s->name, kind,
			s->source);
	for (uint32_t i = 0; i < key->size; i++)
		if (key->bytes[i] <= 0x20 || key->bytes[i] >= 0x7f)
			return err_set(e, ERR_REFUSED, EINVAL,
				"cannot use the secret '%s': its key, in %s %s, has a space, a "
				"second line or a character that is not ASCII",
				s->name, kind, s->source);
	return 0;
}

/* The vault reads them; where they cannot be opened, it says so. */
static int name_certificates(
	const struct keeper *k, const struct secret *s, struct wire_key *ret, struct err *e)
{
	const char *path = plan_rule_text(s->plan, s->rule, PLAN_RULE_CA);
	char text[PLAN_TEXT_SIZE];
	own_fd int fd = -1;

	if (!*path && s->rule->ca_root == PLAN_ROOT_NONE)
		return 0;
	if (!cage_fill_in(&k->start, s->rule->ca_root, path, ret->ca, sizeof(ret->ca)))
		return err_set(e, ERR_REFUSED, ENAMETOOLONG,
			"cannot use the secret '%s': '%s', the file of its certificates, is no "
			"path here",
			s->name, plan_root_text(s->rule->ca_root, path, text));
	fd = file_open(ret->ca, O_PATH);
	return fd < 0 ? 0 : keys_check_hidden(k, fd, ret->ca, false, s->name, e);
}

static int read_key(
	const struct keeper *k, const struct plan_rule *rule, struct wire_key *ret, struct err *e)
{
	const struct plan *p = k->start.plan;
	struct secret s = { .plan = p, .rule = rule };
	int r;

	s.name = plan_rule_text(p, rule, PLAN_RULE_NAME);
	s.source = plan_root_text(
		rule->source_root, plan_rule_text(p, rule, PLAN_RULE_SOURCE), s.room);
	snprintf(ret->header, sizeof(ret->header), "%s", plan_rule_text(p, rule, PLAN_RULE_HEADER));
	snprintf(ret->scheme, sizeof(ret->scheme), "%s", plan_rule_text(p, rule, PLAN_RULE_SCHEME));
	r = rule->is_file ? keys_read_file(k, &s, ret, e) : keys_read_variable(&s, ret, e);
	if (r == 0)
		r = keys_check_key(&s, ret, e);
	return r == 0 ? name_certificates(k, &s, ret, e) : r;
}

/* --- all of them --- */

static int keys_read_keys(const struct keeper *k, struct wire_keys *ret, struct err *e)
{
	const struct plan *p = k->start.plan;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind != PLAN_SECRET)
			continue;
		if (ret->count == WIRE_MAX_SECRETS)
			return err_set(e, ERR_REFUSED, ENOSPC,
				"cannot use secrets: there are more than %d", WIRE_MAX_SECRETS);
		r = read_key(k, plan_rule_of(p, op), &ret->keys[ret->count++], e);
	}
	return r;
}

static int keys_hand_over(const struct wire_keys *keys)
{
	size_t size = offsetof(struct wire_keys, keys) + keys->count * sizeof(keys->keys[0]);
	own_fd int fd = memfd_create("keys", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : file_write_all(fd, keys, size);

	return r < 0 ? r : take_fd(&fd);
}

/* With `is_wanted` a descriptor, otherwise 0. */
static int read_and_forget(const struct keeper *k, bool is_wanted, struct err *e)
{
	struct wire_keys *keys = calloc(1, sizeof(*keys));
	int r;

	if (!keys)
		return err_set(e, ERR_SYS, ENOMEM, "cannot use secrets: out of memory");
	r = keys_read_keys(k, keys, e);
	if (r == 0 && is_wanted) {
		r = keys_hand_over(keys);
		if (r < 0)
			err_sys(e, -r, "cannot hand the keys of secrets over");
	}
	explicit_bzero(keys, sizeof(*keys));
	free(keys);
	return r;
}

int keeper_keys_check(const struct keeper *k, struct err *e)
{
	return read_and_forget(k, false, e);
}

int keeper_keys_open(const struct keeper *k, struct err *e)
{
	return read_and_forget(k, true, e);
}

/* --- the program --- */

/* From the folder of this program: in a build, and where they are installed, whatever the prefix.
 */
static const char *const places[] = { GATE_VAULT_PROGRAM, "../libexec/bawn/" GATE_VAULT_PROGRAM };

int keeper_vault_find(char *ret, size_t size, struct err *e)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return err_sys(e, errno, "cannot find bawn's own programs: /proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		int written = snprintf(ret, size, "%s/%s", self, places[i]);

		if (written > 0 && (size_t)written < size && access(ret, X_OK) == 0)
			return 0;
	}
	return err_hint(e,
		err_set(e, ERR_REFUSED, ENOENT,
			"cannot use secrets: the program " GATE_VAULT_PROGRAM
			" is neither in %s nor in %s/../libexec/bawn",
			self, self),
		"it is installed with bawn: make install");
}
