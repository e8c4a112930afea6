#!/usr/bin/env node
// Starts a program of toolroom from the package of this platform, with the same
// standard input and output, signals and exit status.
"use strict";

const { spawn } = require("node:child_process");
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");
const { constants } = require("node:os");
const path = require("node:path");

const { version } = require("../package.json");
const checksums = require("../checksums.json");
const suffix = process.platform === "win32" ? ".exe" : "";

function fail(message, status = 1) {
  process.stderr.write(`toolroom: ${message}\n`);
  process.exit(status);
}

// programs returns the directory of this platform's programs and their checksums.
function programs() {
  const name = `@toolroom/${process.platform}-${process.arch}`;
  if (!checksums[name]) {
    fail(`there are no programs for ${process.platform}-${process.arch}; there are for: ${Object.keys(checksums).join(", ")}`);
  }
  let manifest;
  try {
    manifest = require.resolve(`${name}/package.json`);
  } catch {
    fail(`the package ${name} is not installed: install toolroom again, with optional dependencies`);
  }
  const found = require(manifest).version;
  if (found !== version) {
    fail(`the package ${name} has version ${found}, but toolroom has ${version}: install toolroom again`);
  }
  return { dir: path.join(path.dirname(manifest), "bin"), sums: checksums[name] };
}

// verify ends this process if a program is not the released one.
function verify(dir, sums, file) {
  let content;
  try {
    content = readFileSync(path.join(dir, file));
  } catch (error) { // for example removed by a virus scanner
    fail(`cannot read ${path.join(dir, file)} (${error.code}): install toolroom again`);
  }
  const sum = createHash("sha256").update(content).digest("hex");
  if (sum !== sums[file]) {
    fail(`${path.join(dir, file)} is not the program of toolroom ${version} (SHA-256 ${sum}): install toolroom again`);
  }
}

function usage() {
  const names = Object.keys(Object.values(checksums)[0]).map((name) => name.replace(/^mcp-|\.exe$/g, ""));
  return [
    "Usage: toolroom PROGRAM [ARGUMENT...]",
    "",
    `PROGRAM is ${names.join(", ")}, or verify, which compares all programs with the release.`,
    "",
    "  toolroom host stdio --root DIR   serve all tools over standard input and output",
    "  toolroom ls --root DIR           serve one tool",
    "  toolroom host --help             describe a program",
    "",
  ].join("\n");
}

function start(program, args) {
  const { dir, sums } = programs();
  verify(dir, sums, program);
  const child = spawn(path.join(dir, program), args, { stdio: "inherit", windowsHide: true });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
    try {
      process.on(signal, () => child.kill(signal));
    } catch {
      // Windows lacks some signals.
    }
  }
  child.on("error", (error) => fail(`cannot start ${program}: ${error.message}`));
  child.on("exit", (code, signal) => process.exit(signal ? 128 + (constants.signals[signal] ?? 0) : code));
}

const [name, ...args] = process.argv.slice(2);
if (name === undefined || name === "help" || name === "--help" || name === "-h") {
  process.stdout.write(usage());
  process.exit(name === undefined ? 2 : 0);
} else if (name === "--version" || name === "version") {
  process.stdout.write(`toolroom ${version}\n`);
} else if (name === "verify") {
  const { dir, sums } = programs();
  for (const file of Object.keys(sums)) {
    verify(dir, sums, file);
  }
  process.stdout.write(`${Object.keys(sums).length} programs are equal to those of release ${version}\n`);
} else {
  const program = `mcp-${name}${suffix}`;
  if (!/^[a-z_]+$/.test(name) || !Object.values(checksums).some((sums) => sums[program])) {
    fail(`no program ${JSON.stringify(name)}\n\n${usage()}`, 2);
  }
  start(program, args);
}
