// A TypeScript SDK client for the tests of whole sessions: it lists everything
// one server has, does what it is told, answers what it is asked, and prints
// what it saw as JSON. Its only argument is {command, args, env, url, headers,
// calls: [{name, arguments}], prompts: [{name, arguments}], reads: [uri],
// completions: [{ref, argument}], watch: uri, logging: tool, refuse: bool}.
// One that refuses declines every form and lets no model be asked.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const order = JSON.parse(process.argv[2]);
const client = new Client(
  { name: "toolroom-tests", version: "1" },
  { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } } },
);
const seen = { asked: [], progress: [], updates: [] };
const logs = [];
const until = async (done) => {
  for (const end = Date.now() + 120000; !done() && Date.now() < end; ) await new Promise((next) => setTimeout(next, 20));
};

client.setRequestHandler(types.ElicitRequestSchema, (request) => {
  seen.asked.push(request.params);
  if (order.refuse) return { action: "decline" };
  return { action: "accept", content: { name: "Ada", check: true, city: "Paris", integer: 7, number: 1.5, firstLine: "x" } };
});
client.setRequestHandler(types.CreateMessageRequestSchema, (request) => {
  seen.asked.push(request.params);
  if (order.refuse) throw new types.McpError(-1, "the <user> said no", { why: [1, 2.5] });
  return { role: "assistant", model: "test", stopReason: "endTurn", content: { type: "text", text: "An answer <&>" } };
});
client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [] }));
client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => { logs.push(n.params); });
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (n) => { seen.updates.push(n.params.uri); });

// Answers are kept as they come, before any schema takes members away.
const whatever = types.ResultSchema.passthrough();
const ask = (method, params, options) =>
  client.request({ method, params }, whatever, { timeout: 180000, ...options }).catch((error) => ({ thrown: String(error.message), code: error.code, data: error.data }));

const transport = order.url
  ? new StreamableHTTPClientTransport(new URL(order.url), { requestInit: { headers: order.headers } })
  : new StdioClientTransport({ command: order.command, args: order.args, env: order.env, stderr: "inherit" });
await client.connect(transport);
// As it comes: the SDK drops progress that it reads together with the answer.
const deliver = transport.onmessage;
transport.onmessage = (message, extra) => {
  if (message.method === "notifications/progress") seen.progress.push(message.params);
  deliver(message, extra);
};

for (const [kind, method] of [["tools", "tools/list"], ["resources", "resources/list"], ["resourceTemplates", "resources/templates/list"], ["prompts", "prompts/list"]]) {
  seen[kind] = (await ask(method, {}))[kind];
}
seen.calls = [];
for (const call of order.calls ?? []) {
  seen.calls.push(await ask("tools/call", call, { onprogress: () => {} }));
}
seen.reads = [];
for (const uri of order.reads ?? []) seen.reads.push(await ask("resources/read", { uri }));
seen.got = [];
for (const prompt of order.prompts ?? []) seen.got.push(await ask("prompts/get", prompt));
seen.completed = [];
for (const completion of order.completions ?? []) seen.completed.push(await ask("completion/complete", completion));
seen.level = await ask("logging/setLevel", { level: "error" });
seen.unknown = [await ask("prompts/get", { name: "no_such_prompt" }), await ask("no/such/method", {})];
if (order.watch) {
  seen.subscribed = await ask("resources/subscribe", { uri: order.watch });
  await ask("tools/call", { name: "toggle-subscriber-updates", arguments: {} });
  await until(() => seen.updates.length > 0);
  seen.unsubscribed = await ask("resources/unsubscribe", { uri: order.watch });
}
if (order.logging) { // it logs at levels and with words of its own choice
  await ask("logging/setLevel", { level: "debug" });
  const before = logs.length;
  await ask("tools/call", { name: order.logging, arguments: {} });
  await until(() => logs.length > before);
  seen.logged = logs.slice(before, before + 1).map((log) => Object.keys(log));
  await ask("tools/call", { name: order.logging, arguments: {} });
}
await client.close();
seen.updates.splice(1); // how many come depends on the time
console.log(JSON.stringify(seen));
