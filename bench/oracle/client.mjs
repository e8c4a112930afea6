// A TypeScript SDK client for the tests: visits one server after the other,
// lists its tools, makes the calls it is given, and prints what it saw as a JSON
// list. Standard input is a list of
// {sdk: 1|2, era, command, args, url, headers, calls: [{name, arguments}]}.
import { readFileSync } from "node:fs";

const sdks = {
  1: {
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  },
  2: {
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
  },
};

async function visit(order) {
  const { Client, StdioClientTransport, StreamableHTTPClientTransport } = sdks[order.sdk];
  const mode = order.era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client({ name: "toolroom-tests", version: "1" }, order.sdk === 2 ? { versionNegotiation: { mode } } : {});
  // Without env a server gets only a few variables, such as PATH: no name of a model.
  const transport = order.url
    ? new StreamableHTTPClientTransport(new URL(order.url), { requestInit: { headers: order.headers } })
    : new StdioClientTransport({ command: order.command, args: order.args, env: process.env, stderr: "inherit" });
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
  return seen;
}

const all = [];
for (const order of JSON.parse(readFileSync(0, "utf8"))) {
  all.push(await visit(order).catch((error) => ({ failed: String(error.stack) })));
}
process.stdout.write(JSON.stringify(all), () => process.exit(0));
