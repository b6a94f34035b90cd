/*
 * gate_rules - the rules as the keeper left them: in memory that nobody can write to any more.
 *
 * Runs as: the gate and the dialer, first thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gate/gate.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static bool is_rule(const struct wire_rule *rule)
{
	return memchr(rule->name, '\0', sizeof(rule->name)) && rule->prefix <= 128 &&
	       rule->protocol <= WIRE_TCP && rule->port;
}

static bool is_secret(const struct wire_secret *s)
{
	return memchr(s->name, '\0', sizeof(s->name)) && memchr(s->host, '\0', sizeof(s->host)) &&
	       s->name[0] && s->host[0] && s->port;
}

/* True if `size` bytes hold all rules that are counted, and every text ends with NUL. */
static bool are_rules(const struct wire_rules *rules, uint64_t size)
{
	if (size < sizeof(*rules) || rules->rule_count > WIRE_MAX_RULES ||
		rules->publish_count > WIRE_MAX_PUBLISH || rules->secret_count > WIRE_MAX_SECRETS ||
		size < sizeof(*rules) + rules->rule_count * sizeof(rules->rules[0]))
		return false;
	for (uint32_t i = 0; i < rules->publish_count; i++)
		if (!memchr(rules->publish[i].address, '\0', sizeof(rules->publish[i].address)))
			return false;
	for (uint32_t i = 0; i < rules->secret_count; i++)
		if (!is_secret(&rules->secrets[i]))
			return false;
	for (uint32_t i = 0; i < rules->rule_count; i++)
		if (!is_rule(&rules->rules[i]))
			return false;
	return true;
}

const struct wire_rules *gate_map_rules(int fd, struct err *e)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *memory;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0) {
		err_set(e, ERR_SYS, EINVAL,
			"cannot use the rules of the network: they are not in sealed memory");
		return NULL;
	}
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (memory == MAP_FAILED) {
		err_sys(e, errno, "cannot map the rules of the network");
		return NULL;
	}
	if (!are_rules(memory, (uint64_t)st.st_size)) {
		munmap(memory, (size_t)st.st_size);
		err_set(e, ERR_SYS, EINVAL,
			"cannot use the rules of the network: they are incomplete");
		return NULL;
	}
	return memory;
}
