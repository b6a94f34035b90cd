#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/count.h"
#include "base/own.h"
#include "seccomp/filter_rules.h"

bool filter_is_notifying(uint32_t action)
{
	uint32_t num = action & SECCOMP_RET_DATA;

	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
	       (num == EPERM || num == EACCES);
}

int filter_make_telling(const struct filter *plain, struct filter_made *ret)
{
	struct sock_filter *code = calloc(plain->count, sizeof(*code));

	if (!code)
		return -ENOMEM;
	memcpy(code, plain->code, plain->count * sizeof(*code));
	for (unsigned i = 0; i < plain->count; i++)
		if (code[i].code == (BPF_RET | BPF_K) && filter_is_notifying(code[i].k))
			code[i].k = SECCOMP_RET_USER_NOTIF;
	*ret = (struct filter_made){ code, plain->count };
	return 0;
}

/* Returns how many instructions a jump skips. */
static uint32_t distance(const struct sock_filter *s, uint32_t a)
{
	switch (BPF_OP(s->code)) {
	case BPF_JA:
		return s->k;
	case BPF_JEQ:
		return a == s->k ? s->jt : s->jf;
	case BPF_JGT:
		return a > s->k ? s->jt : s->jf;
	case BPF_JGE:
		return a >= s->k ? s->jt : s->jf;
	default:
		return UINT32_MAX; /* out of any program */
	}
}

uint32_t filter_answer(const struct filter *f, const struct seccomp_data *call)
{
	uint32_t a = 0;

	for (uint64_t i = 0; i < f->count; i++) {
		const struct sock_filter *s = &f->code[i];

		if (s->code == (BPF_RET | BPF_K))
			return s->k;
		if (s->code == (BPF_LD | BPF_W | BPF_ABS) && s->k <= sizeof(*call) - sizeof(a))
			memcpy(&a, (const char *)call + s->k, sizeof(a));
		else if (s->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= s->k;
		else if (BPF_CLASS(s->code) == BPF_JMP && BPF_SRC(s->code) == BPF_K)
			i += distance(s, a);
		else
			break;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

bool filter_allows(const struct filter *f, int number, const uint64_t arguments[static 6])
{
	struct seccomp_data call = { .nr = number, .arch = filter_arch_native()->audit };
	uint32_t action;

	memcpy(call.args, arguments, sizeof(call.args));
	action = filter_answer(f, &call);
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

void filter_name_call(uint32_t number, char ret[static FILTER_NAME_SIZE])
{
	own_free char *known =
		number <= INT32_MAX
			? seccomp_syscall_resolve_num_arch(filter_arch_native()->scmp, (int)number)
			: NULL;

	snprintf(ret, FILTER_NAME_SIZE, "call %u", number);
	if (known)
		snprintf(ret, FILTER_NAME_SIZE, "%s", known);
	for (size_t i = 0; !known && i < filter_new_call_count; i++)
		if (filter_new_calls[i].number == number)
			snprintf(ret, FILTER_NAME_SIZE, "%s", filter_new_calls[i].name);
}

/* --- writes --- */

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define WRITES (O_WRONLY | O_RDWR | O_TRUNC)

#define PATH(i)                                                                                    \
	{                                                                                          \
		-1, i                                                                              \
	}
#define AT(i)                                                                                      \
	{                                                                                          \
		i, (i) + 1                                                                         \
	}
#define NOWHERE                                                                                    \
	{                                                                                          \
		-1, -1                                                                             \
	}
#define BY(call, ...)                                                                              \
	{                                                                                          \
		.number = SYS_##call, .flags = -1, __VA_ARGS__                                     \
	}

static const struct filter_watched calls[] = {
#ifdef SYS_open
	{ .number = SYS_open, .flags = 1, .places = { PATH(0), NOWHERE } },
	BY(creat, .places = { PATH(0), NOWHERE }),
	BY(mkdir, .places = { PATH(0), NOWHERE }, .only_makes = true),
	BY(rmdir, .places = { PATH(0), NOWHERE }, .takes_away = true),
	BY(unlink, .places = { PATH(0), NOWHERE }),
	BY(rename, .places = { PATH(0), PATH(1) }, .takes_away = true),
	BY(link, .places = { PATH(0), PATH(1) }),
	BY(symlink, .places = { PATH(1), NOWHERE }, .only_makes = true),
	BY(mknod, .places = { PATH(0), NOWHERE }, .only_makes = true),
	BY(chmod, .places = { PATH(0), NOWHERE }),
	BY(chown, .places = { PATH(0), NOWHERE }),
	BY(lchown, .places = { PATH(0), NOWHERE }),
#endif
#ifdef SYS_renameat
	BY(renameat, .places = { AT(0), AT(2) }, .takes_away = true),
#endif
	{ .number = SYS_openat, .flags = 2, .places = { AT(0), NOWHERE } },
	BY(truncate, .places = { PATH(0), NOWHERE }),
	BY(mkdirat, .places = { AT(0), NOWHERE }, .only_makes = true),
	BY(unlinkat, .places = { AT(0), NOWHERE }, .takes_away = true),
	BY(renameat2, .places = { AT(0), AT(2) }, .takes_away = true),
	BY(linkat, .places = { AT(0), AT(2) }),
	BY(symlinkat, .places = { AT(1), NOWHERE }, .only_makes = true),
	BY(mknodat, .places = { AT(0), NOWHERE }, .only_makes = true),
	BY(fchmodat, .places = { AT(0), NOWHERE }),
	BY(fchmodat2, .places = { AT(0), NOWHERE }),
	BY(fchownat, .places = { AT(0), NOWHERE }),
};

#define CALLS     COUNT_OF(calls)
#define MAX_TAIL  (3 + 4 * CALLS + 2)
#define LOAD      (BPF_LD | BPF_W | BPF_ABS)
#define JUMP_EQ   (BPF_JMP | BPF_JEQ | BPF_K)
#define ANSWER    (BPF_RET | BPF_K)
#define MARK_PASS 254 /* filled in when the end is known */
#define MARK_TELL 255

_Static_assert(MAX_TAIL < MARK_PASS, "jumps within it are of eight bits");

const struct filter_watched *filter_find_watched(const struct seccomp_data *call)
{
	const struct filter_watched *w = calls, *end = calls + CALLS;

	if (call->arch != filter_arch_native()->audit)
		return NULL;
	while (w < end && w->number != (uint32_t)call->nr)
		w++;
	if (w == end || (w->flags >= 0 && !(call->args[w->flags] & WRITES)))
		return NULL;
	return w;
}

static uint8_t watch_settle(uint8_t jump, size_t at, size_t pass)
{
	if (jump == MARK_PASS)
		return (uint8_t)(pass - at - 1);
	return jump == MARK_TELL ? (uint8_t)(pass + 1 - at - 1) : jump;
}

/* Appends the test for watched calls, which allowed calls pass last. Returns its length. */
static size_t make_tail(struct sock_filter ret[static MAX_TAIL])
{
	struct sock_filter *s = ret;
	size_t pass;

	*s++ = (struct sock_filter){ LOAD, 0, 0, offsetof(struct seccomp_data, arch) };
	*s++ = (struct sock_filter){ JUMP_EQ, 0, MARK_PASS, filter_arch_native()->audit };
	*s++ = (struct sock_filter){ LOAD, 0, 0, offsetof(struct seccomp_data, nr) };
	for (const struct filter_watched *w = calls; w < calls + CALLS; w++) {
		if (w->flags < 0) {
			*s++ = (struct sock_filter){ JUMP_EQ, MARK_TELL, 0, w->number };
			continue;
		}
		*s++ = (struct sock_filter){ JUMP_EQ, 0, 3, w->number };
		*s++ = (struct sock_filter){ LOAD, 0, 0,
			(uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)w->flags };
		*s++ = (struct sock_filter){ BPF_ALU | BPF_AND | BPF_K, 0, 0, WRITES };
		*s++ = (struct sock_filter){ JUMP_EQ, MARK_PASS, MARK_TELL, 0 };
	}
	pass = (size_t)(s - ret);
	*s++ = (struct sock_filter){ ANSWER, 0, 0, SECCOMP_RET_ALLOW };
	*s++ = (struct sock_filter){ ANSWER, 0, 0, SECCOMP_RET_USER_NOTIF };
	for (size_t i = 0; i < pass; i++) {
		ret[i].jt = watch_settle(ret[i].jt, i, pass);
		ret[i].jf = watch_settle(ret[i].jf, i, pass);
	}
	return pass + 2;
}

int filter_watch_writes(struct filter_made *made)
{
	struct sock_filter tail[MAX_TAIL], *code;
	size_t n = make_tail(tail);

	if (made->count + n > FILTER_MAX_CODE)
		return -E2BIG;
	code = reallocarray(made->code, made->count + n, sizeof(*code));
	if (!code)
		return -ENOMEM;
	for (unsigned i = 0; i < made->count; i++)
		if (code[i].code == ANSWER && code[i].k == SECCOMP_RET_ALLOW)
			code[i] =
				(struct sock_filter){ BPF_JMP | BPF_JA, 0, 0, made->count - i - 1 };
	memcpy(code + made->count, tail, n * sizeof(*code));
	*made = (struct filter_made){ code, (unsigned short)(made->count + n) };
	return 0;
}
