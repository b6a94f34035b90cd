// A model that says what a script tells it, in the four dialects the agents speak.
//
//     node fake-model.js FOLDER [PORT CERTIFICATE KEY]      prints "ready PORT"
//
// It listens on the loopback, at a port that is free; or by TLS, on all addresses, at the one that is named.
//
// FOLDER/script.json, read anew for every request: {"steps": [STEP…], "text": "what it says at the end"}. A step is
// {"shell": COMMAND}, or {"tool": NAME, "input": {…}} with a name the agent has. "answers" in it is what an account's
// other addresses answer, by a part of their path: {"/oauth/token": {…}}. FOLDER/requests.jsonl gets every request,
// whole: method, url, headers, body.
//
// It remembers nothing: how far the script has got is how many results of tools came after the person's last word,
// so an agent that asks again gets the same answer.
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const zlib = require('zlib');

const [folder, port, certificate, key] = process.argv.slice(2);
const EVENTS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
const JSONS = { 'content-type': 'application/json' };

function readScript() {
	return JSON.parse(fs.readFileSync(path.join(folder, 'script.json')));
}

function resultsSince(items, isPerson, results) {
	const start = items.findLastIndex(isPerson);
	return items.slice(start + 1).reduce((count, item) => count + results(item), 0);
}

function blocks(message) {
	return Array.isArray(message.content) ? message.content : [];
}

// What to answer: a tool to call, or a text. An agent's side errands (titles, summaries) bring no such tool.
function choose(tools, shell, done, serial) {
	const script = readScript();
	const step = script.steps[done];
	if (step && step.shell !== undefined) {
		const name = tools.find((tool) => tool in shell);
		if (name) return { name, input: shell[name](step.shell), id: `call_${serial}_${done}` };
	} else if (step && tools.includes(step.tool)) {
		return { name: step.tool, input: step.input, id: `call_${serial}_${done}` };
	}
	return { text: step ? `no tool for ${JSON.stringify(step)} among ${tools.join(' ')}` : script.text };
}

// --- Anthropic's messages ---

function anthropic(body, send) {
	const results = (message) => blocks(message).filter((block) => block.type === 'tool_result').length;
	const done = resultsSince(body.messages, (message) => message.role === 'user' && !results(message), results);
	const bash = (command) => ({ command, description: 'as scripted' });
	const shell = { Bash: bash, bash };
	const answer = choose((body.tools || []).map((tool) => tool.name), shell, done, body.messages.length);
	const block = answer.name
		? { type: 'tool_use', id: answer.id, name: answer.name, input: answer.input }
		: { type: 'text', text: answer.text };
	const stop_reason = answer.name ? 'tool_use' : 'end_turn';
	const message = { id: `msg_${body.messages.length}_${done}`, type: 'message', role: 'assistant', model: body.model,
		content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
	if (!body.stream) return send.json({ ...message, content: [block], stop_reason });
	const delta = answer.name
		? { type: 'input_json_delta', partial_json: JSON.stringify(answer.input) }
		: { type: 'text_delta', text: answer.text };
	const empty = answer.name ? { ...block, input: {} } : { ...block, text: '' };
	return send.events([
		{ type: 'message_start', message },
		{ type: 'content_block_start', index: 0, content_block: empty },
		{ type: 'content_block_delta', index: 0, delta },
		{ type: 'content_block_stop', index: 0 },
		{ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } },
		{ type: 'message_stop' },
	]);
}

// --- OpenAI's responses ---

// Tools come in the request, in a namespace there, or as an item of the conversation.
function offered(body) {
	const added = body.input.filter((item) => item.type === 'additional_tools').flatMap((item) => item.tools);
	const within = (space) => space.tools.map((tool) => ({ ...tool, namespace: space.name }));
	const flat = (tool) => (tool.type === 'namespace' ? within(tool) : [tool]);
	return [...(body.tools || []), ...added].flatMap(flat);
}

function responses(body, send) {
	const isPerson = (item) => item.type === 'message' && item.role === 'user';
	const done = resultsSince(body.input, isPerson, (item) => (/call_output$/.test(item.type) ? 1 : 0));
	const shell = {
		exec_command: (cmd) => ({ cmd }),
		shell_command: (command) => ({ command }),
		bash: (command) => ({ command, description: 'as scripted' }),
		exec: (cmd) => ({ text: `text(JSON.stringify(await tools.exec_command(${JSON.stringify({ cmd })})))` }),
	};
	const tools = offered(body);
	const answer = choose(tools.map((tool) => tool.name), shell, done, body.input.length);
	const tool = tools.find((one) => one.name === answer.name) || {};
	const custom = tool.type === 'custom';
	const call = { call_id: answer.id, name: answer.name };
	if (/^mcp__/.test(tool.namespace)) call.namespace = tool.namespace;
	let item = { type: 'message', id: `m_${body.input.length}`, role: 'assistant',
		content: [{ type: 'output_text', text: answer.text, annotations: [] }] };
	if (answer.name && custom) item = { type: 'custom_tool_call', id: `ct_${answer.id}`, ...call };
	else if (answer.name) item = { type: 'function_call', id: `fc_${answer.id}`, ...call };
	item.status = 'completed';
	if (answer.name && custom) item.input = answer.input.text;
	else if (answer.name) item.arguments = JSON.stringify(answer.input);
	const response = { id: `resp_${body.input.length}`, object: 'response', created_at: 1, model: body.model,
		status: 'in_progress', output: [] };
	const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 },
		output_tokens_details: { reasoning_tokens: 0 } };
	const said = { type: 'response.output_text.delta', item_id: item.id, output_index: 0, content_index: 0, delta: answer.text };
	return send.events([
		{ type: 'response.created', response },
		{ type: 'response.output_item.added', output_index: 0, item },
		...(answer.name ? [] : [said]),
		{ type: 'response.output_item.done', output_index: 0, item },
		{ type: 'response.completed', response: { ...response, status: 'completed', output: [item], usage } },
	]);
}

// --- OpenAI's chat completions ---

function completions(body, send) {
	const isPerson = (message) => message.role === 'user';
	const done = resultsSince(body.messages, isPerson, (message) => (message.role === 'tool' ? 1 : 0));
	const shell = { bash: (command) => ({ command, description: 'as scripted' }) };
	const tools = (body.tools || []).map((tool) => tool.function.name);
	const answer = choose(tools, shell, done, body.messages.length);
	const call = { index: 0, id: answer.id, type: 'function',
		function: { name: answer.name, arguments: JSON.stringify(answer.input) } };
	const delta = { role: 'assistant', ...(answer.name ? { tool_calls: [call] } : { content: answer.text }) };
	const chunk = { id: `chat_${body.messages.length}`, object: 'chat.completion.chunk', created: 1, model: body.model };
	const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
	const finish_reason = answer.name ? 'tool_calls' : 'stop';
	return send.chunks([
		{ ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
		{ ...chunk, choices: [{ index: 0, delta: {}, finish_reason }], usage },
	], true);
}

// --- Gemini ---

// Something of the form that is asked for, where an agent wants data instead of words.
function instance(schema) {
	const entries = Object.entries(schema.properties || {}).map(([name, inner]) => [name, instance(inner)]);
	const plain = { object: Object.fromEntries(entries), array: [], boolean: false, integer: 1, number: 1 };
	return schema.enum ? schema.enum[0] : plain[String(schema.type).toLowerCase()] ?? 'as scripted';
}

function gemini(body, send, url) {
	const results = (content) => (content.parts || []).filter((part) => part.functionResponse).length;
	const isPerson = (content) => content.role === 'user' && !results(content);
	const done = resultsSince(body.contents, isPerson, results);
	const shell = { run_shell_command: (command) => ({ command, description: 'as scripted' }) };
	const tools = (body.tools || []).flatMap((tool) => (tool.functionDeclarations || []).map((one) => one.name));
	const answer = choose(tools, shell, done, body.contents.length);
	const schema = (body.generationConfig || {}).responseJsonSchema;
	const text = schema ? JSON.stringify(instance(schema)) : answer.text;
	const part = answer.name ? { functionCall: { name: answer.name, args: answer.input } } : { text };
	const whole = { candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
		usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }, modelVersion: 'fake' };
	return url.includes('stream') ? send.chunks([whole], false) : send.json(whole);
}

// Gemini for accounts: the same in a wrapper.
function codeAssist(body, send, url) {
	const wrap = (whole) => ({ response: whole });
	return gemini(body.request, { json: (one) => send.json(wrap(one)), chunks: (list) => send.chunks(list.map(wrap)) }, url);
}

// --- the server ---

const PATHS = [
	['POST', /\/v1\/messages\/count_tokens/, (body, send) => send.json({ input_tokens: 10 })],
	['POST', /\/v1\/messages/, anthropic],
	['POST', /\/responses/, responses],
	['POST', /\/chat\/completions/, completions],
	['POST', /v1internal.*enerateContent/, codeAssist],
	['POST', /enerateContent/, gemini],
	['GET', /\/models/, (body, send) => send.json({ object: 'list', data: [], models: [] })],
];

function sender(response) {
	const line = (value) => `data: ${JSON.stringify(value)}\n\n`;
	return {
		json: (value) => response.writeHead(200, JSONS).end(JSON.stringify(value)),
		events: (list) => response.writeHead(200, EVENTS)
			.end(list.map((event) => `event: ${event.type}\n${line(event)}`).join('')),
		chunks: (list, isMarked) => response.writeHead(200, EVENTS)
			.end(list.map(line).join('') + (isMarked ? 'data: [DONE]\n\n' : '')),
	};
}

function answer(request, response) {
	const parts = [];
	request.on('data', (part) => parts.push(part));
	request.on('end', () => {
		const { method, url, headers } = request;
		const bytes = Buffer.concat(parts);
		let body = (headers['content-encoding'] === 'zstd' ? zlib.zstdDecompressSync(bytes) : bytes).toString();
		try {
			body = JSON.parse(body);
		} catch {
			// Not ours to mend: it is recorded as text.
		}
		fs.appendFileSync(path.join(folder, 'requests.jsonl'), JSON.stringify({ method, url, headers, body }) + '\n');
		// An agent that would rather have a WebSocket is told at once that there is none.
		if (headers.upgrade) return response.writeHead(426, JSONS).end('{}');
		const told = Object.entries(readScript().answers || {}).find(([part]) => url.includes(part));
		if (told) return sender(response).json(told[1]);
		const found = PATHS.find(([verb, pattern]) => verb === method && pattern.test(url));
		if (!found || (method === 'POST' && typeof body !== 'object')) return response.writeHead(404, JSONS).end('{}');
		return found[2](body, sender(response), url);
	});
}

const server = certificate
	? https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }, answer)
	: http.createServer(answer);
server.listen(Number(port || 0), certificate ? '::' : '127.0.0.1', () => console.log(`ready ${server.address().port}`));
