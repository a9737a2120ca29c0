#!/usr/bin/env node
// Runs the binary of the package for this machine, which npm has installed beside this one.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `@backstitch/${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/backstitch`);
} catch {
  console.error(`backstitch: the package ${name} is not installed. There are packages for Linux on x64 and arm64; ` +
    "if this is one, install again with optional dependencies (without --omit=optional).");
  process.exit(1);
}

const words = process.argv.slice(2);
// Newer versions of Node replace their process, so that signals and the terminal are those of the binary.
if (typeof process.execve === "function") {
  try {
    process.execve(binary, [binary, ...words], process.env);
  } catch {
    // Where it is not supported, a child does the work.
  }
}
const child = spawn(binary, words, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  // The terminal sends SIGINT, SIGQUIT and SIGHUP to the child too.
  process.on(signal, () => signal === "SIGTERM" && child.kill(signal));
}
child.on("error", (error) => {
  console.error(`backstitch: ${binary} cannot be run: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
