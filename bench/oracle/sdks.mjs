// The vendors' own SDKs, each sending requests and reading responses that it
// is given: standard input is {openai, anthropic, gemini: [{request, response}]}.
// What each sent, and what it says of the answer, is printed.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { text } from "node:stream/consumers";

const order = JSON.parse(await text(process.stdin));
let sent, answer;
const fetch = async (url, init) => {
  sent = { url: String(url), body: JSON.parse(init.body) };
  return new Response(JSON.stringify(answer), { status: 200, headers: { "content-type": "application/json" } });
};
globalThis.fetch = fetch;

const openai = new OpenAI({ apiKey: "x", baseURL: "http://invalid.test/v1", fetch, maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: "x", baseURL: "http://invalid.test", fetch, maxRetries: 0 });
const gemini = new GoogleGenAI({ apiKey: "x", httpOptions: { baseUrl: "http://invalid.test" } });

const ask = {
  async openai(request) {
    const whole = answer.choices[0].finish_reason === "tool_calls"; // what was cut the SDK does not parse
    const strict = whole && request.tools?.every((tool) => tool.function.strict);
    const made = await (strict ? openai.chat.completions.parse(request) : openai.chat.completions.create(request));
    const { message, finish_reason } = made.choices[0];
    const calls = (message.tool_calls ?? []).filter((call) => call.type === "function");
    return { text: message.content ?? "", stop: finish_reason, calls: calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]), input: made.usage?.prompt_tokens };
  },
  async anthropic(request) {
    const made = await anthropic.messages.create(request);
    const of = (type) => made.content.filter((block) => block.type === type);
    return { text: of("text").map((block) => block.text).join(""), stop: made.stop_reason, calls: of("tool_use").map((block) => [block.name, block.input]), input: made.usage.input_tokens };
  },
  async gemini({ contents, generationConfig, ...config }) {
    const made = await gemini.models.generateContent({ model: "m", contents, config: { ...config, ...generationConfig } });
    const text = (made.candidates[0].content.parts ?? []).filter((part) => part.text && !part.thought).map((part) => part.text).join("");
    return { text, stop: made.candidates[0].finishReason, calls: (made.functionCalls ?? []).map((call) => [call.name, call.args]), input: made.usageMetadata?.promptTokenCount };
  },
};

const seen = {};
for (const vendor of Object.keys(ask)) {
  seen[vendor] = [];
  for (const { request, response } of order[vendor]) {
    answer = response;
    const read = await ask[vendor](request);
    seen[vendor].push({ ...sent, read });
  }
}
console.log(JSON.stringify(seen));
