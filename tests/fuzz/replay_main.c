/*
 * Runs every file of the given directories through a fuzz target, without libFuzzer: what was
 * found once is tried by every build.
 */
#include <stdbool.h>
#include <stdio.h>

#include "base/file.h"
#include "base/own.h"
#include "fuzz.h"

static bool replay(const char *dir, const char *name)
{
	own_free char *path = NULL, *bytes = NULL;
	size_t n = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return false;
	/* The last line of a run that ends here names the input. */
	printf("%s\n", path);
	fflush(stdout);
	if (file_read_path(path, (size_t)1 << 24, &bytes, &n) < 0)
		return false;
	return LLVMFuzzerTestOneInput((const uint8_t *)bytes, n) == 0;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent **names = NULL;
		int n = scandir(argv[i], &names, NULL, alphasort);

		failed += n < 0;
		for (int k = 0; k < n; k++) {
			if (names[k]->d_name[0] != '.') {
				bool is_good = replay(argv[i], names[k]->d_name);

				passed += is_good;
				failed += !is_good;
			}
			free(names[k]);
		}
		free(names);
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
