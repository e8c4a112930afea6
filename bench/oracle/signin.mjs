// A TypeScript SDK client for the tests of sign-ins: it calls a tool of
// `mcp-host stdio` and answers links with a browser. Its only argument is {sdk,
// era, command, args, calls: [{name, arguments}], browser: program, refuse: bool,
// unable: bool, expire: [address]}. Before the second call it posts to the
// addresses of expire. It prints the tools before and after the calls, the
// links, the last pages of the browsers, the progress, the completions and the results as JSON.
import { execFile } from "node:child_process";

const order = JSON.parse(process.argv[2]);
const sdk = order.sdk === 1
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
      ...(await import("@modelcontextprotocol/sdk/types.js")),
    }
  : { ...(await import("@modelcontextprotocol/client")), ...(await import("@modelcontextprotocol/client/stdio")) };
const options = { capabilities: order.unable ? {} : { elicitation: { url: {} } } };
if (order.sdk === 2) options.versionNegotiation = { mode: order.era === "modern" ? { pin: "2026-07-28" } : "legacy" };
const client = new sdk.Client({ name: "toolroom-tests", version: "1" }, options);
const seen = { links: [], completed: [], results: [], pages: [], progress: [] };
const browsers = [];

if (!order.unable) {
  client.setRequestHandler(order.sdk === 1 ? sdk.ElicitRequestSchema : "elicitation/create", async (request) => {
    seen.links.push(request.params);
    if (order.refuse) return { action: "decline" };
    browsers.push(new Promise((ended) => execFile(order.browser, [request.params.url], (error, stdout, stderr) => {
      if (error) console.error(stderr);
      seen.pages.push(stdout);
      ended();
    })));
    return { action: "accept" };
  });
}
if (order.sdk === 1) {
  client.setNotificationHandler(sdk.ElicitationCompleteNotificationSchema, (n) => { seen.completed.push(n.params.elicitationId); });
}
await client.connect(new sdk.StdioClientTransport({ command: order.command, args: order.args, env: process.env, stderr: "inherit" }));
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
seen.before = await names();
for (const call of order.calls) {
  if (seen.results.length === 1) for (const address of order.expire ?? []) await fetch(address, { method: "POST" });
  const progress = { timeout: 300000, onprogress: (one) => { seen.progress.push(one); } };
  seen.results.push(await client.callTool(call, order.sdk === 1 ? undefined : progress, progress).catch((error) => ({ thrown: String(error.message), code: error.code })));
}
seen.after = await names();
await Promise.all(browsers);
await client.close();
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
