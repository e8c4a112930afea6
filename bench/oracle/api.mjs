// The vendors' own SDKs as clients of the host's API. The arguments are the address
// and the key; what each saw is printed as JSON. What the model says is scripted by
// the test: by the first word of the last message.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const [base, key] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0 });
const user = (content) => [{ role: "user", content }];
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const seen = {};

// What a request fails with.
const failure = async (promise) => {
  try {
    await promise;
    return "it did not fail";
  } catch (error) {
    return { name: error.constructor.name, status: error.status, code: error.code ?? error.error?.error?.code, type: error.type, param: error.param, message: error.message };
  }
};

const brief = (made) => ({ text: made.choices[0].message.content, stop: made.choices[0].finish_reason, total: made.usage?.total_tokens });

// Every chunk as it comes, and what the SDK's own helper makes of another stream.
async function streamed(request) {
  const chunks = [];
  for await (const chunk of await openai.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) chunks.push(chunk);
  const helper = openai.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  const heard = [];
  helper.on("content", (delta) => heard.push(delta));
  const whole = await helper.finalChatCompletion();
  return {
    ids: new Set(chunks.map((chunk) => chunk.id)).size,
    objects: [...new Set(chunks.map((chunk) => chunk.object))],
    text: chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
    heard: heard.join(""),
    events: chunks.filter((chunk) => chunk.x_event).map((chunk) => [chunk.x_event.type, chunk.x_event.name]),
    last: chunks.at(-1).usage?.total_tokens,
    ...{ helper: brief(whole) },
  };
}

// The SDK's own loop, which calls the client's tools and asks again.
async function looped(prompt, stream) {
  const called = [];
  const weather = ({ city }) => (called.push(city), `rain in ${city}`);
  const runner = openai.chat.completions.runTools({
    model: "play", messages: user(prompt), stream,
    tools: [{ type: "function", function: { name: "weather", function: weather, parse: JSON.parse, parameters } }],
  });
  const text = await runner.finalContent();
  return { called, text };
}

async function withOpenAI() {
  seen.plain = brief(await openai.chat.completions.create({ model: "play", messages: user("plain") }));
  seen.models = (await openai.models.list()).data.map((model) => model.id);
  seen.model = (await openai.models.retrieve("play")).object;
  seen.image = brief(await openai.chat.completions.create({ model: "play", messages: user([{ type: "text", text: "plain" }, { type: "image_url", image_url: { url: "data:image/png;base64," + pixel } }]) }));
  seen.ours = brief(await openai.chat.completions.create({ model: "play", messages: user("ours") }));
  seen.chosen = brief(await openai.chat.completions.create({ model: "play|fix__params", messages: user("ours") }));
  seen.streamed = await streamed({ model: "play", messages: user("plain") });
  seen.streamedOurs = await streamed({ model: "play", messages: user("ours"), x_events: true });
  seen.length = brief(await openai.chat.completions.create({ model: "play", messages: user("long") }));
  for (const prompt of ["theirs", "both"]) for (const stream of [false, true]) seen[prompt + (stream ? "Streamed" : "")] = await looped(prompt, stream);
  seen.errors = {
    model: await failure(openai.chat.completions.create({ model: "nobody", messages: user("plain") })),
    key: await failure(new OpenAI({ baseURL: base + "/v1", apiKey: "wrong", maxRetries: 0 }).chat.completions.create({ model: "play", messages: user("plain") })),
    n: await failure(openai.chat.completions.create({ model: "play", n: 2, messages: user("plain") })),
    limited: await failure(openai.chat.completions.create({ model: "play", messages: user("limited") })),
    broken: await failure(openai.chat.completions.stream({ model: "play", messages: user("broken") }).finalChatCompletion()),
  };
  const stream = await openai.chat.completions.create({ model: "play", messages: user("slow"), stream: true }, { signal: AbortSignal.timeout(300) }).catch((error) => error);
  seen.cancelled = stream.constructor.name;
  seen.after = brief(await openai.chat.completions.create({ model: "play", messages: user("plain") }));
}

// Responses as a whole and streamed, by the SDK's own helper, which refuses events that
// are out of order.
async function withResponses() {
  const of = (seen.responses = {});
  const brief = (made) => ({ text: made.output_text, status: made.status, types: made.output.map((item) => item.type), input: made.usage?.input_tokens > 0 });
  const ask = (input, more = {}) => ({ model: "play", input, ...more });
  const tools = [
    { type: "function", name: "weather", parameters, strict: false },
    { type: "custom", name: "patch", description: "apply a patch" },
    { type: "web_search" },
  ];
  const each = { whole: (request) => openai.responses.create(request), streamed: (request) => openai.responses.stream(request).finalResponse() };
  for (const [name, make] of Object.entries(each)) {
    const it = (of[name] = {});
    it.plain = brief(await make(ask("plain")));
    it.image = brief(await make(ask([{ role: "user", content: [{ type: "input_text", text: "plain" }, { type: "input_image", detail: "auto", image_url: "data:image/png;base64," + pixel }] }])));
    it.ours = brief(await make(ask("ours")));
    it.length = brief(await make(ask("long")));
    const first = await make(ask("both", { tools }));
    it.both = brief(first);
    const outputs = first.output.filter((item) => item.type === "function_call").map((call) => ({ type: "function_call_output", call_id: call.call_id, output: `rain in ${JSON.parse(call.arguments).city}` }));
    it.after = brief(await make(ask(outputs, { tools, previous_response_id: first.id })));
    const items = first.output.map((item) => (item.type === "message" ? { type: "item_reference", id: item.id } : item));
    it.items = brief(await make(ask([...user("both"), ...items, ...outputs], { tools, store: false })));
    const patch = await make(ask("patch", { tools }));
    it.patch = patch.output.map((item) => [item.type, item.name, item.input]);
  }
  const kept = await openai.responses.create(ask("plain", { metadata: { a: "b" } }));
  const found = await openai.responses.retrieve(kept.id);
  of.stored = { same: found.id === kept.id, text: found.output[0].content[0].text, metadata: found.metadata };
  const next = await openai.responses.create(ask([...user("1"), ...user("2"), ...user("plain")], { previous_response_id: kept.id }));
  of.items = [];
  for await (const item of openai.responses.inputItems.list(next.id, { limit: 2, order: "asc" })) of.items.push(item.content);
  await openai.responses.delete(kept.id);
  const types = [];
  for await (const event of await openai.responses.create(ask("ours", { stream: true, x_events: true }))) types.push(event.type);
  of.types = [types[0], types[1], types.filter((type) => type === "x_event").length, types.at(-1)];
  of.errors = {
    previous: await failure(openai.responses.create(ask("plain", { previous_response_id: next.id }))),
    gone: await failure(openai.responses.retrieve(kept.id)),
    background: await failure(openai.responses.create(ask("plain", { background: true }))),
    model: await failure(openai.responses.create({ ...ask("plain"), model: "nobody" })),
    output: await failure(openai.responses.create(ask([{ type: "function_call_output", call_id: "call_x", output: "" }]))),
    limited: await failure(openai.responses.create(ask("limited"))),
    broken: await failure(openai.responses.stream(ask("broken")).finalResponse()),
    schema: await failure(openai.responses.create(ask("plain", { text: { format: { type: "json_schema", name: "x", schema: { type: "object" } } } }))),
  };
}

async function withAnthropic() {
  const said = (made) => ({ text: made.content.filter((block) => block.type === "text").map((block) => block.text).join("|"), stop: made.stop_reason, output: made.usage.output_tokens > 0 });
  const ask = (prompt, more = {}) => ({ model: "play", max_tokens: 100, messages: user(prompt), ...more });
  const mine = { tools: [{ name: "weather", input_schema: parameters }] };
  const of = (seen.anthropic = {});
  of.plain = said(await anthropic.messages.create(ask("plain")));
  of.image = said(await anthropic.messages.create({ ...ask(""), messages: user([{ type: "text", text: "plain" }, { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }]) }));
  of.ours = said(await anthropic.messages.create(ask("ours")));
  const events = [];
  const helper = anthropic.messages.stream(ask("ours", { x_events: true })).on("streamEvent", (event) => events.push(event.type));
  of.streamed = said(await helper.finalMessage());
  of.events = events;
  for (const stream of [false, true]) {
    const first = stream ? await anthropic.messages.stream(ask("both", mine)).finalMessage() : await anthropic.messages.create(ask("both", mine));
    const results = first.content.filter((block) => block.type === "tool_use").map((block) => ({ type: "tool_result", tool_use_id: block.id, content: `rain in ${block.input.city}` }));
    const messages = [...user("both"), { role: "assistant", content: first.content }, { role: "user", content: results }];
    of["both" + (stream ? "Streamed" : "")] = [first.stop_reason, results.length, said(await anthropic.messages.create({ ...ask(""), ...mine, messages })).text];
  }
  of.tokens = (await anthropic.messages.countTokens({ model: "play", messages: user("plain") })).input_tokens > 10;
  of.models = (await anthropic.models.list()).data.map((model) => model.id);
  of.errors = {
    model: await failure(anthropic.messages.create({ ...ask("plain"), model: "nobody" })),
    key: await failure(new Anthropic({ baseURL: base, apiKey: "wrong", maxRetries: 0 }).messages.create(ask("plain"))),
    limited: await failure(anthropic.messages.create(ask("limited"))),
    broken: await failure(anthropic.messages.stream(ask("broken")).finalMessage()),
  };
}

await withOpenAI();
await withResponses();
await withAnthropic();
console.log(JSON.stringify(seen));
