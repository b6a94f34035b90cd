#pragma once

#include "cli/cli.h"

/* bawn worker --list: who is connected to the store. cli_worker_list.c */
int worker_list(const struct cli *cli);
