// Verifies envelopes with @sigstore/verify, by a bare public key and without any log.
//
//   envelope.mjs PUBLIC.pem <LINES      one answer a line: "good", or why not
//
// A line is an envelope in JSON.
import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { bundleFromJSON } from "@sigstore/bundle";
import { toSignedEntity, Verifier } from "@sigstore/verify";

const key = createPublicKey(readFileSync(process.argv[2]));
const trusted = {
	certificateAuthorities: [],
	timestampAuthorities: [],
	tlogs: [],
	ctlogs: [],
	publicKey: () => ({ publicKey: key, validFor: () => true }),
};
const verifier = new Verifier(trusted, { tlogThreshold: 0, ctlogThreshold: 0, tsaThreshold: 0 });

function judge(line) {
	try {
		const bundle = bundleFromJSON({
			mediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
			verificationMaterial: { publicKey: { hint: "operator" }, tlogEntries: [] },
			dsseEnvelope: JSON.parse(line),
		});
		verifier.verify(toSignedEntity(bundle));
		return "good";
	} catch (problem) {
		return String(problem.message).split("\n")[0] || "bad";
	}
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean))
	console.log(judge(line));
