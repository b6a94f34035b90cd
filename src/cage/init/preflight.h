#pragma once

/* The exit codes of data/preflight.sh. */
enum preflight {
	PREFLIGHT_PASSED = 0,
	PREFLIGHT_ROOT = 11, /* root in the cage would be root outside */
	PREFLIGHT_HOME = 12, /* the home is not the cage's own */
};

/* Carries out data/preflight.sh with `home` as $HOME, "" for none, and returns its exit code. */
enum preflight preflight_run(const char *home);
