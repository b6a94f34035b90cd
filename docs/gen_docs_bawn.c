/* bawn(1): the commands and options from their tables, and what is said of runs, records and keys.
 */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "gen_docs.h"
#include "log/log_event.h"
#include "verify/verify_policy.h"
#include "wire/wire_gate.h"

static void options(const struct cli_option *o)
{
	for (; o->name; o++) {
		puts(".TP");
		if (o->letter)
			printf("\\fB\\-%c\\fR, ", o->letter);
		fputs("\\fB\\-\\-", stdout);
		gen_roff(o->name);
		fputs("\\fR", stdout);
		if (o->argument) {
			fputs(" \\fI", stdout);
			gen_roff(o->argument);
			fputs("\\fR", stdout);
		}
		putchar('\n');
		gen_roff(o->help);
		puts(".");
	}
}

/* What a run does with terminals and limits. */
static void print_conduct(void)
{
	puts(".SH TERMINALS");
	gen_paragraph(
		"If standard input and output are terminals, the command gets a terminal of its "
		"own, and bawn passes keys, output and the window's size between the two: ^C and ^Z "
		"are the command's. A command that ^Z stops stops bawn and all of the cage with it, "
		"until fg. -t gives it one in any case, --no-tty pipes; standard error sent "
		"elsewhere stays apart. With pipes every byte passes as it is.");
	gen_paragraph(
		"On its way to a terminal of yours, what reaches out of the screen is dropped: the "
		"clipboard, reports of title and state, files, printing, the window, links that are "
		"no web pages, and whatever is not known. --raw passes everything. Modes that a "
		"program did not live to take back are taken back for it.");
	puts(".SH LIMITS");
	gen_paragraph(
		"memory, cpu and pids hold for all processes together, by a cgroup of the run's "
		"own; that takes a cgroup of yours to make it in. On a machine with systemd: "
		"systemd-run --user --scope -p Delegate=yes bawn run ... or a service with Delegate=yes. "
		"pids is also held by the user namespace alone. A limit that is declared and cannot be "
		"held is refused, and bawn doctor says what is missing; one that nobody declared is "
		"held where it can be.");
	gen_paragraph(
		"At the time limit the command gets SIGTERM, and SIGKILL 5 seconds later. Limits that "
		"were reached are told at the end, in the record and on --status-fd. What output does "
		"when it is reached is for limits.output_then to say.");
	puts(".SH OVERLAYS");
	gen_paragraph(
		"What is written to the root vanishes with the run, unless root.overlay names a "
		"folder in which it is kept for the next one. bawn overlay init makes it, and so does a "
		"run if root.overlay_size is set; reset empties it; prune removes what killed runs left "
		"of trees they were saving; digest prints what stands in records as sha256_before and "
		"sha256_after. One run has an overlay at a time.");
	gen_paragraph(
		"While a run lasts, what is kept is in memory, in a file system of the overlay's size: "
		"it counts as limits.memory, not as limits.disk, and takes the time of a copy before and "
		"after. It is saved however the command ended, but not if it never ran, or if bawn itself "
		"is killed: then the overlay is as it was. Owners, access-control lists, set-user-id, "
		"sockets and devices are not kept; what its owner could not read is readable.");
}

/* What becomes of a captured project. */
static void print_changes(void)
{
	puts(".SH CHANGES TO THE PROJECT");
	gen_paragraph(
		"What a command writes to a captured project is kept in a layer of the run's own, and "
		"the project stays as it is until bawn apply. Without a RUN the newest run is meant "
		"that was in this project and still has changes; the project is the current directory, "
		"or the nearest one above in which a run was. RUN may be shortened as far as it stays "
		"unique, to 8 characters at least. Paths are relative to the current directory; what "
		"follows -- are paths in any case.");
	gen_paragraph(
		"bawn diff prints what git apply and patch -p1 accept. Lines that begin with # tell "
		"what these have no word for: binary files by size and sha256, empty directories, "
		"attributes, special files, and whatever is inside a .git, which git would refuse; what "
		"git keeps there for itself is summed up unless a path of it is named. First comes what "
		"runs on the host, such as git hooks. What has changed on the host since is said, and "
		"shown against what it was; what is on the host already is left out, though --stat, "
		"--name-only and --json tell all that the run did. On a terminal it is shown by PAGER, "
		"or less, and characters that a terminal would obey are made visible. A file that "
		"becomes a directory, or the reverse, is too much for patch.");
	gen_paragraph(
		"bawn apply writes each file beside the one it replaces, and renames it. What has "
		"changed on the host since is left alone, unless --merge or --force is given. What runs "
		"on the host without being called is held back, unless its path is named or --all is "
		"given. Device nodes, sockets, set-user-id bits, owners and locks of git are never "
		"taken. The status is 1 where something was left out. Interrupted, it is finished by "
		"the next call; ^C ends it between two files. Once everything is applied the layer is "
		"removed; bawn discard removes it at once. What the run did stays known in "
		"effects.json.");
}

/* What records are signed with. */
static void print_keys(void)
{
	puts(".SH KEYS");
	gen_paragraph(
		"Records and cards are signed with an Ed25519 key of the operator's. bawn key init "
		"makes it, in keys/signing.pem of the state, where no cage can be shown it; "
		"bawn key show prints its id, where it is, and the public half, with --pem that "
		"alone: bawn key show --pem >bawn.pub is what others need to verify. Both "
		"are PEM as openssl reads it. The id is the SHA-256 of the public key's DER.");
	gen_paragraph(
		"bawn key init --new makes another in its place. Of the former one the public half "
		"stays, in keys/former, so that what it signed can still be verified; the private "
		"half is gone. Who has read the private half can sign anything in the "
		"operator's name: then make another, and tell those who verify.");
}

/* What is told to other agents. */
static void print_cards(void)
{
	puts(".SH CARDS");
	gen_paragraph(
		"bawn card prints an A2A agent card: what a cage made from the spec would be isolated "
		"by on this host. With a RUN, which may be shortened as for bawn diff, it is what was "
		"seen in that run, and names the record that says so. Each mechanism is a value of its "
		"own in the extension urn:bawn:isolation:v1; the level is hardened, or custom with the "
		"settings that make it so. The card is signed with the key of records, which is made "
		"where there is none. On a terminal it is indented; --json prints one line. --url is "
		"where agents reach this one; without it the card has an address of this machine.");
}

/* What is told of a run, and the words it is told in. */
static void print_events(void)
{
	puts(".SH EVENTS");
	gen_paragraph(
		"bawn log shows what happened in a run, a line for each event: when, its type, and "
		"what it was; without a RUN, in the newest of all. What is said again with a higher "
		"number is shown once. --all shows the log of all runs, with what concerns "
		"none of them; together with a RUN, what that log has of it, such as what was signed. "
		"--type, --since (a time, in UTC, or how long ago), --session "
		"(which looks in all runs) and --lines choose among them. --follow goes on with what "
		"happens, until the run ends; of all runs the last ten are shown first, if --lines "
		"does not say otherwise, and it ends with ^C.");
	gen_paragraph(
		"--denials shows what was denied, and ends with the entries that would allow it, for a "
		"command line and for a spec. A name that is denied is never connected to, so that its "
		"port is a guess. Nothing is offered where no entry helps, or only one that holds the "
		"destination to less.");
	gen_paragraph(
		"--json prints one object: version, run, outcome (null: none is known), going_on, "
		"events as the log has them, chain (whole, torn or broken), and with --denials the "
		"entries, as allow and host_ports. --format jsonl, cloudevents and ocsf print one "
		"object a line for every event, also with --follow: the lines of the log, CloudEvents "
		"1.0 and OCSF 1.8.0. In all forms, what a terminal would obey is escaped.");
	gen_paragraph(
		"Each line of a log has the digest of the one before. Where one does not fit, that is "
		"said, what follows is shown all the same, and the status is 1. A piece of a "
		"line at the end, which a power cut leaves, is said and is no failure. The format of "
		"logs is docs/format-events.md. The types are:");
	for (size_t i = 0; log_type_name(i); i++) {
		fputs(i ? ", " : "", stdout);
		gen_roff(log_type_name(i));
	}
	puts(".");
	gen_paragraph(
		"A system call that the filter refuses as forbidden (with EPERM or EACCES) is "
		"syscall_denied: the call, its number and arguments, the program as it calls itself, "
		"its process on the host, how often, and what the call is refused for; "
		"syscalls_untold are those that are known by their number only. Errors that say that "
		"something is not there are told nobody. What a program calls itself, and whether it "
		"hides a call behind a filter of its own, is its choice: this is a hint, and no call "
		"is let through for it.");
	gen_paragraph(
		"net_failed is what was allowed, and not reached; name_denied asked for, and never "
		"connected to; published from the host into the cage. Decisions about the network have "
		"name, port, protocol, times, text, a reason, and as address or other what that is "
		"about; if a secret was used, its name as secret; of connections that were made bytes_out and bytes_in, as the cage sees it. "
		"--status-fd has a line, with event instead of type, when one is new or has another "
		"count; if nobody reads, lines are left out. The reasons:");
	for (size_t i = 0; i < WIRE_REASON_COUNT; i++) {
		struct wire_decision d = {
			.reason = (uint8_t)i, .port = 443, .name = "HOST", .other = "OTHER"
		};
		char text[1024];

		wire_print_decision(&d, text, sizeof(text));
		printf(".TP\n.B %s\n", wire_reason_names[i]);
		gen_roff(text);
		putchar('\n');
	}
}

/* What a record can be made to tell, and runs repeated by it. */
static void print_records(void)
{
	puts(".SH RECORDS");
	gen_paragraph(
		"bawn record list prints the runs there are, the newest first, and how they ended; show "
		"what the record of one says, the newest of all without a RUN; export writes its record, "
		"events, spec, plan and effects as one tar archive. Spec and plan have the whole command "
		"and the values of env.set: look before you pass it on. Whether a record is good is for "
		"bawn verify to say. A run whose bawn was killed is signed, as interrupted, by the next "
		"run, or by any of these.");
	gen_paragraph(
		"The record of a run is about its effects and, with --subject, about files of the "
		"project as the run leaves them, whether it changed them or not: PATH is below the "
		"project. One that is not there then is said, and a status of 0 becomes 125. "
		"--digest-project puts on record what the whole project is before the run; what an image "
		"is always goes there. A large tree takes a while the first time, and is only looked at "
		"as long as nothing in it changes.");
	gen_paragraph(
		"bawn run --again RECORD repeats a run in a fresh cage: its command, with its spec. "
		"RECORD is a run, its folder, or the file of a record that has spec.json beside it. "
		"Nothing runs unless the record is signed with your key or one of --key, spec.json is "
		"that of the record, your policies allow it, and image, project and overlay have the "
		"digests they had, as far as the record has them; what is not known is said. As any file, "
		"a record may ask for what a project's own spec may, unless --trust makes it your word. "
		"The project is the current directory, or that of --project. Variables that env.pass "
		"names have the values of today.");
	gen_paragraph(
		"Afterwards it is told whether effects, outcome, plan and filter are the same, and up to "
		"20 paths that differ; the new record has it as again. The status is the command's own; "
		"with --same it is 0 if outcome and effects are known to be the same, and 1 if not. "
		"Effects have no times in them, but whatever a command makes of time or chance differs.");
}

/* What is queued, and who does it. */
static void print_workers(void)
{
	puts(".SH WORKERS");
	gen_paragraph(
		"bawn session exec --queue leaves a run to a worker: any process of bawn worker that has "
		"the same store, which BAWN_STORE names for both. It prints the run's id, by which bawn "
		"session wait prints what the run printed, once that has ended, and returns its status; "
		"--wait does so at once. Runs of one session are done one after the other. Arguments and "
		"the end of what is printed are in the store as they are.");
	gen_paragraph(
		"A worker has a lease on every session that it works in. What it does not report in time "
		"is lost, and never done a second time; what it reports too late is refused. At SIGTERM "
		"it finishes what it began, for as long as --drain says.");
}

/* How records are judged, and what can be demanded of them. */
static void print_verify(void)
{
	puts(".SH VERIFYING");
	gen_paragraph(
		"bawn verify says of a record, property by property, whether it is so: yes, no, not "
		"there (what it would be checked against is missing) or not asked. The status is 1 "
		"where there is a no, or no record. Signatures come first, by the keys of --key or, "
		"without it, by yours, present and former; of what none of them signed nothing is "
		"believed. Then events, effects, spec and plan are held to the files beside the record, "
		"image and overlay are hashed again where they lie, and guarantees, provenance and "
		"outcome must agree with each other. A run that was relaxed is refused, unless a policy "
		"takes it.");
	gen_paragraph(
		"--same compares two records: 0 where spec, plan, image and effects are known and the "
		"same. --attest prints the result as an in-toto Simple Verification Result, signed with "
		"your key, if nothing failed. --card FILE looks at an agent card as well, or without a "
		"record at it alone: is it signed, does it name this record, does it say the same? "
		"--policy names a YAML file of what else must be so; "
		"'version: 1' and any of these, of which most take a list as well:");
	for (size_t i = 0; i < VERIFY_DEMAND_COUNT; i++) {
		const struct verify_demand_def *d = &verify_demand_defs[i];

		puts(".TP");
		fputs("\\fB", stdout);
		gen_roff(d->key);
		fputs("\\fR", stdout);
		if (d->example) {
			fputs(", such as ", stdout);
			gen_roff(d->example);
		}
		putchar('\n');
		gen_roff(d->help);
		putchar('\n');
	}
}

/* What bawn gives back, and what it reads and leaves. */
static void print_surroundings(void)
{
	puts(".SH EXIT STATUS");
	gen_paragraph(
		"Of bawn run: the command's own; 128+n if signal n ended it; 124 at the time "
		"limit; 125 where bawn refused or failed, and then the command never ran, or was "
		"stopped; 126 if the command cannot be executed; 127 if there is none. "
		"--status-fd tells a 125 of the command from bawn's own. With --same: see RECORDS.");
	gen_paragraph(
		"Of the others: 0; 1 for a negative answer (check found errors, the plan was "
		"refused, the doctor sees no hardened cage, a path was not changed or not applied, a "
		"record is not good); 2 for wrong use; 125 where bawn "
		"itself failed.");
	puts(".SH ENVIRONMENT");
	gen_paragraph(
		"HOME is what ~ means. XDG_CONFIG_HOME replaces ~/.config, and XDG_STATE_HOME "
		"~/.local/state or root's /var/lib. NO_COLOR switches "
		"colours off. PAGER shows diffs, by its words and without a shell; LESS is FRX for "
		"it unless it is set.");
	gen_paragraph(
		"Services may say by variables what else is said by options, to bawn session create and "
		"bawn worker; bawn run does not read them. They count as options do: the policies hold "
		"for them, and an option that is given wins. An empty one says nothing; one that begins "
		"with BAWN_SANDBOX_ and is none of these is refused.");
	for (const struct cli_setting *x = cli_settings; x->option.name; x++) {
		fputs(".TP\n\\fB", stdout);
		gen_roff(x->option.name);
		printf("\\fR \\fI%s\\fR\n", x->option.argument);
		gen_roff(x->option.help);
		puts(".");
	}
	puts(".SH FILES");
	gen_paragraph(
		"bawn.yaml in the current directory: the project's spec. "
		"~/.config/bawn/policy.yaml and /etc/bawn/policy.yaml: the operator's policy; "
		"each must belong to its user or to root and be writable by nobody else. "
		"~/.local/state/bawn/keys, for root /var/lib/bawn/keys: the signing key. "
		"~/.local/state/bawn/runs, for root /var/lib/bawn/runs: a folder per run, with "
		"its record.intoto.jsonl, events.jsonl, spec.json, plan.json, effects.json and, "
		"until it is applied or discarded, what it wrote to the project. Beside runs: "
		"keys, log (of all runs), unsigned (runs that have no record yet) and digests (of "
		"trees, which may be removed).");
}

static void print_synopsis(const struct cli_command *table)
{
	for (const struct cli_command *c = table; c->name; c++) {
		if (c->subcommands) {
			print_synopsis(c->subcommands);
			continue;
		}
		printf(".B bawn %s\n", c->name);
		gen_roff(c->usage);
		puts("\n.br");
	}
}

static void print_commands(const struct cli_command *table)
{
	for (const struct cli_command *c = table; c->name; c++) {
		if (c->subcommands) {
			print_commands(c->subcommands);
			continue;
		}
		printf(".SS bawn %s\n", c->name);
		gen_roff(c->help);
		puts(".");
		if (c->options)
			options(c->options);
	}
}

void gen_print_bawn_1(void)
{
	gen_title("BAWN", "1", "bawn - puts a wall around an AI agent, or any command");
	puts(".SH SYNOPSIS");
	print_synopsis(cli_commands);
	puts(".SH DESCRIPTION");
	gen_roff(
		"The operator declares the wall in one YAML file, described in bawn.yaml(5); without "
		"one, the current directory is caged with the hardened defaults. The kernel enforces "
		"the wall, and before the command runs it is looked at from outside.\n");
	print_commands(cli_commands);
	puts(".SH COMMON OPTIONS");
	options(cli_common_options);
	puts(".SH OPTIONS OF A SPEC");
	gen_paragraph(
		"They override the spec one by one; those of a list add to it. What follows -- "
		"is the command.");
	options(cli_spec_options);
	print_conduct();
	print_changes();
	print_events();
	print_keys();
	print_cards();
	print_workers();
	print_records();
	gen_print_sessions();
	print_verify();
	print_surroundings();
	puts(".SH SEE ALSO\n.BR bawn.yaml (5)");
}
