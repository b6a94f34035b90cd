/*
 * session_folder - the folders of sessions: their root, their names, their workspaces.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   a folder or a workspace that is whole, or none; nothing of one that is removed.
 * Must not: follow a link, or enter a mount, below the root; use a root that somebody else could
 *           have prepared; remove or move a workspace while somebody has it locked.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"

/* True if we own an open folder and nobody else may write to it. */
static bool session_is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static int open_root(int state, const char *path)
{
	return path ? file_open(path, O_RDONLY | O_DIRECTORY)
		    : file_open_name(state, SESSION_ROOT, O_RDONLY | O_DIRECTORY);
}

int session_open_root(int state, bool makes, struct err *e)
{
	const char *path = getenv("BAWN_SANDBOX_ROOT");
	own_fd int root = -1;

	if (path && !path[0])
		path = NULL;
	if (path && path[0] != '/')
		return err_set(e, ERR_USE, EINVAL,
			"cannot use BAWN_SANDBOX_ROOT: '%.200s' is not an absolute path", path);
	root = path || state >= 0 ? open_root(state, path) : -ENOENT;
	if (root == -ENOENT && !makes)
		return -ENOENT;
	/*
	 * Only the last of its names is made: a tree that is not mounted would be made otherwise.
	 */
	if (root == -ENOENT) {
		if (mkdirat(state, path ? path : SESSION_ROOT, 0700) < 0 && errno != EEXIST)
			root = -errno;
		else
			root = open_root(state, path);
	}
	if (root < 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, -root, "cannot open the sessions' root '%s': %s",
				path ? path : SESSION_ROOT, strerror(-root)),
			"set BAWN_SANDBOX_ROOT to another place");
	if (!session_is_ours(root))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot keep sessions in '%s': it is not yours, or others can "
				"write to it",
				path ? path : SESSION_ROOT),
			"set BAWN_SANDBOX_ROOT to another place");
	return take_fd(&root);
}

/* --- its id --- */

static int root_fail(int num, struct err *e)
{
	return err_sys(e, num, "cannot read the id of the sessions' root");
}

/* 0, -ENOENT, or another -errno. */
static int read_id(int root, char ret[static STORE_ID_SIZE])
{
	own_fd int fd = file_open_name(root, "id", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char text[STORE_ID_SIZE + 1];
	ssize_t n = fd < 0 ? fd : file_read_text(fd, text, sizeof(text));

	if (n < 0)
		return (int)n;
	text[strcspn(text, "\n")] = '\0';
	if (!session_is_id(text, true))
		return -EBADMSG;
	memcpy(ret, text, STORE_ID_SIZE);
	return 0;
}

/* Complete under a name of its own first, and then under the real one, unless that is taken. */
static int write_id(int root, struct err *e)
{
	char id[STORE_ID_SIZE], draft[STORE_ID_SIZE + 8], line[STORE_ID_SIZE + 1];
	own_fd int fd = -1;
	int r = session_make_id(id, e);

	if (r < 0)
		return r;
	snprintf(draft, sizeof(draft), "id.%s", id);
	fd = openat(root, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return root_fail(errno, e);
	snprintf(line, sizeof(line), "%s\n", id);
	r = file_write_all(fd, line, strlen(line));
	if (r == 0 && linkat(root, draft, root, "id", 0) < 0 && errno != EEXIST)
		r = -errno;
	unlinkat(root, draft, 0);
	return r < 0 ? root_fail(-r, e) : 0;
}

int session_root_id(int root, char ret[static STORE_ID_SIZE], struct err *e)
{
	int r = read_id(root, ret);

	if (r == -ENOENT) {
		r = write_id(root, e);
		if (r < 0)
			return r;
		r = read_id(root, ret);
	}
	return r < 0 ? root_fail(-r, e) : 0;
}

/* --- names --- */

#define SHORT_ID 8 /* digits of an id that people are used to abbreviate it to */

int session_make_id(char ret[static STORE_ID_SIZE], struct err *e)
{
	unsigned char chance[(STORE_ID_SIZE - 1) / 2];

	if (getrandom(chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return err_sys(e, errno, "cannot name the session: no random numbers");
	for (size_t i = 0; i < sizeof(chance); i++)
		snprintf(ret + 2 * i, 3, "%02x", chance[i]);
	return 0;
}

bool session_is_id(const char *text, bool is_whole)
{
	size_t n = strnlen(text, STORE_ID_SIZE);

	if (n == 0 || n == STORE_ID_SIZE || (is_whole && n < STORE_ID_SIZE - 1))
		return false;
	for (size_t i = 0; i < n; i++)
		if (str_hex_digit(text[i]) < 0)
			return false;
	return true;
}

const char *session_check_name(const char *text)
{
	size_t n = strnlen(text, STORE_NAME_SIZE);

	if (n == 0)
		return "it is empty";
	if (n == STORE_NAME_SIZE)
		return "it is longer than 64 bytes";
	for (size_t i = 0; i < n; i++)
		if (!str_is_letter(text[i]) && !str_is_digit(text[i]) && !strchr("._-", text[i]))
			return "only letters, digits, '.', '_' and '-' are in a name";
	if (!str_is_letter(text[0]) && !str_is_digit(text[0]))
		return "a name begins with a letter or a digit";
	return n >= SHORT_ID && session_is_id(text, false) ? "it could be the id of another" : NULL;
}

/* --- removing --- */

/* The number that a name of a workspace stands for; 0: it is none. */
static uint64_t session_read_number(const char *name)
{
	struct err e = { 0 };
	int64_t number;

	if (name[0] == '0' || num_parse_int(name, 1, INT64_MAX, &number, &e) < 0)
		return 0;
	return (uint64_t)number;
}

#define MOST_LOCKED 16  /* workspaces; each is its own descriptor */
#define MOST_LOOKS  100 /* somebody who fills it all the time is not waited for */

/* Workspaces that nobody uses any more. */
struct locks {
	size_t count;
	int fds[MOST_LOCKED];
};

static void locks_done(const struct locks *l)
{
	for (size_t i = 0; i < l->count; i++)
		close(l->fds[i]);
}

/*
 * Locks a workspace in the folder of workspaces for ourselves: a descriptor; -EBUSY: somebody has
 * it; -ENOENT: it has no lock, and so nobody uses it.
 */
static int session_lock_workspace(int workspaces, const char *name)
{
	char path[SESSION_NAME_SIZE + sizeof("/" SESSION_LOCK)];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/" SESSION_LOCK, name);
	fd = file_open_same_mount(workspaces, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return take_fd(&fd);
}

static int remove_lock_all(int folder, struct locks *ret, struct err *e)
{
	own_fd int workspaces = session_open_workspaces(folder, e);
	struct file_entries entries = { .fd = workspaces };
	const struct file_entry *entry;

	if (workspaces < 0)
		return workspaces == -ENOENT ? 0 : workspaces;
	while ((entry = file_next_entry(&entries))) {
		int fd = session_read_number(entry->name)
				 ? session_lock_workspace(workspaces, entry->name)
				 : -ENOENT;

		if (fd == -EBUSY)
			return err_set(e, ERR_REFUSED, EBUSY, "a process is using it");
		/* A workspace without a lock is unused: its removal was interrupted. */
		if (fd == -ENOENT || fd == -ENOTDIR)
			continue;
		if (fd < 0)
			return err_set(e, ERR_SYS, -fd, "cannot lock its workspace %s: %s",
				entry->name,
				fd == -EXDEV ? "another file system is mounted there"
					     : strerror(-fd));
		if (ret->count == MOST_LOCKED) {
			close(fd);
			return err_set(
				e, ERR_SYS, E2BIG, "it has more than %d workspaces", MOST_LOCKED);
		}
		ret->fds[ret->count++] = fd;
	}
	return entries.failure ? err_sys(e, entries.failure, "cannot list its workspaces") : 0;
}

/* Empties an open folder, and removes it, which has this name in `at`. */
static int session_remove_opened(int at, const char *name, int folder, struct err *e)
{
	struct tree_removal o = { .goes_on = true, .stays = true, .clears = true };
	struct err first = { 0 };
	int r = tree_empty(folder, &o, &first);

	for (int i = 0; r == 0 && i < MOST_LOOKS && unlinkat(at, name, AT_REMOVEDIR) < 0; i++) {
		if (errno == ENOENT)
			break;
		if (errno != ENOTEMPTY || i == MOST_LOOKS - 1)
			return err_sys(e, errno, "cannot remove '%s'", name);
		r = tree_empty(folder, &o, &first);
	}
	if (r < 0)
		return o.failed > 1 ? err_set(e, first.kind, first.num, "%s, and %" PRIu64 " more",
					      first.text, o.failed - 1)
				    : err_set(e, first.kind, first.num, "%s", first.text);
	return 0;
}

int session_remove_folder(int root, const char *id, struct err *e)
{
	own(locks) struct locks locks = { 0 };
	own_fd int folder = session_open_folder(root, id, e);
	int r;

	if (folder < 0)
		return folder == -ENOENT ? 0 : folder;
	r = remove_lock_all(folder, &locks, e);
	if (r == 0)
		r = session_remove_opened(root, id, folder, e);
	if (r < 0)
		err_prefix(e, "cannot remove the files of session %s", id);
	return r;
}

/* --- folders and workspaces --- */

#define DRAFT       ".new" /* after its id or number: a folder or a copy that is being made */
#define DRAFT_AGE_S 3600
#define MOVED_TRIES 3

static int fail_make(const char *id, int num, struct err *e)
{
	return err_sys(e, num, "cannot make the folder of session %s", id);
}

/* --- making --- */

static int folder_write_file(int folder, const char *name, const char *text)
{
	own_fd int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

static int folder_make_workspace(int folder)
{
	own_fd int workspace = -1;

	if (mkdirat(folder, "w", 0700) < 0 || mkdirat(folder, "w/1", 0700) < 0)
		return -errno;
	workspace = file_open_same_mount(folder, "w/1", O_RDONLY | O_DIRECTORY);
	if (workspace < 0)
		return workspace;
	/* In the cage /tmp is open to all as usual; outside nobody else can enter the root. */
	if (mkdirat(workspace, "home", 0700) < 0 || mkdirat(workspace, "tmp", 0700) < 0 ||
		fchmodat(workspace, "tmp", 01777, 0) < 0)
		return -errno;
	return folder_write_file(workspace, SESSION_LOCK, "");
}

static int folder_fill(int root, const char *draft, const char *spec)
{
	own_fd int folder = file_open_same_mount(root, draft, O_RDONLY | O_DIRECTORY);
	int r = folder < 0 ? folder : folder_write_file(folder, SESSION_NEW, "");

	if (r == 0)
		r = folder_write_file(folder, "spec.json", spec);
	return r == 0 ? folder_make_workspace(folder) : r;
}

int session_make_folder(int root, const char *id, const char *spec, struct err *e)
{
	char draft[SESSION_NAME_SIZE];
	int r;

	if (!session_is_id(id, true))
		return fail_make("?", EINVAL, e);
	snprintf(draft, sizeof(draft), "%s" DRAFT, id);
	if (mkdirat(root, draft, 0700) < 0)
		return fail_make(id, errno, e);
	r = folder_fill(root, draft, spec);
	if (r == 0 && renameat2(root, draft, root, id, RENAME_NOREPLACE) < 0)
		r = -errno;
	/* Where a file system does not know that: an empty folder in the way is all it replaces. */
	if (r == -EINVAL)
		r = renameat(root, draft, root, id) < 0 ? -errno : 0;
	if (r == 0)
		return 0;
	tree_remove(root, draft, NULL);
	return fail_make(id, -r, e);
}

int session_confirm_folder(int root, const char *id, struct err *e)
{
	own_fd int folder = session_open_folder(root, id, e);

	if (folder < 0)
		return folder;
	if (unlinkat(folder, SESSION_NEW, 0) < 0 && errno != ENOENT)
		return fail_make(id, errno, e);
	return 0;
}

/* --- opening --- */

int session_open_folder(int root, const char *id, struct err *e)
{
	own_fd int fd = session_is_id(id, true)
				? file_open_same_mount(root, id, O_RDONLY | O_DIRECTORY)
				: -EINVAL;

	if (fd == -ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_set(e, ERR_SYS, -fd, "cannot open the folder of session %.*s: %s",
			STORE_ID_SIZE - 1, id,
			fd == -EXDEV ? "another file system is mounted there" : strerror(-fd));
	if (!session_is_ours(fd))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use session %s: its folder is not yours, or others can write to it",
			id);
	return take_fd(&fd);
}

int session_open_workspaces(int folder, struct err *e)
{
	own_fd int fd = file_open_same_mount(folder, "w", O_RDONLY | O_DIRECTORY);

	if (fd < 0 && fd != -ENOENT)
		return err_sys(e, -fd, "cannot open the workspaces");
	return take_fd(&fd);
}

int session_open_workspace(int root, const char *id, uint64_t workspace, struct err *e)
{
	char path[SESSION_NAME_SIZE];
	own_fd int folder = session_open_folder(root, id, e), fd = -1;

	if (folder < 0)
		return folder == -ENOENT
			       ? err_set(e, ERR_REFUSED, ENOENT,
					 "cannot use session %s: its folder is not here", id)
			       : folder;
	snprintf(path, sizeof(path), "w/%" PRIu64, workspace);
	fd = file_open_same_mount(folder, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return err_set(e, fd == -ENOENT ? ERR_REFUSED : ERR_SYS, -fd,
			"cannot open workspace %" PRIu64 " of session %s: %s", workspace, id,
			strerror(-fd));
	if (!session_is_ours(fd))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot use workspace %" PRIu64
			" of session %s: it is not yours, or others can write to it",
			workspace, id);
	return take_fd(&fd);
}

/* The newest before `to`; 0: there is none. Or -errno in *ret_failure. */
static uint64_t session_find_newest(int workspaces, uint64_t to, int *ret_failure)
{
	struct file_entries entries = { .fd = workspaces };
	const struct file_entry *entry;
	uint64_t newest = 0;

	*ret_failure = lseek(workspaces, 0, SEEK_SET) < 0 ? -errno : 0;
	while (*ret_failure == 0 && (entry = file_next_entry(&entries))) {
		uint64_t number = session_read_number(entry->name);

		if (number > newest && number < to)
			newest = number;
	}
	if (entries.failure)
		*ret_failure = -entries.failure;
	return newest;
}

/* One that was moved there, and the store does not say so; 0: there is none. */
static uint64_t find_moved(int root, const struct store_session *s)
{
	own_fd int folder = -1, workspaces = -1;
	char place[STORE_ID_SIZE];
	struct err e = { 0 };
	uint64_t newest = 0;
	int r = session_root_id(root, place, &e);

	if (r == 0 && str_eq(place, s->place))
		folder = session_open_folder(root, s->id, &e);
	if (folder >= 0)
		workspaces = session_open_workspaces(folder, &e);
	if (workspaces >= 0)
		newest = session_find_newest(workspaces, UINT64_MAX, &r);
	return r == 0 && newest > s->workspace ? newest : 0;
}

int session_open_present(int root, const struct store_session *s, struct err *e)
{
	int fd = session_open_workspace(root, s->id, s->workspace, e);

	/* It may be moved again while we look. */
	for (int i = 0; i < MOVED_TRIES && fd == -ENOENT; i++) {
		uint64_t moved = find_moved(root, s);

		if (moved)
			fd = session_open_workspace(root, s->id, moved, e);
	}
	if (fd >= 0 && e)
		*e = (struct err){ 0 };
	return fd;
}

int session_open_before(int root, const char *id, uint64_t *number, struct err *e)
{
	own_fd int folder = session_open_folder(root, id, e), workspaces = -1;
	uint64_t before = *number;
	int r = folder;

	*number = 0;
	if (r >= 0)
		r = workspaces = session_open_workspaces(folder, e);
	if (r < 0)
		return r;
	*number = session_find_newest(workspaces, before, &r);
	if (r < 0)
		return err_sys(e, -r, "cannot list the workspaces of session %s", id);
	return *number ? session_open_workspace(root, id, *number, e) : -ENOENT;
}

/* --- all of them --- */

static int64_t age_of(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - st->st_mtim.tv_sec;
}

static void remove_draft(int root, const char *name, const struct stat *st)
{
	own_fd int folder = -1;

	if (age_of(st) < DRAFT_AGE_S)
		return;
	folder = file_open_same_mount(root, name, O_RDONLY | O_DIRECTORY);
	if (folder >= 0)
		session_remove_opened(root, name, folder, NULL);
}

int session_each_folder(
	int root, int (*see)(void *of, const struct session_folder *x), void *of, struct err *e)
{
	own_fd int again = file_open_name(root, ".", O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = again, .failure = again < 0 ? -again : 0 };
	const struct file_entry *entry;
	struct stat st;
	int r = 0;

	while (again >= 0 && r == 0 && (entry = file_next_entry(&entries))) {
		struct session_folder x = { .id = entry->name };
		char path[SESSION_NAME_SIZE];

		if (fstatat(root, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (str_ends(entry->name, DRAFT))
			remove_draft(root, entry->name, &st);
		if (!S_ISDIR(st.st_mode) || !session_is_id(entry->name, true))
			continue;
		snprintf(path, sizeof(path), "%s/" SESSION_NEW, entry->name);
		x.is_new = fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
		x.age_s = age_of(&st);
		r = see(of, &x);
	}
	if (r == 0 && entries.failure)
		return err_sys(e, entries.failure, "cannot list the sessions' root");
	return r;
}

/* --- from one lease to the next --- */

/*
 * A worker whose lease is over may not know it yet, and may still write. It keeps its workspace
 * locked, so the next worker leaves that one alone and continues on a copy.
 */

struct move {
	const char *id;
	int workspaces;
	char from[SESSION_NAME_SIZE], to[SESSION_NAME_SIZE];
};

static int move_fail(const struct move *m, int num, struct err *e)
{
	return err_sys(
		e, num, "cannot move workspace %s of session %s to %s", m->from, m->id, m->to);
}

/* --- the one before --- */

static int choose(struct move *m, uint64_t from, uint64_t to, struct err *e)
{
	struct stat st;
	int r = 0;

	snprintf(m->to, sizeof(m->to), "%" PRIu64, to);
	snprintf(m->from, sizeof(m->from), "%" PRIu64, from);
	if (fstatat(m->workspaces, m->to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return move_fail(m, EEXIST, e);
	if (fstatat(m->workspaces, m->from, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno == ENOENT)
		from = session_find_newest(m->workspaces, to, &r);
	else
		r = -errno;
	if (r < 0 || !from)
		return move_fail(m, r < 0 ? -r : ENOENT, e);
	snprintf(m->from, sizeof(m->from), "%" PRIu64, from);
	return 0;
}

/* --- by a copy --- */

static int copy_into(const struct move *m, const char *draft, struct err *e)
{
	/* A stranger's: what may act for somebody else does not come along. */
	struct tree_options o = { .opens_up = true, .drops_ids = true };
	own_fd int from = file_open_same_mount(m->workspaces, m->from, O_RDONLY | O_DIRECTORY);
	own_fd int to = -1;
	int r;

	if (from < 0)
		return move_fail(m, -from, e);
	if (mkdirat(m->workspaces, draft, 0700) < 0)
		return move_fail(m, errno, e);
	to = file_open_same_mount(m->workspaces, draft, O_RDONLY | O_DIRECTORY);
	if (to < 0)
		return move_fail(m, -to, e);
	r = tree_copy(from, to, &o, e);
	if (r < 0)
		err_prefix(e, "cannot copy workspace %s of session %s", m->from, m->id);
	return r;
}

static int move_copy(const struct move *m, struct err *e)
{
	char draft[SESSION_NAME_SIZE + sizeof(DRAFT)];
	int r;

	snprintf(draft, sizeof(draft), "%s" DRAFT, m->to);
	tree_remove(m->workspaces, draft, NULL);
	r = copy_into(m, draft, e);
	if (r == 0 && renameat(m->workspaces, draft, m->workspaces, m->to) < 0)
		r = move_fail(m, errno, e);
	if (r < 0)
		tree_remove(m->workspaces, draft, NULL);
	return r;
}

/* --- what is left of earlier ones --- */

static void remove_older(const struct move *m, uint64_t to)
{
	int failure;

	for (uint64_t number = session_find_newest(m->workspaces, to, &failure); number;
		number = session_find_newest(m->workspaces, number, &failure)) {
		char name[SESSION_NAME_SIZE];
		own_fd int lock = -1, folder = -1;

		snprintf(name, sizeof(name), "%" PRIu64, number);
		lock = session_lock_workspace(m->workspaces, name);
		if (lock < 0 && lock != -ENOENT)
			continue;
		folder = file_open_same_mount(m->workspaces, name, O_RDONLY | O_DIRECTORY);
		/* Entries that stay are removed with the session, which reports them. */
		if (folder >= 0)
			session_remove_opened(m->workspaces, name, folder, NULL);
	}
}

static int session_move_move(const struct move *m, bool *ret_is_copied, struct err *e)
{
	own_fd int lock = session_lock_workspace(m->workspaces, m->from);

	*ret_is_copied = lock == -EBUSY;
	if (lock == -EBUSY)
		return move_copy(m, e);
	/* Without a lock somebody began to remove it: half of it is not a workspace. */
	if (lock < 0)
		return move_fail(m, -lock, e);
	return renameat(m->workspaces, m->from, m->workspaces, m->to) < 0 ? move_fail(m, errno, e)
									  : 0;
}

int session_move_workspace(
	int root, const char *id, uint64_t from, uint64_t to, bool *ret_is_copied, struct err *e)
{
	struct move m = { .id = id, .workspaces = -1 };
	own_fd int folder = session_open_folder(root, id, e), workspaces = -1;
	int r;

	if (folder == -ENOENT)
		return err_set(e, ERR_REFUSED, ENOENT,
			"cannot move session %s: its folder is not here", id);
	workspaces = folder < 0 ? folder : session_open_workspaces(folder, e);
	if (workspaces == -ENOENT)
		return err_set(e, ERR_REFUSED, ENOENT,
			"cannot move session %s: it has no workspace here", id);
	if (workspaces < 0)
		return workspaces;
	m.workspaces = workspaces;
	r = choose(&m, from, to, e);
	if (r == 0)
		r = session_move_move(&m, ret_is_copied, e);
	if (r == 0)
		remove_older(&m, to);
	return r;
}

/* --- what was written --- */

/* Adds the names at the top of one layer; `called`: all of them are told as this. */
static int count_layer(int workspace, const char *path, const char *called, struct buf *names)
{
	own_fd int upper = file_open_same_mount(workspace, path, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = upper };
	const struct file_entry *entry;
	int count = 0;

	if (upper < 0)
		return upper == -ENOENT ? 0 : upper;
	while ((entry = file_next_entry(&entries))) {
		const char *name = called ? called : entry->name;

		if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
			continue;
		if (names) {
			buf_puts(names, names->len ? ", " : "");
			buf_add_visible(names, name, strlen(name));
		}
		count++;
		if (called)
			break;
	}
	return entries.failure ? -entries.failure : count;
}

int session_count_writes(int root, const char *id, struct buf *names)
{
	uint64_t number = UINT64_MAX;
	struct err e = { 0 };
	own_fd int workspace = session_open_before(root, id, &number, &e);
	int project, git;

	if (workspace < 0)
		return workspace == -ENOENT ? 0 : workspace;
	project = count_layer(workspace, "layer/upper", NULL, names);
	git = project < 0 ? 0 : count_layer(workspace, "git-layer/upper", ".git", names);
	return project < 0 || git < 0 ? -EIO : project + git;
}

#define MOST_DEPTH 100 /* each level has a descriptor; what is deeper counts as written */

static bool is_since(const struct timespec *a, const struct timespec *t)
{
	return a->tv_sec != t->tv_sec ? a->tv_sec > t->tv_sec : a->tv_nsec >= t->tv_nsec;
}

/* True if an entry was written since `t`. Removing or renaming one changes its folder. */
static bool was_written(int folder, const struct timespec *t, int depth)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	struct stat st;

	/* Each start of a cage changes the attributes of the top, so only its content counts. */
	if (fstat(folder, &st) < 0 || is_since(&st.st_mtim, t) || depth == MOST_DEPTH)
		return true;
	while ((entry = file_next_entry(&entries))) {
		own_fd int inner = -1;

		if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
			continue;
		if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			is_since(&st.st_ctim, t))
			return true;
		if (!S_ISDIR(st.st_mode))
			continue;
		inner = file_open_name(folder, entry->name, O_RDONLY | O_DIRECTORY);
		if (inner < 0 || was_written(inner, t, depth + 1))
			return true;
	}
	return entries.failure != 0;
}

bool session_was_written(int workspace, const struct timespec *t)
{
	static const char *const layers[] = { "layer/upper", "git-layer/upper" };

	for (size_t i = 0; i < COUNT_OF(layers); i++) {
		own_fd int upper =
			file_open_same_mount(workspace, layers[i], O_RDONLY | O_DIRECTORY);

		if (upper >= 0 && was_written(upper, t, 0))
			return true;
	}
	return false;
}
