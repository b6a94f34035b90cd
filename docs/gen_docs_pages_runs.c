/* Texts of the pages about cages: what builds one, what is in it, who runs in it. */
#include "gen_docs.h"

#define NEEDS_CGROUP "needs a delegated cgroup, which a login by su does not have"
#define NEEDS_PERSON "needs a person at a terminal"

const struct gen_page gen_pages_runs[] = {
	{ "run",
		"bawn run builds a cage, checks it from outside, and runs the command in it. The command sees "
		"the system read-only, the project at /work, an empty home, a /tmp and no network. It sees "
		"none of your variables, files, processes or descriptors. The spec (bawn.yaml) and the options "
		"below declare what else it gets.\n\n"
		"What the command writes to the project stays in a layer of the run until you look at it with "
		"bawn diff and take it with bawn apply. When the command ends, everything that it started ends. "
		"Every run leaves a log and a signed record.\n\n"
		"# EXIT STATUS\n\n"
		"The command's own status; 128+n if signal n ended it; 124 at the time limit; 125 if bawn "
		"refused or failed, and then the command never ran, or was stopped; 126 if the command cannot be "
		"executed; 127 if it does not exist. --status-fd tells a 125 of the command from bawn's own. "
		"With --same: 0 if outcome and effects are the same, 1 if not.\n\n"
		"# FILES OF VARIABLES\n\n"
		"--env-file FILE reads one NAME=VALUE a line. All behind the = is the value as it stands: quotes are "
		"part of it, and $ and \\ mean nothing. A NAME alone passes your variable, as -e NAME does. Empty "
		"lines and lines that begin with # are skipped; export does not belong there.\n\n"
		"# TERMINALS\n\n"
		"If standard input and output are terminals, the command gets a terminal of its own, and bawn "
		"passes keys, output and the window's size between the two. ^C goes to the command. ^Z stops the "
		"cage and bawn until fg. -t always allocates a terminal, --no-tty never does. Standard error that is "
		"redirected stays apart. Through pipes, bawn passes every byte unchanged.\n\n"
		"bawn filters escape sequences on their way to your terminal: the clipboard, reports of title and "
		"state, files, printing, the window, links that are not web pages, and unknown sequences. --raw "
		"turns the filter off. bawn resets terminal modes that a program left set.\n\n"
		"# LIMITS\n\n"
		"memory, cpu and pids limit all processes of the run together, by a cgroup. That needs a cgroup "
		"of yours in which bawn may create one. With systemd: systemd-run --user --scope -p Delegate=yes "
		"bawn run ..., or a service with Delegate=yes. bawn doctor says what is missing. bawn refuses a "
		"declared limit that it cannot enforce; limits that nobody declared are enforced where possible.\n\n"
		"At the time limit the command gets SIGTERM, and SIGKILL 5 seconds later. bawn names each limit that "
		"was reached at the end, in the record and on --status-fd. limits.output_then chooses what happens "
		"when the output limit is reached.\n\n"
		"# REPEATING A RUN\n\n"
		"--again RECORD repeats the command of a record, with its spec, in a fresh cage. RECORD is a run, its "
		"folder, or the file of a record with spec.json beside it, as an export has it. bawn refuses unless your key or one of "
		"--key signed the record, spec.json is that of the record, your policies allow it, and image, project "
		"and overlay have the recorded digests. A record may ask for as much as a project's spec, unless you "
		"say --trust. Variables of env.pass have today's values. If an earlier bawn wrote the record, keys "
		"that came later have their defaults, and bawn says so.\n\n"
		"Afterwards bawn says whether effects, outcome, plan and filter are the same, and names up to 20 paths "
		"that differ. Effects contain no times, but output that depends on time or chance differs.\n\n"
		"# STATUS LINES\n\n"
		"--status-fd N writes the events of the run to descriptor N, one JSON object a line, with event in "
		"place of type. Lines are dropped if nobody reads them.",
		NULL, NULL,
		{
			{ "Run tests without network", "bawn run -- npm test", NULL },
			{ "Allow one destination",
				"bawn run --allow api.example.org:443 -- npm test", NULL },
			{ "Open port 3000 of the cage on 127.0.0.1:3000, and offer your port 5432 as bawn-host:5432",
				"bawn run --publish 3000:3000 --host-port 5432 -- npm test", NULL },
			{ "Run an agent; its key stays outside of the cage",
				"bawn run --agent claude --secret ANTHROPIC_API_KEY -- -p 'fix the parser'",
				NULL },
			{ "Limit time, processes, disk and output",
				"bawn run --time 10m --pids-limit 200 --disk 1G --output 10M -- npm test",
				NULL },
			{ "Limit memory and processors",
				"bawn run --memory 2G --cpus 1.5 -- npm test", NEEDS_CGROUP },
			{ "Show a folder of yours, read-only",
				"bawn run -v ~/lib:/opt/lib -- ls /opt/lib", NULL },
			{ "Let writes reach the project at once", "bawn run --write -- touch built",
				NULL },
			{ "Get a shell in a cage", "bawn run -- bash", NEEDS_PERSON },
			{ "Record a digest of the project too, so that others can repeat the run",
				"bawn run --digest-project -- true", NULL },
			{ "Repeat a run, and exit 1 if the results differ",
				"bawn run --again RUN --same", NULL },
		},
		"bawn-diff(1) bawn-apply(1) bawn-log(1) bawn-plan(1) bawn-doctor(1) bawn.yaml(5)" },
	{ "plan",
		"bawn plan reads the spec, the policies and the options as bawn run does, and prints the cage that "
		"they make on this host: each mount, variable, limit and system call filter, and each guarantee with "
		"what enforces it. It does nothing. The status is 1 if bawn run would refuse.",
		NULL, NULL,
		{
			{ "See what a run would be", "bawn plan -- npm test", NULL },
			{ "Compare two plans by digest",
				"bawn plan --digest --allow example.org:443 -- npm test", NULL },
			{ "Plan for another host",
				"bawn doctor --json >host.json; bawn plan --host host.json -- npm test",
				NULL },
		},
		"bawn-run(1) bawn-check(1) bawn-doctor(1) bawn.yaml(5)" },
	{ "check",
		"bawn check validates a spec and warns about what is valid and unwise: credentials that a bind "
		"would show, hooks in the project, variables that loaders obey. It prints every problem at once, "
		"with file, line and column. The status is 1 if there are errors.",
		NULL, "printf 'version: 1\\nlimits: { time: 30m }\\n' >bawn.yaml",
		{
			{ "Check bawn.yaml of this project", "bawn check", NULL },
			{ "Find out who set a value", "bawn check --explain network.allow", NULL },
			{ "Write a JSON Schema for an editor",
				"bawn check --schema >bawn.schema.json", NULL },
		},
		"bawn-plan(1) bawn-run(1) bawn.yaml(5)" },
	{ "doctor",
		"bawn doctor tries every mechanism that a cage needs, as you, and prints each guarantee with yes or no. "
		"For a no it names the reason and the remedy. The status is 1 if hardened cages are impossible.",
		NULL, NULL,
		{
			{ "See what this host can do", "bawn doctor", NULL },
			{ "Save it, to plan for this host elsewhere",
				"bawn doctor --json >host.json", NULL },
		},
		"bawn-plan(1) bawn-run(1)" },
	{ "overlay",
		"What a command writes outside of the project (its home, /opt, /srv, /var, /etc) vanishes with the run, unless "
		"root.overlay names a folder that keeps it for the next run. /usr is the host's own, and read-only. init creates "
		"the folder, and so does a run if root.overlay_size is set; reset empties it; prune removes what killed runs left half "
		"saved; digest prints the digest that records contain as sha256_before and sha256_after. One run uses an overlay at a "
		"time.\n\n"
		"During a run the overlay is in memory, in a file system of the overlay's size: it counts as limits.memory, not as "
		"limits.disk, and is copied before and after. bawn saves it however the command ended, but not if the command never "
		"ran, or if bawn itself is killed: then the overlay is unchanged. Owners, access-control lists, set-user-id bits, "
		"sockets and devices are not kept; files that their owner could not read become readable.",
		NULL, "mkdir -p ~/overlays",
		{
			{ "Create an overlay for 5 GB",
				"bawn overlay init ~/overlays/dev --size 5G", NULL },
			{ "Name it in a spec",
				"printf 'version: 1\\nroot: { overlay: ~/overlays/dev }\\n' >dev.yaml",
				NULL },
			{ "Keep what a run writes to its home",
				"bawn run --trust -f dev.yaml -- sh -c 'echo kept >~/file'", NULL },
			{ "Find it there in the next run",
				"bawn run --trust -f dev.yaml -- cat /home/agent/file", NULL },
			{ "Empty it", "bawn overlay reset ~/overlays/dev", NULL },
		},
		"bawn-run(1) bawn.yaml(5)" },
	{ "agent",
		"An agent's profile says how to find its program, which files, variables and hosts it needs, and where "
		"its state is. bawn run --agent NAME uses it. list prints the profiles; show prints one; forget removes "
		"the state (logins, conversations) that bawn keeps of one agent for this project, or of all with --all. "
		"It asks on a terminal; elsewhere one agent needs --yes.\n\n"
		"Profiles of your own are ~/.config/bawn/agents/NAME.yaml or /etc/bawn/agents/NAME.yaml.",
		NULL, NULL,
		{
			{ "List agents, and whether they are installed", "bawn agent list", NULL },
			{ "See what a profile declares", "bawn agent show claude", NULL },
		},
		"bawn-run(1) bawn-hook(1) bawn.yaml(5)" },
	{ "hook",
		"bawn hook is for agents inside a cage, which call it before each tool. It reads the agent's call from standard "
		"input and, if the call names a path that the cage does not show or does not let it write, answers with a denial that "
		"says why. It is a courtesy to the agent: the kernel enforces the cage. The profiles of agents configure it; a spec "
		"with tools: true has it as /run/bawn/bawn.",
		NULL, "printf 'version: 1\\ntools: true\\n' >tools.yaml",
		{ { "Ask as Claude Code would, about a file of the host",
			"echo '{\"hook_event_name\":\"PreToolUse\",\"cwd\":\"/work\",\"tool_name\":\"Read\",\"tool_input\":{\"file_path\":\"/root/key\"}}' | "
			"bawn run --trust -f tools.yaml -- /run/bawn/bawn hook claude",
			NULL } },
		"bawn-agent(1) bawn-run(1)" },
	{ "tool",
		"bawn tool is the file tools of bawn mcp as commands for use inside a cage. Each reads one JSON object with its "
		"arguments from standard input and prints the result. They decide nothing about access: the "
		"cage does.",
		NULL, "echo hello >notes.txt",
		{
			{ "Read a file as an agent would",
				"echo '{\"path\":\"notes.txt\"}' | bawn tool read", NULL },
			{ "Search", "echo '{\"pattern\":\"hello\"}' | bawn tool grep", NULL },
		},
		"bawn-mcp(1)" },
	{ "preflight",
		"bawn preflight prints the preflight: a shell script with two checks that every cage passes before its "
		"startup commands and its command. It is the same text everywhere, and its sha256 is in each plan, "
		"record and card. The cage's init, a program without a library, carries out what it says; nothing of "
		"the cage's files is used for it but /proc.\n\n"
		"It ends with 11 if root in the cage would be root outside, with 12 if HOME is not /home/agent, else "
		"with 0. A run whose preflight does not pass ends before anything of the user's is started.",
		NULL, NULL,
		{
			{ "Read the checks", "bawn preflight", NULL },
			{ "Carry them out by hand, here: it is 12 outside of a cage, and 11 for root",
				"bawn preflight | sh; echo $?", NULL },
			{ "Compare its digest with that of a record", "bawn preflight | sha256sum",
				NULL },
		},
		"bawn-verify(1) bawn-version(1)" },
	{ "version",
		"bawn version prints the version of bawn, and the digest of the preflight that it carries.",
		NULL, NULL, { { "Print the version", "bawn version", NULL } }, "bawn-doctor(1)" },
	{ 0 },
};
