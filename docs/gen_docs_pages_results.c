/* Texts of the pages about what a run leaves: changes, events, records, cards, keys. */
#include "gen_docs.h"

#define CHOOSING                                                                                               \
	"Without RUN, the newest run of this project that still has changes is meant. The project is "         \
	"the current directory, or the nearest one above it in which a run was. RUN is an id, or its first 8 " \
	"or more characters. Paths are relative to the current directory; what follows -- is always a path. "

#define A_CHANGE "bawn run --quiet -- sh -c 'echo hello >notes.txt; echo \"int two;\" >src/parse.c'"

const struct gen_page gen_pages_results[] = {
	{ "prune",
		"bawn prune removes runs and files of the log of all runs that are above the operator's limits: keep_runs, "
		"keep_age and keep_size of a policy, or the options. The oldest go first. On a terminal it prints what would be "
		"removed, and removes it with --yes. bawn run does the same once in a while, after a run.\n\n"
		"Never removed are runs that go on, that have changes which were neither applied nor discarded, whose record is not "
		"signed yet, and those of a session that is there. --quiet does not name them.\n\n"
		"Rows of the store about queued runs go by the same limits, once their session is removed.\n\n"
		"Before anything is removed, a line in the log of all runs says so: an event of type pruned, with a signed in-toto "
		"statement whose subjects are the records that go, by name and SHA-256. bawn log --all checks it where the log "
		"begins behind files that were removed.",
		NULL, "bawn run --quiet --read-only -- true; bawn run --quiet --read-only -- true",
		{
			{ "See what the limits would remove", "bawn prune --dry-run", NULL },
			{ "Keep the hundred newest runs of the last month",
				"bawn prune --keep-runs 100 --keep-age 30d --yes", NULL },
			{ "Remove every run that nobody waits for",
				"bawn prune --keep-age 1s --yes", NULL },
		},
		"bawn-record(1) bawn-discard(1) bawn-log(1)" },
	{ "diff",
		"bawn diff prints what a run changed in the project, as a patch that git apply and patch -p1 accept. " CHOOSING
		"\n\n"
		"Lines that begin with # describe what a patch cannot: binary files by size and sha256, empty "
		"directories, attributes, special files, and files inside .git. Files that execute on the host by "
		"themselves, such as git hooks, come first. bawn says which files changed on the host since, and "
		"leaves out what is on the host already; --stat, --name-only and --json show everything that the run "
		"did. On a terminal the diff goes through PAGER, or less, and control characters are made visible.",
		NULL, A_CHANGE,
		{
			{ "Review the newest run", "bawn diff", NULL },
			{ "Summarise it, a line per file", "bawn diff --stat", NULL },
			{ "Review a part of it", "bawn diff src", NULL },
			{ "Give the paths to another program",
				"bawn diff --name-only -z | xargs -0 ls -d -- ; true", NULL },
		},
		"bawn-apply(1) bawn-discard(1) bawn-run(1) bawn-session(1)" },
	{ "apply",
		"bawn apply writes the changes of a run to the project. " CHOOSING "\n\n"
		"Each file is written beside the one it replaces and renamed: it arrives whole or not at all. Files that "
		"changed on the host since the run are left alone: --merge merges three ways, --force takes the run's "
		"version. Files that execute on the host by themselves (git hooks, .git/config, .envrc, settings of "
		"editors) are applied only if their path is named, or with --all. Device nodes, sockets, "
		"set-user-id bits, owners and git's locks are never applied.\n\n"
		"The status is 1 if something was left out. An interrupted apply is finished by the next one. When everything is "
		"applied, bawn removes the run's layer; what the run did stays known in effects.json.",
		NULL, A_CHANGE,
		{
			{ "See what would happen", "bawn apply --dry-run", NULL },
			{ "Apply a part", "bawn apply src", NULL },
			{ "Apply the rest", "bawn apply", NULL },
			{ "Apply an older run by its id, merging with your own edits",
				"bawn apply 20261115 --merge", "needs a run of that day" },
		},
		"bawn-diff(1) bawn-discard(1) bawn-run(1) bawn-session(1)" },
	{ "discard",
		"bawn discard throws away what a run wrote to the project. The project itself does not change; log and record "
		"of the run stay. " CHOOSING "\n\n"
		"On a terminal it asks first; --yes answers. Elsewhere it needs --yes where several runs wait and none is named.",
		NULL, A_CHANGE,
		{
			{ "Throw away the newest run's changes", "bawn discard", NULL },
			{ "Throw away those of all ended runs in this project",
				"bawn discard --all", NULL },
		},
		"bawn-diff(1) bawn-apply(1) bawn-run(1)" },
	{ "log",
		"bawn log prints the events of a run, a line each: time, type and what happened. Without RUN it is the newest "
		"run. Guarantees that hold are one line; --type guarantee prints each. --type, --since, --session and --lines choose among events. --all prints the log of all "
		"runs; with RUN, what that log says of it. --follow waits for more until the run ends; for all runs, "
		"until ^C.\n\n"
		"--denials prints what was denied, and ends with the options and the lines of a spec that would allow it. bawn "
		"sees the network and system calls that the filter refuses. It does not see files that are not there, or "
		"writes that a read-only mount refuses: these fail in the command as they would on any "
		"system.\n\n"
		"--json prints one object: version, run, outcome (null: unknown), going_on, events, chain "
		"(whole, torn or broken), and with --denials the entries as allow and host_ports. --format jsonl, "
		"cloudevents and ocsf print one object per event and line, also with --follow.\n\n"
		"Each line of a log contains the digest of the line before. If one does not fit, bawn says so, shows the "
		"rest, and the status is 1. An incomplete last line, which a power cut leaves, is no failure.\n\n"
		"# NOTES ON EVENTS\n\n"
		"syscall_denied names the call, its number and arguments, the program's own name for itself, its "
		"process on the host and how often; syscalls_untold counts those known by number only. The program's name is its own "
		"choice, so take it as a hint.\n\n"
		"net_failed was allowed, but could not be reached; name_denied was looked up, but never connected to; published "
		"came from the host into the cage. Network events have name, port, protocol, times, text and a reason; "
		"connections have bytes_out and bytes_in; a request that used a secret has its name.",
		gen_print_events,
		"bawn run --allow api.example.org:443 -- curl -s https://example.com || true",
		{
			{ "Show the newest run", "bawn log", NULL },
			{ "Find out why something was denied", "bawn log --denials", NULL },
			{ "Show all runs of the last hour", "bawn log --all --since 1h", NULL },
			{ "Follow a run that goes on", "bawn log --follow", NULL },
			{ "Export events as CloudEvents", "bawn log --format cloudevents", NULL },
		},
		"bawn-run(1) bawn-record(1) bawn-verify(1)" },
	{ "record",
		"Every run leaves a signed record. list prints the runs, the newest first: how each ended, how long it took, what it added (+), changed (~) and "
		"deleted (-) in the project, and its command. show prints what a record says; guarantees that hold are one "
		"line unless --all is given. export writes record, events, spec, plan and effects as one tar archive. Without RUN, show and "
		"export take the newest run.\n\n"
		"Spec and plan contain the whole command and the values of env.set: look before you pass an archive "
		"on. bawn verify says whether a record is good. If bawn itself was killed during a run, the next bawn "
		"signs the record, as interrupted.\n\n"
		"A record is about the run's effects. --subject of bawn run adds the digests of project files after the run; "
		"--digest-project adds a digest of the project before it.",
		NULL, "bawn run --quiet -- true",
		{
			{ "List the last five runs", "bawn record list -n 5", NULL },
			{ "Show the newest record", "bawn record show", NULL },
			{ "Pack everything about a run into one file",
				"bawn record export RUN -o run.tar", NULL },
		},
		"bawn-verify(1) bawn-key(1) bawn-log(1) bawn-run(1)" },
	{ "verify",
		"bawn verify checks a record, property by property: yes, no, not there (the file to compare with is missing) or "
		"not asked. The argument is a run, a file, a folder with a record, an archive of bawn record export, or - for standard input. The status is 1 if "
		"there is a no, or no record.\n\n"
		"Signatures come first: by the keys of --key or, without it, by yours, present and former. bawn believes nothing "
		"that none of them signed. Then it compares events, effects, spec and plan with the files beside the record, "
		"hashes image and overlay again where they lie, and checks that guarantees, provenance and outcome agree. It "
		"refuses relaxed runs, unless a policy accepts them.\n\n"
		"--same compares two records: the status is 0 if spec, plan, image and effects are known and the same. --attest "
		"prints the result as an in-toto Simple Verification Result, signed with your key, if nothing failed. --card FILE "
		"verifies an agent card too. --policy FILE names a YAML file with requirements.",
		gen_print_demands,
		"bawn run --quiet -- true; bawn key show --pem >bawn.pub; "
		"cp ~/.local/state/bawn/runs/RUN/*.json* .; printf 'version: 1\\nnetwork: none\\n' >policy.yaml",
		{
			{ "Verify a run of yours", "bawn verify RUN", NULL },
			{ "Verify a record that somebody sent, by their public key",
				"bawn verify --key bawn.pub --quick record.intoto.jsonl", NULL },
			{ "Require something of it", "bawn verify --policy policy.yaml RUN", NULL },
			{ "Write a signed statement of the result",
				"bawn verify --attest RUN >result.intoto.jsonl", NULL },
		},
		"bawn-record(1) bawn-key(1) bawn-card(1)" },
	{ "card",
		"bawn card prints an A2A agent card that says how a cage made from the spec would be isolated on this host. "
		"With RUN it says what was observed in that run, and names its record. Each mechanism is a value of "
		"the extension urn:bawn:isolation:v1; the level is hardened, or custom with the settings that make it so. The "
		"key of records signs the card. On a terminal the card is indented; --json prints one line.",
		NULL, "bawn run --quiet -- true",
		{
			{ "Print the card of this project's spec",
				"bawn card --url https://agent.example.org", NULL },
			{ "Print the card of a run", "bawn card RUN >card.json", NULL },
		},
		"bawn-verify(1) bawn-key(1)" },
	{ "key",
		"Your Ed25519 key signs records and cards. init creates it, in keys/signing.pem of the state folder, which no cage can "
		"be shown; bawn run does so if there is none. show prints its id, its path and the public half. Both halves are PEM "
		"files that openssl reads. The id is the SHA-256 of the public key's DER.\n\n"
		"init --new replaces the key. The public half of the former one stays in keys/former, so that its "
		"signatures can still be verified; the private half is removed. Whoever has read the private half can sign anything in "
		"your name: then replace it, and tell those who verify.",
		NULL, "bawn run --quiet -- true",
		{
			{ "Give the public key to those who verify",
				"bawn key show --pem >bawn.pub", NULL },
			{ "Replace the key", "bawn key init --new", NULL },
		},
		"bawn-verify(1) bawn-record(1)" },
	{ 0 },
};
