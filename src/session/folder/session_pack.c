/*
 * session_pack - a workspace becomes one piece of bytes.
 *
 * Runs as:  a worker, when nothing runs in the session, or while something does that was left
 * behind. Reads:    the layers, the home, and what says of which project they are. What is in them
 * is a stranger's, and may change meanwhile: what vanishes was never there. Must not: follow a
 * link, enter a mount, wait for anything, take more memory than is saved.
 *
 * Names are in order, so that the same workspace gives the same bytes. What its owner cannot read
 * is made readable for a moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "session/folder/session.h"
#include "session/folder/session_piece.h"

#define MOST_LOOKS 16

struct pack {
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct tree_path path;
	struct piece_writer writer;
};

/* --- the walk --- */

struct entry {
	int at; /* the folder it is in */
	const char *name;
	struct stat st;
};

/*
 * Opens a file or a folder, with its permissions changed if they are in the way: *ret_is_changed. A
 * folder that can be read may still not be one that can be entered.
 */
static int open_entry(const struct entry *x, bool *ret_is_changed)
{
	bool is_folder = S_ISDIR(x->st.st_mode);
	int flags = is_folder ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	mode_t needed = is_folder ? S_IRUSR | S_IXUSR : S_IRUSR;
	int fd = -EACCES;

	*ret_is_changed = false;
	if ((x->st.st_mode & needed) == needed || geteuid() == 0)
		fd = file_open_same_mount(x->at, x->name, flags);
	if (fd != -EACCES)
		return fd;
	if (fchmodat(x->at, x->name, (x->st.st_mode & 07777) | needed, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_is_changed = true;
	return file_open_same_mount(x->at, x->name, flags);
}

static int pack_folder(struct pack *p, int folder, bool is_layer, struct err *e);

static int pack_opened(struct pack *p, struct entry *x, int fd, bool is_layer, struct err *e)
{
	bool is_folder = S_ISDIR(x->st.st_mode);
	size_t before;
	int r;

	piece_put_head(&p->writer, is_folder ? PIECE_FOLDER : PIECE_FILE, x->name, &x->st);
	/* What a file may do for who runs it is its owner's to say, and there it has another. */
	piece_put_number(&p->writer, x->st.st_mode & (is_folder ? 07777U : 01777U), 2);
	r = piece_put_attributes(&p->writer, fd);
	if (r == 0 && !is_folder)
		r = piece_put_content(&p->writer, fd, x->st.st_size);
	if (r < 0)
		return tree_fail(&p->path, x->name, -r, "read", e);
	if (!is_folder)
		return 0;
	if (p->depth == TREE_MAX_DEPTH)
		return tree_fail(&p->path, x->name, ELOOP, "save", e);
	before = tree_path_enter(&p->path, x->name);
	p->depth++;
	r = pack_folder(p, fd, is_layer, e);
	p->depth--;
	tree_path_leave(&p->path, before);
	return r;
}

static int pack_tree(struct pack *p, struct entry *x, bool is_layer, struct err *e)
{
	mode_t type = x->st.st_mode & S_IFMT, mode = x->st.st_mode & 07777;
	bool is_changed;
	own_fd int fd = open_entry(x, &is_changed);
	int r;

	if (fd == -ENOENT)
		return 0;
	/* What it was a moment ago does not count. */
	if (fd == -ENOTDIR || fd == -ELOOP)
		return -EAGAIN;
	if (fd < 0 || fstat(fd, &x->st) < 0)
		return tree_fail(&p->path, x->name, fd < 0 ? -fd : errno, "read", e);
	if ((x->st.st_mode & S_IFMT) != type)
		return -EAGAIN;
	if (is_changed && type == S_IFREG)
		fchmod(fd, mode);
	if (is_changed)
		x->st.st_mode = type | mode;
	r = pack_opened(p, x, fd, is_layer, e);
	if (is_changed && type == S_IFDIR)
		fchmod(fd, mode);
	return r;
}

static int pack_link(struct pack *p, const struct entry *x, struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(x->at, x->name, target, sizeof(target));

	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0 && errno == EINVAL)
		return -EAGAIN;
	if (n <= 0 || n == (ssize_t)sizeof(target))
		return tree_fail(&p->path, x->name, n < 0 ? errno : ENAMETOOLONG, "read", e);
	target[n] = '\0';
	piece_put_head(&p->writer, PIECE_LINK, x->name, &x->st);
	piece_put_text(&p->writer, target);
	return 0;
}

static int pack_entry(struct pack *p, struct entry *x, bool is_layer, struct err *e)
{
	if (S_ISREG(x->st.st_mode) || S_ISDIR(x->st.st_mode))
		return pack_tree(p, x, is_layer, e);
	if (S_ISLNK(x->st.st_mode))
		return pack_link(p, x, e);
	if (S_ISCHR(x->st.st_mode) && x->st.st_rdev == 0)
		piece_put_head(&p->writer, PIECE_WHITEOUT, x->name, &x->st);
	else
		p->writer.left_out++;
	return 0;
}

/* One that is replaced by another kind of thing, again and again, is looked at again. */
static int pack_name(struct pack *p, int at, const char *name, bool is_layer, struct err *e)
{
	struct entry x = { .at = at, .name = name };
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < MOST_LOOKS; i++)
		if (fstatat(at, name, &x.st, AT_SYMLINK_NOFOLLOW) == 0)
			r = pack_entry(p, &x, is_layer, e);
		else if (errno == ENOENT)
			return 0;
		else
			return tree_fail(&p->path, name, errno, "read", e);
	if (r == -EAGAIN)
		return tree_fail(&p->path, name, EBUSY, "read", e);
	return r < 0 ? r : piece_how_it_went(&p->writer);
}

static int pack_folder(struct pack *p, int folder, bool is_layer, struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	int r = tree_names_read(folder, TREE_MAX_NAMES - p->names_size, &names);

	/* A folder that is gone has nothing in it. */
	if (r < 0 && r != -ENOENT)
		return tree_fail(&p->path, "", -r, "list", e);
	r = 0;
	p->names_size += names.bytes.len;
	for (size_t i = 0; r == 0 && i < names.count; i++)
		if (!is_layer || !str_eq(names.sorted[i], PIECE_WORK))
			r = pack_name(p, folder, names.sorted[i], false, e);
	p->names_size -= names.bytes.len;
	piece_put_number(&p->writer, PIECE_END, 1);
	return r < 0 ? r : piece_how_it_went(&p->writer);
}

/* --- the whole --- */

static int pack_parts(struct pack *p, int workspace, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < PIECE_PART_COUNT; i++) {
		const struct piece_part *part = &piece_parts[i];
		size_t at = p->writer.out->len;

		r = pack_name(p, workspace, part->name, part->is_layer, e);
		/* What could not be read again need not be saved. */
		if (r == 0 && p->writer.out->len > at &&
			p->writer.out->data[at] != (char)part->kind)
			return tree_fail(&p->path, part->name, ESTALE, "save", e);
	}
	piece_put_number(&p->writer, PIECE_END, 1);
	return r < 0 ? r : piece_how_it_went(&p->writer);
}

static int pack_fail(int num, struct err *e)
{
	char most[NUM_TEXT_SIZE];

	num_print_size(STORE_MAX_SAVED, most);
	if (num == EFBIG)
		return err_hint(e,
			err_set(e, ERR_REFUSED, num,
				"cannot save the workspace: the writes to the project and the home "
				"take more than %s",
				most),
			"remove what is not needed, or let the workers share one root");
	return err_sys(e, num, "cannot save the workspace");
}

int session_pack(int workspace, struct buf *ret, struct err *e)
{
	struct pack p = { .writer.out = ret };
	struct err why = { 0 };
	int r = piece_begin(&p.writer);

	if (r == 0)
		r = pack_parts(&p, workspace, &why);
	if (r == 0)
		r = piece_finish(&p.writer);
	if (r == 0)
		return 0;
	ret->len = 0;
	if (!why.text[0])
		return pack_fail(-r, e);
	return err_set(e, ERR_SYS, -r, "cannot save the workspace: %s", why.text);
}
