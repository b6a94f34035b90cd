#pragma once

/* The part of classic BPF that filters are made of: checked as the kernel does, and interpreted. */
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "seccomp/filter.h"

static inline int bpf_is_jump(const struct sock_filter *s)
{
	return s->code == (BPF_JMP | BPF_JEQ | BPF_K) || s->code == (BPF_JMP | BPF_JGT | BPF_K) ||
	       s->code == (BPF_JMP | BPF_JGE | BPF_K);
}

/* Would the kernel take it? Jumps stay inside, loads are words of the data, the end is an answer.
 */
static inline int bpf_is_sound(const struct filter *f)
{
	if (f->count == 0 || f->count > BPF_MAXINSNS ||
		f->code[f->count - 1].code != (BPF_RET | BPF_K))
		return 0;
	for (unsigned i = 0; i < f->count; i++) {
		const struct sock_filter *s = &f->code[i];
		unsigned left = f->count - i - 1U;

		if (bpf_is_jump(s)                      ? s->jt >= left || s->jf >= left
			: s->code == (BPF_JMP | BPF_JA) ? s->k >= left
			: s->code == (BPF_LD | BPF_W | BPF_ABS)
				? s->k >= sizeof(struct seccomp_data) || s->k % 4
				: s->code != (BPF_RET | BPF_K) &&
					  s->code != (BPF_ALU | BPF_AND | BPF_K))
			return 0;
	}
	return 1;
}

/* The answer of a sound program; *steps says after how many instructions. */
static inline uint32_t bpf_run(
	const struct filter *f, const struct seccomp_data *data, unsigned *steps)
{
	uint32_t a = 0;

	*steps = 0;
	for (unsigned i = 0; i < f->count; i++) {
		const struct sock_filter *s = &f->code[i];

		++*steps;
		if (s->code == (BPF_RET | BPF_K))
			return s->k;
		if (s->code == (BPF_LD | BPF_W | BPF_ABS))
			memcpy(&a, (const char *)data + s->k, sizeof(a));
		else if (s->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= s->k;
		else if (s->code == (BPF_JMP | BPF_JA))
			i += s->k;
		else if (s->code == (BPF_JMP | BPF_JEQ | BPF_K))
			i += a == s->k ? s->jt : s->jf;
		else if (s->code == (BPF_JMP | BPF_JGT | BPF_K))
			i += a > s->k ? s->jt : s->jf;
		else if (s->code == (BPF_JMP | BPF_JGE | BPF_K))
			i += a >= s->k ? s->jt : s->jf;
		else
			abort();
	}
	abort();
}
