// Reads events as the SDK of CloudEvents does, strictly: by its JSON Schema as it stands on the line, and as a message.
//
//   events.mjs <LINES      one answer a line: {"id":…,"source":…,"type":…,"data":…}, or {"error":…}
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { HTTP } from "cloudevents";

const require = createRequire(import.meta.url);
const schema = require("./node_modules/cloudevents/dist/schema/v1.js");
const isValid = schema.default ?? schema;

function judge(line) {
	try {
		if (!isValid(JSON.parse(line)))
			return { error: JSON.stringify(isValid.errors) };
		const headers = { "content-type": "application/cloudevents+json" };
		const event = HTTP.toEvent({ headers, body: line });
		if (!event.validate())
			return { error: "it is of another version" };
		const { id, source, type, subject, time, datacontenttype, data } = event;
		return { id, source, type, subject, time, datacontenttype, data };
	} catch (problem) {
		return { error: String(problem.message) };
	}
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean))
	console.log(JSON.stringify(judge(line)));
