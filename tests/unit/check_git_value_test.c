#include "check/check_git.h"

#include "base/count.h"
#include "check.h"

/* All values of core.hooksPath, each ended with "|". */
static const char *values_of(const char *config)
{
	static char all[256];
	char value[16];
	struct check_git_values v;

	all[0] = '\0';
	check_git_values_init(&v, config, strlen(config));
	while (check_git_values_next(&v, "core", "hookspath", value, sizeof(value)))
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s|", value);
	return all;
}

int main(void)
{
	static const struct {
		const char *config, *values;
	} rows[] = {
		{ "", "" },
		{ "[core]\n\thooksPath = .githooks\n", ".githooks|" },
		{ "[core]\r\n\thooksPath = .githooks\r\n", ".githooks|" },
		{ "\xef\xbb\xbf[core]hooksPath=a", "a|" },
		{ "[CORE]\nHOOKSPATH=a\n[core]\nhookspath = b\n", "a|b|" },
		{ "hooksPath = a\n[other]\nhooksPath = b\n", "" },
		/* Subsections are others. */
		{ "[core \"x\"]\nhooksPath = a\n[core.y]\nhooksPath = b\n", "" },
		{ "[core \"a]\\\"b\"]\nhooksPath = a\n[core]\nhooksPath = b\n", "b|" },
		{ "[other \"x\"]\n[core]\nhooksPath = a\n", "a|" },
		/* Quotes, escapes and spaces. */
		{ "[core]\nhooksPath = \"a b\" c  \n", "a b c|" },
		{ "[core]\nhooksPath = \" a \"\n", " a |" },
		{ "[core]\nhooksPath =   a\\tb\\\\c\\\"d\n", "a\tb\\c\"d|" },
		{ "[core]\nhooksPath = a # b\nhooksPath = \"a#b\";c\n", "a|a#b|" },
		{ "[core]\nhooksPath = a\\\nb\n", "ab|" },
		{ "[core]\nhooksPath = a \\\n  b\nhooksPath = c", "a   b|c|" },
		/* Comments, and keys of other names. */
		{ "# x\n; y\n[core] # z\n; hooksPath = b\nhooks = c\nhooksPathX = d\n", "" },
		{ "[core]\nbare\nhooksPath\nhooksPath = a\n", "|a|" },
		{ "[core]\nhooksPath =\n", "|" },
		/* What does not fit is passed over. */
		{ "[core]\nhooksPath = 0123456789abcdef\nhooksPath = b\n", "b|" },
		{ "[core]\nhooksPath = 0123456789abcde\n", "0123456789abcde|" },
		/* What git refuses ends it. */
		{ "[core]\nhooksPath = a\n=\nhooksPath = b\n", "a|" },
		{ "[core]\nhooksPath = \"a\nhooksPath = b\n", "" },
		{ "[core]\nhooksPath = a\\x\nhooksPath = b\n", "" },
		{ "[core\nhooksPath = a\n", "" },
		{ "[core]\nhooksPath x\nhooksPath = b\n", "" },
		{ "[core]\n5 = x\nhooksPath = b\n", "" },
		{ "[core \"x", "" },
		{ "[core]\nhooksPath = a\\", "a|" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_equal(values_of(rows[i].config), rows[i].values, rows[i].config, (int)i);
	return check_report();
}
