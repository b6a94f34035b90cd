#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "spec/yaml.h"

/* JSON's grammar of numbers, which no YAML reader sees differently. */
static enum yaml_type classify_number(const char *p)
{
	enum yaml_type type = YAML_INT;

	p += *p == '-';
	if (!str_is_digit(*p) || (p[0] == '0' && str_is_digit(p[1])))
		return YAML_TEXT;
	p += strspn(p, "0123456789");
	if (*p == '.') {
		type = YAML_FLOAT;
		p++;
		if (!str_is_digit(*p))
			return YAML_TEXT;
		p += strspn(p, "0123456789");
	}
	if (*p == 'e' || *p == 'E') {
		type = YAML_FLOAT;
		p++;
		p += *p == '+' || *p == '-';
		if (!str_is_digit(*p))
			return YAML_TEXT;
		p += strspn(p, "0123456789");
	}
	return *p ? YAML_TEXT : type;
}

enum yaml_type yaml_type_of(const char *text)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

	for (size_t i = 0; i < COUNT_OF(nulls); i++)
		if (str_eq(text, nulls[i]))
			return YAML_NULL;
	if (str_eq(text, "true") || str_eq(text, "false"))
		return YAML_BOOL;
	return classify_number(text);
}

const char *yaml_describe(const struct yaml_node *node)
{
	static const char *const types[] = {
		[YAML_TEXT] = "text",
		[YAML_NULL] = "nothing",
		[YAML_BOOL] = "true or false",
		[YAML_INT] = "a number",
		[YAML_FLOAT] = "a number with a point",
	};

	if (node->kind == YAML_LIST)
		return "a list";
	if (node->kind == YAML_MAP)
		return "a map";
	return types[node->type];
}
