/* Bytes as YAML. What is read is a tree that keeps what yaml.h says of it. */
#include "base/own.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "spec/yaml.h"

static struct diags diags; /* too large for a stack */

static void check_text(const char *text)
{
	uint32_t c;

	for (size_t n = strlen(text), width; n; n -= width, text += width)
		if ((width = utf8_decode(text, n, &c)) == 0)
			abort();
}

static void check_node(const struct yaml_node *node, int depth, bool in_map)
{
	size_t count = 0;

	if (depth > YAML_MAX_DEPTH + 1 || node->at.line == 0 || (node->key != NULL) != in_map)
		abort();
	if (node->kind == YAML_SCALAR)
		check_text(node->text);
	if (node->key)
		check_text(node->key->text);
	for (const struct yaml_node *c = node->first; c; c = c->next, count++)
		check_node(c, depth + 1, node->kind == YAML_MAP);
	if (count != node->count)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	own(buf) struct buf out = { .max = (size_t)1 << 24 };
	const struct yaml_node *root;
	struct arena arena;

	arena_init(&arena, (size_t)64 << 20);
	diags_init(&diags, &arena);
	root = yaml_read(&arena, &diags, diags_add_source(&diags, "f", text, size), text, size);
	if (!root && diags.errors == 0)
		abort();
	if (root)
		check_node(root, 1, false);
	diags_print(&diags, &out, false);
	arena_done(&arena);
	free(text);
	return 0;
}
