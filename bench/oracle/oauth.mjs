// The OAuth client of the TypeScript SDKs, for the tests of sign-ins to
// `mcp-host serve`. Its only argument is {sdk, url, browser, tool}. It signs in
// with the program `browser`, calls the tool, and prints its tools, the result
// and the requested resource as JSON.
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { once } from "node:events";

const order = JSON.parse(process.argv[2]);
const sdk = order.sdk === 1
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    }
  : await import("@modelcontextprotocol/client");

let code;
const callback = createServer((request, response) => {
  code(new URL(request.url, "http://127.0.0.1").searchParams);
  response.end("done");
});
callback.listen(0, "127.0.0.1");
await once(callback, "listening");
const redirect = `http://127.0.0.1:${callback.address().port}/callback`;
const answered = new Promise((resolve) => { code = resolve; });

const seen = { resource: null };
class Memory {
  get redirectUrl() { return redirect; }
  get clientMetadata() {
    return { client_name: "tests", redirect_uris: [redirect], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], application_type: "native", token_endpoint_auth_method: "none" };
  }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  redirectToAuthorization(url) {
    seen.resource = url.searchParams.get("resource");
    seen.scope = url.searchParams.get("scope");
    execFile(order.browser, [url.href], (error, _, stderr) => { if (error) console.error(stderr); });
  }
}
const authProvider = new Memory();
const open = () => new sdk.StreamableHTTPClientTransport(new URL(order.url), { authProvider });
const fresh = () => new sdk.Client({ name: "toolroom-tests", version: "1" });
let client = fresh();
const first = open();
try {
  await client.connect(first);
  throw new Error("no sign-in was asked for");
} catch (error) {
  if (error.constructor.name !== "UnauthorizedError") throw error;
}
const answer = await answered;
await first.finishAuth(order.sdk === 1 ? answer.get("code") : answer);
client = fresh();
await client.connect(open());
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.result = await client.callTool({ name: order.tool, arguments: { text: "hello" } });
await client.close();
callback.close();
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
