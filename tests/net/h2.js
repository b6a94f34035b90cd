// A server that speaks HTTP/2 with whom does: h2.js CERTIFICATE KEY PORT. Prints a line when it listens.
const fs = require('fs');
const http2 = require('http2');

const [certificate, key, port] = process.argv.slice(2);
const options = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key), allowHTTP1: true };

http2.createSecureServer(options, (request, response) => {
	const { httpVersion, url, authority, headers } = request;
	const { servername } = (request.stream ? request.stream.session : request).socket;
	const seen = { version: httpVersion, host: authority || headers.host, path: url, sni: servername };
	response.end(JSON.stringify(seen) + '\n');
}).listen(Number(port), '::', () => console.log('ready'));
