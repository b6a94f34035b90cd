#include "vault/vault_http.h"

/*
 * Looking for the key by a sum over as many bytes as it has (Karp and Rabin), which costs the same
 * for every byte: how long it takes says nothing about how much of the key was met. Bytes are
 * compared only where the sums are equal, and that is where the key is.
 */

/* Any odd number that does not repeat itself would do. */
#define BASE 0x9e3779b97f4a7c15ULL

bool vault_is_of_key(char c)
{
	return c > 0x20 && c < 0x7f;
}

void vault_prepare_key(struct vault_secret *s)
{
	s->sum = 0;
	s->leaving = 1;
	for (size_t i = 0; i < s->key.n; i++) {
		s->sum = s->sum * BASE + (unsigned char)s->key.at[i];
		s->leaving *= BASE;
	}
}

bool vault_is_sought(const struct vault_secret *s)
{
	return s->key.n >= VAULT_MIN_SOUGHT;
}

/* The byte at `i` of both, one behind the other. */
static char byte_at(struct gate_span before, struct gate_span bytes, size_t i)
{
	return i < before.n ? before.at[i] : bytes.at[i - before.n];
}

/* Do they have the key, up to `end`? */
static bool seek_is_key(
	const struct vault_secret *s, struct gate_span before, struct gate_span bytes, size_t end)
{
	for (size_t i = 0; i < s->key.n; i++)
		if (byte_at(before, bytes, end - s->key.n + i) != s->key.at[i])
			return false;
	return true;
}

size_t vault_seek(struct vault_seek *k, const struct vault_secret *s, struct gate_span before,
	struct gate_span bytes)
{
	const size_t n = s->key.n;

	if (!vault_is_sought(s))
		return 0;
	for (size_t i = 0; i < bytes.n; i++) {
		if (!vault_is_of_key(bytes.at[i])) {
			*k = (struct vault_seek){ 0 };
			continue;
		}
		k->sum = k->sum * BASE + (unsigned char)bytes.at[i];
		if (k->run == n)
			k->sum -= s->leaving *
				  (unsigned char)byte_at(before, bytes, before.n + i - n);
		else
			k->run++;
		if (k->run == n && k->sum == s->sum &&
			seek_is_key(s, before, bytes, before.n + i + 1))
			return i + 1;
	}
	return 0;
}
