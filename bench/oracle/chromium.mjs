// Unpacks the Chromium of the package @sparticuz/chromium into the directory of the only
// argument. `make oracles` runs it, so that tests that run at the same time do not unpack it.
import { mkdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";

const directory = resolve(process.argv[2]);
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
process.env.TMPDIR = directory; // where the package unpacks
const { default: chromium } = await import("@sparticuz/chromium");
console.log(await chromium.executablePath());
