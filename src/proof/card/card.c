#include "proof/card/card.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

void card_from_plan(
	const struct spec *s, const struct plan *p, const char *digest, struct card *ret)
{
	const struct plan_op *landlock = plan_find(p, PLAN_LANDLOCK, NULL);
	const struct plan_op *preflight = plan_find(p, PLAN_PREFLIGHT, NULL);

	*ret = (struct card){
		.spec = s,
		.url = CARD_URL,
		.engine = (enum spec_engine)p->engine,
		.is_hardened = p->is_hardened,
		.landlock_abi = landlock ? (int64_t)landlock->n : 0,
		.spec_digest = p->spec_digest,
		.plan_digest = digest,
		.preflight_digest = preflight ? plan_str(p, preflight->a) : NULL,
	};
	for (uint32_t i = 0; i < p->promise_count; i++) {
		const struct plan_promise *promise = &plan_promises(p)[i];

		ret->promises[promise->guarantee] = (struct card_promise){
			.need = (enum plan_need)promise->need,
			.holds = promise->is_given,
		};
	}
}

bool card_is_url(const char *url)
{
	const char *rest = str_starts(url, "https://")  ? url + strlen("https://")
			   : str_starts(url, "http://") ? url + strlen("http://")
							: "";

	if (!*rest || *rest == '/' || strlen(url) > 2048)
		return false;
	for (; *rest; rest++)
		if (*rest <= ' ' || *rest >= 0x7f || strchr("\"<>\\^`{|}", *rest))
			return false;
	return true;
}

static void print_list_of(struct json *j, const char *key, const char *const *texts, size_t n)
{
	json_open_list(j, key);
	for (size_t i = 0; i < n; i++)
		json_text(j, NULL, texts[i]);
	json_close_list(j);
}

static void print_skill(const struct card *c, struct json *j)
{
	static const char *const tags[] = { "sandbox", "commands" };
	const char *agent = spec_text(c->spec, SPEC_AGENT);

	json_open_list(j, "skills");
	json_open_map(j, NULL);
	json_text(j, "id", agent ? agent : "run");
	json_text(j, "name", agent ? agent : "Run a command");
	json_text(j, "description",
		agent ? "Hands a task to this agent, in a cage of its own."
		      : "Runs a command in a cage of its own, and answers with its output and what "
			"it did to the project.");
	print_list_of(j, "tags", tags, 2);
	json_close_map(j);
	json_close_list(j);
}

/* What A2A knows, and what is signed. Nothing is empty, null or a fraction: readers that leave
 * such out before they check a signature find what was signed. */
static void print_members(const struct card *c, struct json *j)
{
	static const char *const modes[] = { "text/plain", "application/json" };
	const char *name = spec_text(c->spec, SPEC_NAME);

	json_text(j, "name", name ? name : "bawn");
	json_text(j, "description",
		"Runs agents and commands in cages that the kernel enforces, and signs what was "
		"enforced.");
	json_text(j, "version", BAWN_VERSION);
	json_open_list(j, "supportedInterfaces");
	json_open_map(j, NULL);
	json_text(j, "url", c->url);
	json_text(j, "protocolBinding", "JSONRPC");
	json_text(j, "protocolVersion", "1.0");
	json_close_map(j);
	json_close_list(j);
	json_open_map(j, "capabilities");
	json_open_list(j, "extensions");
	json_open_map(j, NULL);
	json_text(j, "uri", CARD_EXTENSION);
	json_text(j, "description", "What every task is isolated by.");
	json_open_map(j, "params");
	card_print_isolation(c, j);
	json_close_map(j);
	json_close_map(j);
	json_close_list(j);
	json_close_map(j);
	print_list_of(j, "defaultInputModes", modes, 2);
	print_list_of(j, "defaultOutputModes", modes, 2);
	print_skill(c, j);
}

static int print_signatures(
	const struct card *c, const struct sign_key *key, struct json *j, struct err *e)
{
	own(buf) struct buf plain = { .max = CARD_MAX_SIZE }, canonical = { .max = CARD_MAX_SIZE };
	struct json to_sign;
	int r;

	json_init(&to_sign, &plain, 0);
	json_open_map(&to_sign, NULL);
	print_members(c, &to_sign);
	json_close_map(&to_sign);
	if (plain.failed)
		return err_set(e, ERR_SPEC, E2BIG,
			"cannot make the card: it would be larger than %zu MB",
			CARD_MAX_SIZE >> 20);
	r = card_canonicalize_signed(plain.data, plain.len, &canonical, e);
	if (r < 0)
		return r;
	json_open_list(j, "signatures");
	card_sign(key, &canonical, j);
	json_close_list(j);
	return 0;
}

int card_print(const struct card *c, const struct sign_key *key, int indent, struct buf *out,
	struct err *e)
{
	struct json j;
	int r;

	json_init(&j, out, indent);
	json_open_map(&j, NULL);
	print_members(c, &j);
	r = key ? print_signatures(c, key, &j, e) : 0;
	if (r < 0)
		return r;
	json_open_map(&j, CARD_LEGACY);
	card_print_legacy(c, &j);
	json_close_map(&j);
	json_close_map(&j);
	return out->failed ? err_set(e, ERR_SYS, ENOMEM, "cannot make the card: out of memory") : 0;
}
