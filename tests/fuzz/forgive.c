/*
 * What LeakSanitizer finds and we cannot mend: libfyaml 0.7.12 forgets a buffer when a scalar in
 * single quotes has many escaped quotes in a row.
 */
const char *__lsan_default_suppressions(
	void); // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

const char *__lsan_default_suppressions(
	void) // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
{
	return "leak:fy_atom_iter_grow_chunk\n";
}
