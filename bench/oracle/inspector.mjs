// Runs the MCP inspector's command line for the tests, as often as is wanted
// in one process, since starting it takes longer than all it is asked for.
// Standard input is a list of argument lists; printed is a list of what each
// run wrote, {stdout, stderr, thrown}.
import { readFileSync } from "node:fs";
import { runCli } from "./node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js";

const streams = { stdout: process.stdout.write, stderr: process.stderr.write };
const seen = [];
for (const args of JSON.parse(readFileSync(0, "utf8"))) {
  const run = { stdout: "", stderr: "" };
  for (const name of Object.keys(streams)) {
    process[name].write = (chunk, encoding, done) => {
      run[name] += chunk;
      (typeof encoding === "function" ? encoding : done)?.();
      return true;
    };
  }
  try {
    await runCli(["node", "mcp-inspector", ...args]);
  } catch (error) {
    run.thrown = String(error?.message ?? error);
  }
  seen.push(run);
}
for (const [name, write] of Object.entries(streams)) process[name].write = write;
process.stdout.write(JSON.stringify(seen), () => process.exit(0));
