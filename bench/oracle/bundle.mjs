// Reads .mcpb bundles with their official packer, as a desktop client does when it
// installs them. Standard input is {bundle, dir, roots}; the bundle is unpacked into
// dir, its manifest validated, and the command that starts its server is printed.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { getMcpConfigForManifest, unpackExtension, v0_3 } from "@anthropic-ai/mcpb";

const { bundle, dir, roots } = JSON.parse(readFileSync(0, "utf8"));
if (!(await unpackExtension({ mcpbPath: bundle, outputDir: dir, silent: true }))) {
  throw new Error(`cannot unpack ${bundle}`);
}
const manifest = v0_3.McpbManifestSchema.parse(JSON.parse(readFileSync(path.join(dir, "manifest.json"), "utf8")));
const config = await getMcpConfigForManifest({
  manifest,
  extensionPath: dir,
  systemDirs: { HOME: homedir() },
  userConfig: { roots },
  pathSeparator: path.sep,
});
process.stdout.write(JSON.stringify({ ...config, tools: manifest.tools.map((tool) => tool.name) }));
