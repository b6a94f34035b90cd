// Reads cards with A2A's own library, and verifies them with it and without.
//
//   card.mjs PUBLIC.pem <LINES      one answer a line, in JSON
//
// A line is a card; the answer has `sdk` and `jose`, which are "good" or why not; `isKept`: everything that is
// not x-… came through the library; `isCanonical`: the library's canonical form is another library's.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import canonicalize from "canonicalize";

// Debian's node has it, and does not say so.
globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;
const { AgentCard, canonicalizeAgentCard, verifyAgentCardSignature } = await import("@a2a-js/sdk");
const { base64url, flattenedVerify, importSPKI } = await import("jose");

console.debug = () => {};
const key = await importSPKI(readFileSync(process.argv[2], "utf8"), "EdDSA");

function without(card, isLeft) {
	return Object.fromEntries(Object.entries(card).filter(([name]) => !isLeft(name)));
}

async function judge(verify) {
	try {
		await verify();
		return "good";
	} catch (problem) {
		return String(problem?.message ?? problem).split("\n")[0] || "bad";
	}
}

async function answer(card) {
	const known = without(card, (name) => name.startsWith("x-"));
	const payload = canonicalize(without(known, (name) => name === "signatures"));
	const read = AgentCard.fromJSON(card);
	const [signature] = card.signatures ?? [{}];

	return {
		sdk: await judge(() => verifyAgentCardSignature(async () => key)(read)),
		jose: await judge(() =>
			flattenedVerify({ ...signature, payload: base64url.encode(payload) }, key),
		),
		isKept: isDeepStrictEqual(AgentCard.toJSON(read), known),
		isCanonical: canonicalizeAgentCard(read) === payload,
	};
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean))
	console.log(JSON.stringify(await answer(JSON.parse(line))));
