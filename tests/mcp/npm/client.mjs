// An official client against a server on standard streams.
//   client.mjs sdk|legacy|auto COMMAND ARGUMENT...      prints one object of JSON
// sdk is the client of the era of initialize; the others are modes of the one that came after it.
const [mode, command, ...args] = process.argv.slice(2);
const name = mode === "sdk" ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js"]
  : ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const { Client } = await import(name[0]);
const { StdioClientTransport } = await import(name[1]);

const client = new Client({ name: "test", version: "1" }, mode === "auto" ? { versionNegotiation: { mode } } : {});
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
const call = (name, given, options) => mode === "sdk" ? client.callTool({ name, arguments: given }, undefined, options)
  : client.callTool({ name, arguments: given }, options);
const said = {
  version: client.getNegotiatedProtocolVersion?.(),
  server: client.getServerVersion()?.name,
  capabilities: client.getServerCapabilities(),
  instructions: client.getInstructions(),
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  good: await call("bash", { command: "echo out; echo err >&2" }),
  bad: await call("bash", { command: "exit 7" }),
};
if (mode !== "auto")
  said.ping = await client.ping();
const ending = new AbortController();
const long = call("bash", { command: "sleep 300" }, { signal: ending.signal });
setTimeout(() => ending.abort("enough"), 300);
said.cancelled = await long.then(() => false, () => true);
said.unknown = await call("nothing", {}).then(() => null, (problem) => problem.code);
said.beside = (await Promise.all([1, 2, 3, 4].map((n) => call("bash", { command: `echo ${n}` }))))
  .map((result) => result.content[0].text);
await client.close();
console.log(JSON.stringify(said));
