// A TypeScript SDK client of `mcp-host serve`, for the tests of credentials that belong
// to each caller. Its only argument is {sdk, era, url, token, text, calls: [name], browser:
// program, links: bool, stay: bool}. It prints the tools before and after the calls, the links, the
// completions and the results as JSON.
import { execFile } from "node:child_process";

const order = JSON.parse(process.argv[2]);
const sdk = order.sdk === 1
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      ...(await import("@modelcontextprotocol/sdk/types.js")),
    }
  : await import("@modelcontextprotocol/client");
const options = { capabilities: order.links ? { elicitation: { url: {} } } : {} };
if (order.sdk === 2) options.versionNegotiation = { mode: order.era === "modern" ? { pin: "2026-07-28" } : "legacy" };
const client = new sdk.Client({ name: "toolroom-tests", version: "1" }, options);
const seen = { links: [], completed: [], results: [], pages: [] };

if (order.links) {
  client.setRequestHandler(order.sdk === 1 ? sdk.ElicitRequestSchema : "elicitation/create", async (request) => {
    seen.links.push(request.params);
    execFile(order.browser, [request.params.url], (error, stdout, stderr) => {
      if (error) console.error(stderr);
      seen.pages.push(stdout);
    });
    return { action: "accept" };
  });
}
if (order.sdk === 1) {
  client.setNotificationHandler(sdk.ElicitationCompleteNotificationSchema, (n) => { seen.completed.push(n.params.elicitationId); });
}
const headers = { Authorization: `Bearer ${order.token}` };
const transport = new sdk.StreamableHTTPClientTransport(new URL(order.url), { requestInit: { headers } });
await client.connect(transport);
seen.session = transport.sessionId ?? "";
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
seen.before = await names();
for (const name of order.calls) {
  const call = { name, arguments: { text: order.text } };
  seen.results.push(await client.callTool(call, order.sdk === 1 ? undefined : {}, { timeout: 300000 }).catch((error) => ({ thrown: String(error.message), code: error.code })));
}
seen.after = await names();
if (!order.stay) await client.close();
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
