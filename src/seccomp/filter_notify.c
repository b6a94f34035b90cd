#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* How many instructions a jump leaves out. */
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
