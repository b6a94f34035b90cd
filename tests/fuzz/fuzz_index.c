/* Two of git's index files, of which the first two bytes say where they are parted. */
#include "change/git/change_git.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t first;
	char *a, *b;
	bool is_same;

	if (size < 2)
		return 0;
	first = (size_t)data[0] << 8 | data[1];
	data += 2;
	size -= 2;
	if (first > size)
		first = size;
	/* Each in memory of its own, so that a byte too much is seen. */
	a = fuzz_text(data, first);
	b = fuzz_text(data + first, size - first);
	is_same = change_git_index_is_same(a, first, b, size - first);
	if (is_same != change_git_index_is_same(b, size - first, a, first))
		abort();
	if (is_same && !change_git_index_is_same(a, first, a, first))
		abort();
	free(a);
	free(b);
	return 0;
}
