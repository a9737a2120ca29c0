// The official TypeScript SDK as a client of the server. The command of the server is in SERVER, or its URL and token are in
// SERVER_URL and SERVER_TOKEN.
import fs from "node:fs";
import assert from "node:assert";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

function connection() {
  if (process.env.SERVER_URL) {
    const headers = { Authorization: `Bearer ${process.env.SERVER_TOKEN}` };
    return new StreamableHTTPClientTransport(new URL(process.env.SERVER_URL), { requestInit: { headers } });
  }
  const [command, ...args] = JSON.parse(process.env.SERVER);
  return new StdioClientTransport({ command, args, env: process.env, cwd: process.cwd() });
}

const client = new Client({ name: "typescript", version: "1" }, { capabilities: {} });
await client.connect(connection());
const call = (name, args, meta, options) =>
  client.callTool({ name, arguments: args, _meta: meta }, undefined, options);
const text = (result) => result.content.map((block) => block.text ?? "").join("");

const names = (await client.listTools()).tools.map((tool) => tool.name);
assert(names.includes("write_file") && names.includes("rewind"), names.join());
assert(!(await call("write_file", { path: "note.txt", text: "seven\n" })).isError);
assert((await call("mend", { script: "echo x >> note.txt; exit 3" })).isError);
const together = await Promise.all([0, 1, 2, 3, 4].map((n) => call("shell", { command: `echo ${n}` })));
together.forEach((result, n) => assert(text(result).includes(String(n))));
const first = await call("shell", { command: "echo once >> ../once" }, { callId: "same" });
assert.deepEqual(text(await call("shell", { command: "echo once >> ../once" }, { callId: "same" })), text(first));
await assert.rejects(call("shell", { command: "true" }, { callId: "same" }));
const points = JSON.parse(text(await call("checkpoints", {})));
assert.equal(points.checkpoints.length, 8);
const control = new AbortController();
setTimeout(() => control.abort(), 2000);
await assert.rejects(call("shell", { command: "echo half > half.txt; sleep 600" }, undefined, { signal: control.signal }));
while (fs.existsSync("half.txt")) await new Promise((resolve) => setTimeout(resolve, 50));
assert(text(await call("read_file", { path: "note.txt" })).includes("seven"));
const image = process.env.IMAGE_TOOL;
if (image) assert((await call(image, {})).content.some((block) => block.type === "image" && block.mimeType === "image/png"));
await client.close();
console.log("all as expected");
