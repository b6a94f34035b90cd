/*
 * check_inside - what hides in a bind (S-18), entry by entry.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: entries of a walk, which follows nothing.
 * Leaves:      warnings at the line of the bind.
 * Must not:    follow a symlink, open anything but regular files, read without bound, repeat the
 *              content of a file that may hold a secret.
 *
 * A bind can be read-only and still lead elsewhere: what is in it was made for the host, and is
 * read by programs in the cage.
 */
#include "check/check_inside.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git.h"
#include "plan/plan_root.h"

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

/* Where bin/python leads through links in bin; false where it is no link, or stays inside. */
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

/* In a repository: below .git, or below name.git, as bare ones are called. */
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

/* Has the operator acknowledged the source, or this below it? */
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

/* Is a part of the path, or its last part as a file, the name of credentials? */
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

bool check_inside(void *bind, const struct check_entry *entry)
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

void check_source_itself(struct check_bind *b, mode_t type)
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
