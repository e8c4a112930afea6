// A TypeScript SDK client for the tests: lists the tools of one server, makes
// the calls it is given, and prints what it saw as JSON. Its only argument is
// {sdk: 1|2, era, command, args, url, headers, calls: [{name, arguments}]}.
const order = JSON.parse(process.argv[2]);
const load = {
  1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }),
  2: async () => ({
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
  }),
};
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await load[order.sdk]();

const mode = order.era === "modern" ? { pin: "2026-07-28" } : "legacy";
const client = new Client({ name: "toolroom-tests", version: "1" }, order.sdk === 2 ? { versionNegotiation: { mode } } : {});
const transport = order.url
  ? new StreamableHTTPClientTransport(new URL(order.url), { requestInit: { headers: order.headers } })
  : new StdioClientTransport({ command: order.command, args: order.args, stderr: "inherit" });
await client.connect(transport);

const seen = {
  server: client.getServerVersion(),
  version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
  tools: [],
  results: [],
};
for (let cursor; ; ) {
  const page = await client.listTools({ cursor });
  seen.tools.push(...page.tools);
  cursor = page.nextCursor;
  if (!cursor) break;
}
// All at once: answers may come in any order.
seen.results = await Promise.all(
  order.calls.map((call) => client.callTool(call).catch((error) => ({ thrown: String(error.message), code: error.code }))),
);
await client.close();
console.log(JSON.stringify(seen));
