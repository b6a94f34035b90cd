#pragma once

/* The number of elements of an array. A pointer in its place does not compile. */
#define COUNT_OF(array)                                                                            \
	(sizeof(array) / sizeof((array)[0]) +                                                      \
		0 * sizeof(char[1 - 2 * __builtin_types_compatible_p(                              \
						__typeof__(array), __typeof__(&(array)[0]))]))
