#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "proof/record/record.h"
#include "seccomp/filter.h"

#define SENTENCE_SIZE 1024

/* --- what a call is refused for, in words that somebody can act on --- */

static const struct {
	const char *calls; /* with a blank before and behind each */
	const char *why;
	bool is_tried; /* programs ask for it, and do without: no news for the operator */
} reasons[] = {
	{ " chroot fsconfig fsmount fsopen fspick listmount mount mount_setattr move_mount "
	  "open_tree open_tree_attr pivot_root statmount umount2 ",
		"a cage has the tree of files that was planned and makes no other; what it is to "
		"see is declared in binds" },
	{ " clone unshare setns ",
		"there are no namespaces within a cage; a program that builds a sandbox of its own "
		"has to be told not to" },
	{ " add_key keyctl request_key ",
		"keys in the kernel are not the cage's own; secrets can be kept in files" },
	{ " bpf ", "a cage loads no programs into the kernel" },
	{ " io_uring_enter io_uring_register io_uring_setup ",
		"what is asked for by io_uring no filter sees; ordinary calls do the same", true },
	{ " seccomp ",
		"a filter within a cage has no listener, and with syscalls: strict there is none" },
	{ " ioctl ", "nobody types into a terminal (TIOCSTI) or changes its line discipline or the "
		     "console from a cage" },
	{ " chmod creat fchmod fchmodat fchmodat2 open openat ",
		"files get no set-user-id and no set-group-id bit in a cage; without them it works" },
	{ " mknod mknodat ",
		"there are no devices but those of /dev, and no set-user-id bits; pipes and "
		"sockets can be made" },
	{ " kcmp migrate_pages move_pages pidfd_getfd process_madvise process_vm_readv "
	  "process_vm_writev ptrace ",
		"a process does not look into another; debuggers need a profile of their own "
		"(syscalls: FILE)" },
	{ " fanotify_init fanotify_mark lookup_dcookie name_to_handle_at open_by_handle_at ",
		"files are reached by their paths alone", true },
	{ " acct adjtimex clock_adjtime clock_settime delete_module finit_module init_module "
	  "ioperm iopl kexec_file_load kexec_load quotactl quotactl_fd reboot setdomainname "
	  "sethostname settimeofday swapoff swapon syslog vhangup ",
		"it is about the whole machine, which is not the cage's" },
	{ " perf_event_open personality userfaultfd ",
		"attacks on the kernel like it, and few other programs need it; a profile of your "
		"own can allow it (syscalls: FILE)",
		true },
};

static size_t find_reason(const struct record_denial *d)
{
	char name[FILTER_NAME_SIZE], word[FILTER_NAME_SIZE + 2];
	size_t i = 0;

	filter_name_call(d->number, name);
	snprintf(word, sizeof(word), " %s ", name);
	while (i < COUNT_OF(reasons) && !strstr(reasons[i].calls, word))
		i++;
	return i;
}

bool record_is_tried_only(const struct record_denial *d)
{
	size_t i = find_reason(d);

	return !d->path[0] && i < COUNT_OF(reasons) && reasons[i].is_tried;
}

const char *record_denial_type(const struct record_denial *d)
{
	return d->path[0] ? RECORD_WRITE_DENIED : RECORD_DENIED;
}

static const char *error_name(const struct record_denial *d)
{
	const char *name = strerrorname_np(d->error);

	return name ? name : "an error";
}

void record_say_denial(const struct record_denial *d, char *ret, size_t size)
{
	size_t i = find_reason(d);
	char name[FILTER_NAME_SIZE];

	filter_name_call(d->number, name);
	if (d->path[0]) {
		snprintf(ret, size, "a write to '%s'%s%s was refused (%s): it is protected",
			d->path, d->program[0] ? " by " : "", d->program, name);
		return;
	}
	snprintf(ret, size, "%s%s%s was refused with %s: %s", name, d->program[0] ? " by " : "",
		d->program, error_name(d),
		i < COUNT_OF(reasons) ? reasons[i].why
				      : "the profile of system calls does without it");
}

/* --- rows --- */

struct record_denial *record_count_denial(
	struct record *r, const struct record_denial *d, bool *ret_is_new)
{
	struct record_denial *row = r->denials, *end = row + r->denial_count;
	char program[RECORD_PROGRAM_SIZE];
	unsigned known = 0, writes = 0;
	bool is_full;

	*ret_is_new = false;
	snprintf(program, sizeof(program), "%s", d->program);
	for (; row < end; row++) {
		writes += row->path[0] != '\0';
		if (row->number != d->number || row->error != d->error ||
			!str_eq(row->path, d->path))
			continue;
		known += row->program[0] != '\0';
		if (str_eq(row->program, program))
			break;
	}
	/* A name is cheap: whoever has many must not take the room of other calls. */
	if (row == end && known >= RECORD_DENIAL_PROGRAMS && program[0]) {
		struct record_denial anyone = *d;

		anyone.program[0] = '\0';
		return record_count_denial(r, &anyone, ret_is_new);
	}
	is_full = r->denial_count == RECORD_MAX_DENIALS ||
		  (d->path[0] && writes >= RECORD_MAX_WRITES);
	if (row == end && is_full) {
		r->denials_untold++;
		return NULL;
	}
	if (row == end) {
		*row = *d;
		row->times = 0;
		r->denial_count++;
		*ret_is_new = true;
	}
	row->times++;
	return row;
}

/* --- JSON --- */

static void denied_print_count(struct json *j, uint64_t n)
{
	json_int(j, "times", n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static void print_arguments(const struct record_denial *d, struct json *j)
{
	char word[24];

	json_open_list(j, "arguments");
	for (size_t i = 0; i < COUNT_OF(d->arguments); i++) {
		snprintf(word, sizeof(word), "0x%" PRIx64, d->arguments[i]);
		json_text(j, NULL, word);
	}
	json_close_list(j);
}

void record_print_denial(const struct record_denial *d, struct json *j)
{
	char text[SENTENCE_SIZE], name[FILTER_NAME_SIZE];

	filter_name_call(d->number, name);
	if (d->path[0])
		json_text(j, "path", d->path);
	json_text(j, "call", name);
	if (!d->path[0]) {
		json_int(j, "number", d->number);
		json_text(j, "error", error_name(d));
	}
	json_int(j, "pid", d->pid);
	json_text(j, "program", d->program[0] ? d->program : NULL);
	if (!d->path[0])
		print_arguments(d, j);
	denied_print_count(j, d->times);
	record_say_denial(d, text, sizeof(text));
	json_text(j, "text", text);
}

void record_print_denials_untold(const struct record *r, struct json *j)
{
	denied_print_count(j, r->denials_untold);
	json_text(j, "text", "system calls that were refused, of which only the number is known");
}

void record_print_denials(const struct record *r, struct json *j)
{
	for (size_t i = 0; i < r->denial_count; i++) {
		json_open_map(j, NULL);
		json_text(j, "type", record_denial_type(&r->denials[i]));
		record_print_denial(&r->denials[i], j);
		json_close_map(j);
	}
	if (!r->denials_untold)
		return;
	json_open_map(j, NULL);
	json_text(j, "type", RECORD_UNTOLD);
	record_print_denials_untold(r, j);
	json_close_map(j);
}
