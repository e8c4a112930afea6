// A headless Chromium for the tests of package bench/signin: it opens the address that is
// its only argument, signs in as the user of SIGNIN_BROWSER_USER, and agrees at the providers'
// pages of consent, but refuses at that of the origin SIGNIN_CHROMIUM_DENY. It writes the pages that
// it saw to the file of SIGNIN_CHROMIUM_REPORT: [{url, status, title, heading, text, problems}],
// or {error}. It stores no picture.
//
// It runs without Chromium's sandbox, which root cannot use; it opens only the pages of the
// test: all other addresses fail.
import { renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const chromium = fileURLToPath(new URL("node_modules/.chromium/chromium", import.meta.url));
const limit = 120_000;
const { SIGNIN_BROWSER_USER: user, SIGNIN_CHROMIUM_DENY: deny, SIGNIN_CHROMIUM_REPORT: report } = process.env;

// visit opens the address and answers the provider's pages until a page has no form.
async function visit(address, pages) {
  const browser = await puppeteer.launch({
    executablePath: chromium, headless: "shell", timeout: limit, protocolTimeout: limit,
    args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(limit);
    let problems = [];
    page.on("console", (message) => { if (["error", "warn"].includes(message.type())) problems.push(message.text()); });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("requestfailed", (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
    const session = await page.createCDPSession();
    session.on("Audits.issueAdded", ({ issue }) => problems.push(issue.code));
    await session.send("Audits.enable");

    let response = await page.goto(address);
    for (let i = 0; i < 10; i++) {
      pages.push({
        url: page.url(), status: response.status(), title: await page.title(), problems,
        ...(await page.evaluate(() => ({ heading: document.querySelector("h1")?.innerText ?? "", text: document.body.innerText }))),
      });
      if (!(await page.$("form"))) return;
      problems = [];
      let answer = "form [type=submit]";
      if (await page.$("input[name=login]")) {
        await page.type("input[name=login]", user);
        await page.type("input[name=password]", "any");
      } else if (deny && page.url().startsWith(`${deny}/`)) {
        answer = "a[href$='/abort']";
      }
      [response] = await Promise.all([page.waitForNavigation(), page.click(answer)]);
    }
    throw new Error("the provider asks without end");
  } finally {
    await browser.close();
  }
}

const pages = [];
let result = pages;
try {
  await visit(process.argv[2], pages);
} catch (error) {
  result = { error: `${error.stack ?? error}\n${JSON.stringify(pages)}` };
}
writeFileSync(`${report}.new`, JSON.stringify(result));
renameSync(`${report}.new`, report); // readers never see a part of it
