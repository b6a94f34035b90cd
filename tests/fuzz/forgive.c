/*
 * What LeakSanitizer finds and we cannot mend: libfyaml 0.7.12 forgets a buffer when a scalar in
 * single quotes has many escaped quotes in a row.
 */

/* The names of the sanitizers' own functions are theirs. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:fy_atom_iter_grow_chunk\n";
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
