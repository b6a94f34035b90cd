/* bawn(1): what is said of sessions. */
#include <stdio.h>

#include "gen_docs.h"

void gen_print_sessions(void)
{
	puts(".SH SESSIONS");
	gen_paragraph(
		"A session is a workspace that several commands share: what they write to the project, "
		"a home, a /tmp. bawn session create takes the spec and the options that bawn run takes, "
		"checks and plans them, and fixes them for all commands of the session; it prints the "
		"session's id. SESSION is an id, a name, or the beginning of an id. session exec runs a "
		"command in it, as bawn run does, and each has a record of its own. session diff, apply "
		"and discard are for what the session has written to the project so far, as they are for "
		"a run; bawn diff, apply and discard take a session too where a run is named. They work "
		"on it while nothing else does.");
	gen_paragraph(
		"A session whose last use is longer ago than session.ttl, or --ttl, is expired, and "
		"session sweep removes it: call it now and then, or let bawn worker do so. It prints how "
		"many were removed and how many could not be; one that could not never keeps the others, "
		"and the status is 1 then. session rm ends what runs in a session, and removes it. "
		"Records of its runs stay. list and show say of a session whether it is open, stopped, "
		"expired, being removed (removing), has lost its files (no folder), or has them in another "
		"root (elsewhere); show also takes the id of a queued run.");
	gen_paragraph(
		"Sessions are known in ~/.local/state/bawn/store.db, or in the store that BAWN_STORE names, "
		"and their files are in ~/.local/state/bawn/sessions, or below BAWN_SANDBOX_ROOT, which "
		"must be yours alone to write to.");
	puts(".SS Tools for an agent");
	gen_paragraph(
		"bawn mcp is a server of the Model Context Protocol on its standard streams, for an agent "
		"that runs on the host itself. Its tools bash, read, write, edit, glob and grep work in one "
		"session, which it makes as session create does, or which --session names; so a shell and a "
		"file tool meet the same wall. Each call is a run with a record of its own, whose id is in "
		"the result as bawn/run; what the wall refused is told in the result's text. When its input "
		"ends, what still runs is ended; a session of its own making is removed if it changed nothing "
		"in the project, and kept for session diff and apply if it did.");
}
