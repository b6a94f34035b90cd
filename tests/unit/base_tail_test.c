/* The end of a text: whatever the pieces it comes in, the last bytes are kept. */
#include "base/count.h"
#include "base/own.h"
#include "base/tail.h"
#include "check.h"

static void check_pieces(size_t max, size_t length, size_t piece)
{
	own(tail) struct tail t = { .max = max };
	own(buf) struct buf got = { .max = 4096 }, all = { .max = 4096 };
	size_t kept = length < max ? length : max;

	for (size_t i = 0; i < length; i++)
		buf_putc(&all, (char)('!' + i % 90));
	for (size_t at = 0; at < length; at += piece)
		tail_add(&t, all.data + at, length - at < piece ? length - at : piece);
	tail_print(&t, &got);
	CHECK(t.total == length && got.len == kept && !got.failed);
	CHECK(kept == 0 || memcmp(got.data, all.data + length - kept, kept) == 0);
}

int main(void)
{
	static const size_t lengths[] = { 0, 1, 6, 7, 8, 13, 14, 15, 100, 1000 };
	own(tail) struct tail none = { .max = 0 };
	own(buf) struct buf got = { .max = 16 };

	for (size_t i = 0; i < COUNT_OF(lengths); i++)
		for (size_t piece = 1; piece < 30; piece++)
			check_pieces(7, lengths[i], piece);
	tail_add(&none, "x", 1);
	tail_print(&none, &got);
	CHECK(none.total == 1 && got.len == 0);
	return check_report();
}
