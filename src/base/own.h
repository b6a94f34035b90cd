#pragma once

/*
 * Ownership by scope: a variable marked own_… is released at the end of its scope, unless take_fd
 * or take_ptr has moved its value out. It must be initialised where it is declared.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void own_free_(void *p)
{
	free(*(void **)p);
}

static inline void own_fd_(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void own_dir_(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define own_free __attribute__((cleanup(own_free_)))
#define own_fd   __attribute__((cleanup(own_fd_)))
#define own_dir  __attribute__((cleanup(own_dir_)))

/* own(buf) struct buf b = …; calls buf_done(&b). */
#define own(type) __attribute__((cleanup(type##_done)))

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define take_ptr(p)                                                                                \
	__extension__({                                                                            \
		__auto_type taken_ = (p);                                                          \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})
