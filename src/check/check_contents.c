/*
 * check_contents - looks at what the binds of a spec would bring into the cage (S-18).
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: a settled spec, and where ~ and the project are.
 * Leaves:      errors for sources that are not there, warnings for what is inside the others, at
 *              the line of the bind.
 * Must not:    follow a symlink below a source, open anything but folders and regular files, write,
 *              wait for anybody, read or speak without bound, repeat the content of a file that may
 *              hold a secret.
 *
 * A source is the operator's own word and is resolved by ordinary rules, once; below it nothing
 * is followed. A bind can be read-only and still lead elsewhere: what is in it was made for the
 * host, and is read by programs in the cage.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check.h"
#include "check/check_bind.h"
#include "check/check_git.h"
#include "plan/plan_root.h"

#define MAX_READ  ((size_t)16 * 1024 * 1024) /* of one bind */
#define MAX_SHOWN ((size_t)100)

static const struct {
	const char *many, *hint;
} kinds[] = {
	[CHECK_LINK_OUT] = { "symlinks that lead out of it",
		"bind what it leads to as well, or only what is needed" },
	[CHECK_LINK_HOST] = { "symlinks that name a path of the host", "make the link relative" },
	[CHECK_VENV] = { "virtual environments",
		"bind the sources only, and make the environment in the cage" },
	[CHECK_PTH] = { ".pth files", "bind the sources only, and install them in the cage" },
	[CHECK_GIT_SETTING] = { "settings of git that lead elsewhere",
		"remove the setting, or bind the tree without .git" },
	[CHECK_GIT_ELSEWHERE] = { "work trees whose repository is outside",
		"bind the whole repository, or the tree without .git" },
	[CHECK_CREDENTIALS] = { "names of credentials",
		"move it out of the bind, or bind only what is needed" },
	[CHECK_DOOR] = { "sockets and pipes",
		"a read-only bind does not close it: bind only what is needed" },
	[CHECK_MOUNT] = { "mounts that were not looked into",
		"check it in a bind of its own if it matters" },
};

/* --- saying --- */

/*
 * A stranger's path for a message: the end of a long one, hidden characters made visible. In the
 * spec's arena.
 */
static const char *check_shown(struct spec *s, const char *path)
{
	own(buf) struct buf shown = { .max = MAX_SHOWN * 12 };
	size_t n = strlen(path), skip = n > MAX_SHOWN ? n - MAX_SHOWN : 0;
	const char *copy;

	/* Not from the middle of a character. */
	while (skip && path[skip] && ((unsigned char)path[skip] & 0xc0) == 0x80)
		skip++;
	buf_puts(&shown, skip ? "…" : "");
	buf_add_visible(&shown, path + skip, n - skip);
	copy = arena_copy(&s->arena, buf_text(&shown), shown.len);
	return copy ? copy : "";
}

static const char *check_shown_entry(struct check_bind *b, const struct check_entry *entry)
{
	const char *path = arena_printf(
		&b->spec->arena, "%s%s%s", entry->dir, *entry->dir ? "/" : "", entry->name);

	return check_shown(b->spec, path ? path : entry->name);
}

/* Counts a finding; true when it is one of those to be said. */
static bool check_found(struct check_bind *b, enum check_kind kind)
{
	return ++b->found[kind] <= CHECK_MAX_SAID;
}

/* "binds: SOURCE: …", with the hint of the kind. */
static void __attribute__((format(printf, 3, 4)))
check_say(struct check_bind *b, enum check_kind kind, const char *fmt, ...)
{
	char text[448];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	diags_warn(&b->spec->diags, b->item->at, kinds[kind].hint, "binds: %s: %s",
		check_shown(b->spec, b->item->bind.from), text);
}

/* Warns how many more findings of each kind there were. */
static void check_say_rest(struct check_bind *b)
{
	for (enum check_kind k = 0; k < CHECK_KIND_COUNT; k++)
		if (b->found[k] > CHECK_MAX_SAID)
			check_say(b, k, "and %zu more %s", b->found[k] - CHECK_MAX_SAID,
				kinds[k].many);
}

/* --- reading --- */

/* False when there is no memory. */
static bool check_bind_init(
	struct check_bind *b, struct spec *s, const struct spec_item *item, const char *host_path)
{
	*b = (struct check_bind){ .spec = s, .item = item, .host_path = host_path };
	b->unread = MAX_READ;
	b->bytes = malloc(CHECK_MAX_FILE);
	return b->bytes != NULL;
}

static void check_bind_done(struct check_bind *b)
{
	free(b->bytes);
}

/* Reads the first bytes of a regular file, at most `max`, into b->bytes; 0 where it cannot. */
static size_t check_read_start(struct check_bind *b, const struct check_entry *entry, size_t max)
{
	own_fd int fd = -1;
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (b->unread < max) {
		b->is_capped = true;
		return 0;
	}
	fd = file_open_beneath(
		entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	while (n < max && (got = pread(fd, b->bytes + n, max - n, (off_t)n)) > 0)
		n += (size_t)got;
	b->unread -= n;
	return n;
}

/* --- where a path leads --- */

/* True if a relative path, `depth` directories below the bind, leads out of it. */
static bool bind_climbs(const char *path, unsigned depth)
{
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			if (depth == 0)
				return true;
			depth--;
		} else if (n && !(n == 1 && path[0] == '.')) {
			depth++;
		}
		path += n;
	}
	return false;
}

static bool stays_in(const char *path, const char *root)
{
	return str_path_within(path, root) && !bind_climbs(path + strlen(root), 0);
}

/* Judges by its text alone where a path leads that stands `depth` directories below the bind. */
static enum check_lead check_leads(const struct check_bind *b, const char *path, unsigned depth)
{
	if (path[0] != '/')
		return bind_climbs(path, depth) ? CHECK_LEADS_OUT : CHECK_LEADS_INSIDE;
	if (stays_in(path, b->item->bind.to))
		return CHECK_LEADS_INSIDE;
	return stays_in(path, b->host_path) ? CHECK_LEADS_HOST : CHECK_LEADS_OUT;
}

#define MAX_PTH ((size_t)64 * 1024)

/* --- symlinks --- */

static bool inside_read_link(int dir_fd, const char *name, char ret[static PATH_MAX])
{
	ssize_t n = readlinkat(dir_fd, name, ret, PATH_MAX - 1);

	ret[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

static void inside_check_link(struct check_bind *b, const struct check_entry *entry)
{
	char target[PATH_MAX];
	enum check_lead lead;

	if (!inside_read_link(entry->dir_fd, entry->name, target))
		return;
	lead = check_leads(b, target, entry->depth);
	if (lead == CHECK_LEADS_OUT && check_found(b, CHECK_LINK_OUT))
		check_say(b, CHECK_LINK_OUT, "the symlink %s leads out of it, to %s",
			check_shown_entry(b, entry), check_shown(b->spec, target));
	if (lead == CHECK_LEADS_HOST && check_found(b, CHECK_LINK_HOST))
		check_say(b, CHECK_LINK_HOST,
			"the symlink %s names %s, which is another place in the cage",
			check_shown_entry(b, entry), check_shown(b->spec, target));
}

/* --- Python --- */

/* Follows bin/python through links in bin; false if it is no link, or stays inside. */
static bool leads_out_of_venv(
	const struct check_bind *b, const struct check_entry *entry, char target[static PATH_MAX])
{
	own_fd int bin =
		file_open_beneath(entry->dir_fd, "bin", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char name[PATH_MAX] = "python";

	for (int hops = 0; bin >= 0 && hops < 8; hops++) {
		if (!inside_read_link(bin, name, target))
			return false;
		if (strchr(target, '/'))
			return check_leads(b, target, entry->depth + 1) == CHECK_LEADS_OUT;
		memcpy(name, target, strlen(target) + 1);
	}
	return false;
}

static void check_venv(struct check_bind *b, const struct check_entry *entry)
{
	char target[PATH_MAX];
	const char *dir;

	if (!check_found(b, CHECK_VENV))
		return;
	dir = *entry->dir ? check_shown(b->spec, entry->dir) : "it";
	if (leads_out_of_venv(b, entry, target))
		check_say(b, CHECK_VENV,
			"%s is a virtual environment, and its interpreter is outside the bind: %s",
			dir, check_shown(b->spec, target));
	else
		check_say(b, CHECK_VENV,
			"%s is a virtual environment, made for the paths of the host", dir);
}

/* The first line that is an absolute path or runs code, cut out in place; NULL if none is. */
static const char *find_pth_line(char *bytes, unsigned *ret_number)
{
	char *rest = bytes, *line;

	*ret_number = 0;
	while ((line = strsep(&rest, "\n")) != NULL) {
		++*ret_number;
		line[strcspn(line, "\r")] = '\0';
		if (line[0] == '/' || str_starts(line, "import ") || str_starts(line, "import\t"))
			return line;
	}
	return NULL;
}

/* Models are called .pth as well; they are no text. */
static void check_pth(struct check_bind *b, const struct check_entry *entry)
{
	size_t n = check_read_start(b, entry, 4096);
	const char *line;
	unsigned number;

	if (n == 0 || memchr(b->bytes, '\0', n) || !check_found(b, CHECK_PTH))
		return;
	n = check_read_start(b, entry, MAX_PTH - 1);
	b->bytes[n] = '\0';
	line = find_pth_line(b->bytes, &number);
	if (!line)
		check_say(b, CHECK_PTH, "%s adds to what Python imports",
			check_shown_entry(b, entry));
	else if (line[0] == '/')
		check_say(b, CHECK_PTH,
			"%s makes Python import from a path of the host, in line %u: %s",
			check_shown_entry(b, entry), number, check_shown(b->spec, line));
	else
		check_say(b, CHECK_PTH, "%s runs code whenever Python starts, in line %u",
			check_shown_entry(b, entry), number);
}

/* --- git --- */

static void check_git_config(struct check_bind *b, const struct check_entry *entry)
{
	const struct check_git_setting *setting;
	struct check_git git;

	check_git_init(&git, b->bytes, check_read_start(b, entry, CHECK_MAX_FILE));
	while ((setting = check_git_next(&git)) != NULL)
		if (check_found(b, CHECK_GIT_SETTING))
			check_say(b, CHECK_GIT_SETTING, "%s line %u has %s, which %s",
				check_shown_entry(b, entry), git.line, setting->name,
				setting->does);
}

/* A .git that is a file names the place of the repository. */
static void check_git_file(struct check_bind *b, const struct check_entry *entry)
{
	static const char head[] = "gitdir: ";
	const char *path = b->bytes + strlen(head);
	enum check_lead lead;

	b->bytes[check_read_start(b, entry, PATH_MAX)] = '\0';
	b->bytes[strcspn(b->bytes, "\r\n")] = '\0';
	if (!str_starts(b->bytes, head))
		return;
	lead = check_leads(b, path, entry->depth);
	if (lead == CHECK_LEADS_INSIDE || !check_found(b, CHECK_GIT_ELSEWHERE))
		return;
	check_say(b, CHECK_GIT_ELSEWHERE, "%s names a repository %s: %s",
		check_shown_entry(b, entry),
		lead == CHECK_LEADS_OUT ? "outside the bind" : "by a path of the host",
		check_shown(b->spec, path));
}

/* True below .git, or below NAME.git as bare repositories are called. */
static bool is_in_git(const char *dir)
{
	while ((dir = strstr(dir, ".git")) != NULL) {
		dir += strlen(".git");
		if (!*dir || *dir == '/')
			return true;
	}
	return false;
}

/* --- credentials --- */

static const char *const credential_folders[] = { ".aws", ".azure", ".docker", ".gnupg", ".kube",
	".password-store", ".ssh" };
static const char *const credential_files[] = { ".env", ".env.local", ".env.production",
	".git-credentials", ".netrc", ".npmrc", ".pgpass", ".pypirc", ".vault-token", "id_dsa",
	"id_ecdsa", "id_ed25519", "id_rsa", "key.pem", "privkey.pem" };

static bool names_credentials(const char *name, size_t n, mode_t type)
{
	bool is_folder = S_ISDIR(type);
	const char *const *names = is_folder ? credential_folders : credential_files;
	size_t count = is_folder ? COUNT_OF(credential_folders) : COUNT_OF(credential_files);

	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return true;
	return false;
}

/* True if the operator has acknowledged the source, or this path below it. */
static bool inside_is_acknowledged(const struct check_bind *b, const struct check_entry *entry)
{
	const struct spec_value *allowed = spec_list(b->spec, SPEC_PREFLIGHT_ALLOW);
	const char *from = b->item->bind.from, *path = from;

	if (entry && allowed->count)
		path = arena_printf(&b->spec->arena, "%s/%s%s%s", from, entry->dir,
			*entry->dir ? "/" : "", entry->name);
	for (size_t i = 0; path && i < allowed->count; i++)
		if (str_path_within(path, allowed->items[i].text))
			return true;
	return false;
}

static bool check_credentials(struct check_bind *b, const struct check_entry *entry)
{
	if (!names_credentials(entry->name, strlen(entry->name), entry->type) ||
		inside_is_acknowledged(b, entry))
		return false;
	if (check_found(b, CHECK_CREDENTIALS))
		check_say(b, CHECK_CREDENTIALS, "%s holds credentials, by its name",
			check_shown_entry(b, entry));
	return true;
}

/* True if a folder in the path, or the file, has the name of credentials. */
static bool passes_credentials(const char *path, mode_t type)
{
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (names_credentials(path, n, path[n] ? S_IFDIR : type))
			return true;
		path += n;
	}
	return false;
}

/* The plan knows what stands right below ~ and refuses it; all but .env. */
static bool is_refused_by_name(const char *from)
{
	const char *path;
	size_t n;

	if (plan_root_of(from, &path) != PLAN_ROOT_HOME || !*path || str_starts(path, "/.env"))
		return false;
	path++;
	n = strcspn(path, "/");
	return names_credentials(path, n, S_IFDIR) || names_credentials(path, n, S_IFREG);
}

/* --- by type --- */

static void check_door(struct check_bind *b, const struct check_entry *entry)
{
	if (check_found(b, CHECK_DOOR))
		check_say(b, CHECK_DOOR, "%s is a %s, and the cage reaches whoever is behind it",
			check_shown_entry(b, entry),
			S_ISSOCK(entry->type) ? "socket" : "named pipe");
}

static void inside_check_file(struct check_bind *b, const struct check_entry *entry)
{
	const char *name = entry->name;

	if (str_eq(name, "pyvenv.cfg"))
		check_venv(b, entry);
	else if (str_ends(name, ".pth"))
		check_pth(b, entry);
	else if (str_eq(name, ".git"))
		check_git_file(b, entry);
	else if (str_eq(name, "config") || str_eq(name, "config.worktree")) {
		if (is_in_git(entry->dir) || is_in_git(b->host_path))
			check_git_config(b, entry);
	} else {
		check_credentials(b, entry);
	}
}

static bool inside_check_folder(struct check_bind *b, const struct check_entry *entry)
{
	if (check_credentials(b, entry))
		return false;
	if (entry->is_mount && check_found(b, CHECK_MOUNT))
		check_say(b, CHECK_MOUNT, "%s is a mount of its own, and was not looked into",
			check_shown_entry(b, entry));
	return true;
}

/* Looks at one entry: a check_visit for a struct check_bind. */
static bool check_inside(void *bind, const struct check_entry *entry)
{
	struct check_bind *b = bind;

	if (S_ISDIR(entry->type))
		return inside_check_folder(b, entry);
	if (S_ISLNK(entry->type))
		inside_check_link(b, entry);
	else if (S_ISREG(entry->type))
		inside_check_file(b, entry);
	else if (S_ISSOCK(entry->type) || S_ISFIFO(entry->type))
		check_door(b, entry);
	return false;
}

/* Looks at the source itself: what its name says, and its type if it is no directory. */
static void check_source_itself(struct check_bind *b, mode_t type)
{
	const char *from = b->item->bind.from;

	if (passes_credentials(b->host_path, type) && !is_refused_by_name(from) &&
		!inside_is_acknowledged(b, NULL))
		check_say(b, CHECK_CREDENTIALS, "by its name it holds credentials: %s",
			check_shown(b->spec, b->host_path));
	if (S_ISSOCK(type) || S_ISFIFO(type))
		check_say(b, CHECK_DOOR, "it is a %s, and the cage reaches whoever is behind it",
			S_ISSOCK(type) ? "socket" : "named pipe");
	if (S_ISCHR(type) || S_ISBLK(type))
		diags_warn(&b->spec->diags, b->item->at, "remove it",
			"binds: %s: it is a device, and devices in a bind cannot be opened",
			check_shown(b->spec, from));
}

/* --- walking --- */

/*
 * Directories that were seen wait in a queue as paths below the root, and each is opened from the
 * root when its turn comes, one at a time: a tree that is changed meanwhile can hide things, not
 * lead out. No mount is crossed and no automount woken.
 */

#define ARENA_MAX ((size_t)16 * 1024 * 1024)

/* A directory to be looked at. */
struct place {
	struct place *next;
	const char *path;
	unsigned depth;
};

struct name {
	const char *text;
	unsigned char type; /* DT_… */
};

struct walk {
	int root_fd;
	uint64_t mount; /* of the root */
	size_t *left;
	check_visit *visit;
	void *visitor;
	struct arena arena; /* names and places */
	struct place *first, **last;
	struct name *names; /* of the directory that is open, and room for more */
	size_t count, room;
	bool is_cut;
};

static void walk_done(struct walk *w)
{
	arena_done(&w->arena);
	free(w->names);
}

/* The id of a mount, or its file system's where the kernel gives none. */
static uint64_t mount_of(const struct statx *st)
{
	if (st->stx_mask & STATX_MNT_ID)
		return st->stx_mnt_id;
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

static bool walk_look_at(int dir_fd, const char *name, struct statx *ret)
{
	return statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH,
		       STATX_TYPE | STATX_MNT_ID, ret) == 0;
}

static void walk_add_place(struct walk *w, const char *dir, const char *name, unsigned depth)
{
	struct place *place = arena_alloc(&w->arena, sizeof(*place));

	if (place)
		place->path = arena_printf(&w->arena, "%s%s%s", dir, *dir ? "/" : "", name);
	if (!place || !place->path || depth > CHECK_MAX_DEPTH) {
		w->is_cut = true;
		return;
	}
	place->depth = depth;
	*w->last = place;
	w->last = &place->next;
}

static bool walk_add_name(struct walk *w, const struct dirent *d)
{
	struct name name = { arena_copy(&w->arena, d->d_name, strlen(d->d_name)), d->d_type };

	if (w->count == w->room) {
		size_t room = w->room ? w->room * 2 : 256;
		struct name *grown = reallocarray(w->names, room, sizeof(*grown));

		if (!grown)
			return false;
		w->names = grown;
		w->room = room;
	}
	if (!name.text)
		return false;
	w->names[w->count++] = name;
	return true;
}

static int walk_compare_names(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* The names in a directory, as many as may still be visited, sorted. */
static void walk_read_names(struct walk *w, DIR *dir)
{
	const struct dirent *d;

	w->count = 0;
	/* cppcheck-suppress readdirCalled ; nobody else reads this directory */
	while ((d = readdir(dir)) != NULL) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, ".."))
			continue;
		if (w->count == *w->left || !walk_add_name(w, d)) {
			w->is_cut = true;
			break;
		}
	}
	*w->left -= w->count;
	if (w->count)
		qsort(w->names, w->count, sizeof(w->names[0]), walk_compare_names);
}

static void visit_name(struct walk *w, const struct place *at, int dir_fd, const struct name *name)
{
	struct check_entry entry = { .dir_fd = dir_fd,
		.dir = at->path,
		.name = name->text,
		.depth = at->depth,
		.type = (mode_t)DTTOIF(name->type) };

	if (name->type == DT_UNKNOWN || name->type == DT_DIR) {
		struct statx st;

		if (!walk_look_at(dir_fd, name->text, &st))
			return;
		entry.type = st.stx_mode & S_IFMT;
		entry.is_mount =
			S_ISDIR(st.stx_mode) &&
			(mount_of(&st) != w->mount || (st.stx_attributes & STATX_ATTR_AUTOMOUNT));
	}
	if (w->visit(w->visitor, &entry) && S_ISDIR(entry.type) && !entry.is_mount)
		walk_add_place(w, at->path, name->text, at->depth + 1);
}

/* NULL for what the operator may not read: a cage may not either. */
static DIR *walk_open_place(struct walk *w, const struct place *at)
{
	int fd = file_open_beneath(
		w->root_fd, *at->path ? at->path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		return dir;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || fd == -ENAMETOOLONG || fd == -EMFILE || fd == -ENFILE)
		w->is_cut = true;
	return NULL;
}

static void walk_look_into(struct walk *w, const struct place *at)
{
	own_dir DIR *dir = walk_open_place(w, at);

	if (!dir)
		return;
	walk_read_names(w, dir);
	for (size_t i = 0; i < w->count; i++)
		visit_name(w, at, dirfd(dir), &w->names[i]);
}

/*
 * Visits what is below root_fd: the entries of a directory by name, upper levels first, so that a
 * walk that is cut has seen what matters most. Follows no symlink, enters no other mount, opens
 * nothing but directories. *left is how many entries may still be visited, and is counted down.
 * False when it was cut: entries, CHECK_MAX_DEPTH or memory.
 */
static bool check_walk(int root_fd, size_t *left, check_visit *visit, void *visitor)
{
	struct place root = { .path = "" };
	own(walk) struct walk w = { .root_fd = root_fd,
		.left = left,
		.visit = visit,
		.visitor = visitor,
		.first = &root,
		.last = &root.next };
	struct statx st;

	if (!walk_look_at(root_fd, "", &st))
		return false;
	w.mount = mount_of(&st);
	arena_init(&w.arena, ARENA_MAX);
	for (const struct place *at = w.first; at; at = at->next)
		walk_look_into(&w, at);
	return !w.is_cut;
}

#define MAX_ALL_ENTRIES ((size_t)100000) /* of all binds together */

/* The source as a path of this host; NULL, and says so, where it cannot be told. */
static const char *contents_locate(
	struct spec *s, const struct check_places *places, const struct spec_item *item)
{
	const char *from = item->bind.from, *path = from, *rest;
	enum plan_root root = plan_root_of(from, &rest);

	if (root == PLAN_ROOT_HOME && !places->home) {
		diags_error(&s->diags, item->at, "set HOME, or write the whole path",
			"binds: %s: it is not known where ~ is", check_shown(s, from));
		return NULL;
	}
	if (root == PLAN_ROOT_HOME)
		path = arena_printf(&s->arena, "%s%s", places->home, rest);
	else if (root == PLAN_ROOT_PROJECT)
		path = arena_printf(&s->arena, "%s%s", places->project, rest);
	if (!path)
		diags_error(&s->diags, item->at, NULL, "binds: not enough memory to check them");
	return path;
}

/* Opens the source without opening what it is; says why it cannot be. A descriptor or -errno. */
static int contents_open_source(struct spec *s, const struct spec_item *item, const char *path)
{
	int fd = file_open(path, O_PATH);
	const char *shown = fd < 0 ? check_shown(s, item->bind.from) : "";

	if (fd == -ENOENT || fd == -ENOTDIR)
		diags_error(&s->diags, item->at, "create it, or remove the bind",
			"binds: %s does not exist on this host", shown);
	else if (fd < 0)
		diags_error(&s->diags, item->at, NULL, "binds: %s cannot be opened: %s", shown,
			strerror(-fd));
	return fd;
}

/* The real path of a descriptor; the path it was opened by where the kernel does not tell. */
static const char *real_path(struct spec *s, int fd, const char *path)
{
	char real[PATH_MAX];
	ssize_t n = file_path_of(fd, real);
	const char *copy = n < 0 ? NULL : arena_copy(&s->arena, real, (size_t)n);

	return copy ? copy : path;
}

static void contents_look_inside(struct check_bind *b, int fd, size_t *left_of_all)
{
	size_t left = *left_of_all < CHECK_MAX_ENTRIES ? *left_of_all : CHECK_MAX_ENTRIES;
	size_t most = left;
	bool is_whole = check_walk(fd, &left, check_inside, b);

	*left_of_all -= most - left;
	check_say_rest(b);
	if (!is_whole)
		diags_warn(&b->spec->diags, b->item->at, "bind only what is needed",
			"binds: %s is too large to look at whole: looked at the first %zu entries "
			"only, down to %u levels",
			check_shown(b->spec, b->item->bind.from), most - left, CHECK_MAX_DEPTH);
	if (b->is_capped)
		diags_warn(&b->spec->diags, b->item->at, "bind only what is needed",
			"binds: %s has more .pth and git files than are read: some were passed "
			"over",
			check_shown(b->spec, b->item->bind.from));
}

static void check_bind_of(
	struct spec *s, const struct spec_item *item, const char *path, size_t *left_of_all)
{
	own_fd int fd = file_open(path, O_PATH);
	own(check_bind) struct check_bind b = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (!check_bind_init(&b, s, item, real_path(s, fd, path))) {
		diags_error(&s->diags, item->at, NULL, "binds: not enough memory to check them");
		return;
	}
	check_source_itself(&b, st.st_mode & S_IFMT);
	if (S_ISDIR(st.st_mode) && *left_of_all)
		contents_look_inside(&b, fd, left_of_all);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the bind's done frees it */
}

void check_contents(struct spec *s, const struct check_places *places)
{
	const struct spec_value *binds = spec_list(s, SPEC_BINDS);
	const char **paths = arena_array(&s->arena, binds->count, sizeof(const char *));
	size_t left = MAX_ALL_ENTRIES;
	bool is_said = false;

	if (!paths) {
		diags_error(&s->diags, binds->at, NULL, "binds: not enough memory to check them");
		return;
	}
	/* Errors first: only so many diagnostics are kept. */
	for (size_t i = 0; i < binds->count; i++) {
		const char *path = contents_locate(s, places, &binds->items[i]);
		own_fd int fd = path ? contents_open_source(s, &binds->items[i], path) : -1;

		paths[i] = fd < 0 ? NULL : path;
	}
	for (size_t i = 0; i < binds->count; i++) {
		if (paths[i])
			check_bind_of(s, &binds->items[i], paths[i], &left);
		if (!left && !is_said)
			diags_warn(&s->diags, binds->items[i].at, "bind only what is needed",
				"binds: together they hold more than the %zu entries that are "
				"looked at: what is after this one was not looked into",
				MAX_ALL_ENTRIES);
		is_said = !left;
	}
}
