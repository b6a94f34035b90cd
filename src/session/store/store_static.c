/*
 * For programs that are linked statically: SQLite could load extensions, which bawn never does and
 * such a program cannot. The linker puts this in dlopen's place.
 */
#include <stddef.h>

void *store_load_nothing(const char *name, int flags) __asm__("__wrap_dlopen");

void *store_load_nothing(const char *name, int flags)
{
	(void)name;
	(void)flags;
	return NULL;
}
