/* Prints metrics for tests/peers/metrics.py: "none" of a worker that has just begun, "some" of
 * another. */
#include "base/own.h"
#include "base/str.h"
#include "session/metrics/metrics.h"

int main(int argc, char **argv)
{
	own(buf) struct buf out = { .max = METRICS_MAX_SIZE };
	struct metrics m = { 0 };

	if (argc == 2 && str_eq(argv[1], "some")) {
		metrics_count_run(&m, metrics_result_of("exited"), 400000);
		metrics_count_run(&m, metrics_result_of("timed_out"), UINT64_MAX);
		m.sweeps = UINT64_MAX;
		m.sessions = 3;
	}
	metrics_print(&m, &out);
	return out.failed || fputs(buf_text(&out), stdout) < 0;
}
