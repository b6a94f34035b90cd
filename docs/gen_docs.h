#pragma once

/* What the pages share; all of it goes to standard output. */

/* Text for roff: a backslash, a hyphen and a leading point or quote mean something there. */
void gen_roff(const char *text);
void gen_paragraph(const char *text);
void gen_title(const char *page, const char *section, const char *name);

/* bawn(1). gen_docs_bawn.c */
void gen_print_bawn_1(void);

/* Its part about sessions. gen_docs_sessions.c */
void gen_print_sessions(void);
