//! One row for each command: how it is called, and what it prints in each situation.
//!
//! In the arguments, `{done}` is a finished session, `{waiting}` one that waits for the approval of `{call}`, `{model}` a scripted model
//! and `{new}` a path that does not exist.

/// What a command does in a situation: its exit code, and words that it prints.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) code: i32,
    pub(super) words: &'static str,
}

/// A command, and what is expected of it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Name, as `--help` lists it.
    pub(super) command: &'static str,
    /// Arguments with which it succeeds.
    pub(super) arguments: &'static str,
    /// What it reads.
    pub(super) input: &'static str,
    pub(super) success: Expected,
    pub(super) empty: Expected,
    pub(super) wrong: &'static str,
    pub(super) damaged: Expected,
    pub(super) held: Expected,
}

const fn expect(code: i32, words: &'static str) -> Expected {
    Expected { code, words }
}

/// A command about a session, which it needs.
const fn of_session(command: &'static str, arguments: &'static str, words: &'static str) -> Row {
    Row {
        command,
        arguments,
        input: "",
        success: expect(0, words),
        empty: expect(1, "code: session_not_found"),
        wrong: "--nope",
        damaged: expect(1, "code: store_damaged"),
        held: expect(0, ""),
    }
}

/// A command that needs no session.
const fn general(command: &'static str, arguments: &'static str, words: &'static str) -> Row {
    Row { empty: expect(0, ""), ..of_session(command, arguments, words) }
}

/// A command that needs no store.
const fn without_store(command: &'static str, arguments: &'static str, words: &'static str) -> Row {
    Row { damaged: expect(0, ""), ..general(command, arguments, words) }
}

impl Row {
    const fn exits_with(self, code: i32) -> Self {
        Self { success: expect(code, self.success.words), ..self }
    }

    const fn reads(self, input: &'static str) -> Self {
        Self { input, ..self }
    }

    const fn empty(self, code: i32, words: &'static str) -> Self {
        Self { empty: expect(code, words), ..self }
    }

    const fn wrong(self, wrong: &'static str) -> Self {
        Self { wrong, ..self }
    }

    const fn damaged(self, code: i32, words: &'static str) -> Self {
        Self { damaged: expect(code, words), ..self }
    }

    const fn held(self, code: i32, words: &'static str) -> Self {
        Self { held: expect(code, words), ..self }
    }

    /// Another process drives the session, and the command needs it.
    const fn refused_if_held(self) -> Self {
        self.held(1, "code: session_held")
    }
}

/// All commands. A new one needs a line here.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    without_store("lisp run", "lisp run -", "3").reads("(+ 1 2)"),
    without_store("lisp repl", "lisp repl", "Backstitch").reads("(+ 1 2)\n"),
    without_store("lisp eval", "lisp eval --jsonl", "\"value\":\"3\"").reads("{\"program\": \"(+ 1 2)\"}\n").wrong(""),
    without_store("quickstart", "quickstart --directory {new}", "Nothing was lost"),
    general("run", "run Sew --model {model}", "Done.").wrong("--model nonsense").held(1, "code: workspace_held"),
    of_session("resume", "resume {done}", "Done.").refused_if_held(),
    general("chat", "chat", "needs a terminal").exits_with(2).empty(2, "needs a terminal").damaged(2, "needs a terminal").held(2, "needs a terminal"),
    of_session("ask", "ask {done} Again", "Done.").wrong("{done}").refused_if_held(),
    general("ls", "ls", "Take stock").empty(0, "there are no sessions yet").wrong("--status mending"),
    of_session("log", "log {done}", "write_file"),
    of_session("show", "show {done}", "Take stock"),
    of_session("request", "request {done} 1", "turn 1").wrong("{done} much"),
    general("stats", "stats", "write_file").wrong("--by moon"),
    general("query", "query -", "Take stock").reads("SELECT mission FROM sessions").wrong("").empty(0, ""),
    of_session("blame", "blame note.txt", "needles").empty(1, "code: io").wrong("").held(1, "code: io"),
    of_session("cat", "cat {done} head:note.txt", "needles: 7").wrong("").held(1, "code: file_not_found"),
    of_session("restore", "restore note.txt --from start --session {done}", "note.txt").wrong("note.txt").refused_if_held(),
    of_session("diff", "diff {done} start", "needles: 7").wrong("{done} nowhere"),
    of_session("rewind", "rewind {done} start", "back at").wrong("{done} nowhere").refused_if_held(),
    of_session("undo", "undo {done}", "code: nothing_to_undo").exits_with(1).refused_if_held(),
    of_session("redo", "redo {done}", "code: nothing_to_redo").exits_with(1).refused_if_held(),
    of_session("fork", "fork {done} --workspace {new}", "forked into"),
    general("guard install", "guard install claude-code", "is guarded").wrong("emacs").held(1, "code: workspace_held"),
    without_store("guard uninstall", "guard uninstall claude-code", "holds no hooks").wrong("emacs"),
    general("guard status", "guard status", "nothing is guarded").wrong("--nope"),
    of_session("guard points", "guard points", "no guarded session").exits_with(1).held(1, "no guarded session"),
    of_session("guard rewind", "guard rewind start", "no guarded session").exits_with(1).held(1, "no guarded session"),
    of_session("guard continue", "guard continue", "no guarded session").exits_with(1).held(1, "no guarded session"),
    of_session("guard undo", "guard undo", "no guarded session").exits_with(1).held(1, "no guarded session"),
    general("inbox", "inbox", "approve").empty(0, "nothing waits").damaged(0, "unreadable"),
    of_session("name", "name {done} hem", "has the name hem").wrong("{done}").refused_if_held(),
    of_session("resolve", "resolve {waiting} {call} approve", "decided").wrong("{waiting} {call} perhaps").refused_if_held(),
    of_session("approve", "approve {waiting} --all", "approved").wrong("").held(1, "waits for approval"),
    of_session("deny", "deny {waiting} --all", "denied").wrong("").held(1, "waits for approval"),
    of_session("send", "send {done} Hello", "resume").wrong("{done}"),
    of_session("tag", "tag {done} team=a", "team=a").refused_if_held(),
    of_session("signal", "signal {done} go", "sent"),
    general("enqueue", "enqueue Sew --model {model}", "waits for a worker"),
    of_session("queue retry", "queue retry {done}", "was not given up").exits_with(1).held(1, "was not given up"),
    of_session("queue remove", "queue remove {done}", "is not in the queue").exits_with(1).held(1, "is not in the queue"),
    general("queue limit", "queue limit team=a 2", "at most 2"),
    general("schedule list", "schedule list", "there are no schedules"),
    general("schedule remove", "schedule remove nightly", "no schedule").exits_with(2).empty(2, "no schedule").held(2, "no schedule"),
    general("schedule add", "schedule add nightly never Sew --model {model}", "cannot be used").exits_with(2).empty(2, "cannot be used").held(2, "cannot be used"),
    without_store("worker", "worker --concurrency 0", "1..=1000").exits_with(2).empty(2, "1..=1000").damaged(2, "1..=1000").held(2, "1..=1000"),
    of_session("compact", "compact {done}", "code: nothing_to_compact").exits_with(1).refused_if_held(),
    of_session("cancel", "cancel {waiting}", "sent"),
    of_session("pause", "pause {waiting}", "sent"),
    general("verify", "verify", "sound").damaged(1, ""),
    general("salvage", "salvage {new}/store.db", "whole").wrong("").damaged(1, "code: store_damaged"),
    general("backup", "backup {new}", "").wrong("").damaged(1, ""),
    of_session("export", "export {done} --markdown", "Take stock").wrong("{done} --git a --bundle b"),
    without_store("import", "import {new}", "code: store_not_found").exits_with(1).empty(1, "code: store_not_found").damaged(1, "code: store_not_found").held(1, "code: store_not_found"),
    of_session("copy", "copy {done} --to {new}/store.db", "copied").wrong("{done}"),
    general("size", "size", "records"),
    general("gc", "gc --dry-run", "").wrong("--keep-days many"),
    of_session("redact", "redact {done} --dry-run", "").reads("needles: 7"),
    of_session("rm", "rm {done} --yes", "").refused_if_held(),
    without_store("serve", "serve --listen 0.0.0.0:0", "loopback").exits_with(2).empty(2, "loopback").damaged(2, "loopback").held(2, "loopback"),
    without_store("ui", "ui --no-open --listen 0.0.0.0:0", "loopback").exits_with(2).empty(2, "loopback").damaged(2, "loopback").held(2, "loopback"),
    without_store("acp", "acp --workspace .", "--workspace").exits_with(2).empty(2, "--workspace").damaged(2, "--workspace").held(2, "--workspace"),
    general("mcp serve", "mcp serve --sandbox off", "tools").wrong("--session"),
    without_store("mcp add", "mcp add files -- true", "added files").wrong("files"),
    without_store("mcp list", "mcp list", "MCP server files runs: true"),
    without_store("mcp remove", "mcp remove files", "removed files").wrong(""),
    of_session("apply", "apply {done}", "code: not_isolated").exits_with(1).wrong("{done} --ours --theirs").held(1, "code: not_isolated"),
    without_store("config show", "config show --origin", ""),
    without_store("config path", "config path", "config.toml"),
    without_store("config set", "config set model scripted:x", "").wrong("model"),
    without_store("config unset", "config unset model", "").wrong(""),
    without_store("trust", "trust --list", "nothing is trusted").wrong("--list --revoke"),
    without_store("commands", "commands", "there are no commands"),
    without_store("init", "init {new}", "wrote").wrong("--project --user"),
    without_store("doctor", "doctor", "version").damaged(1, "broken"),
    without_store("models", "models --offline", "known models").wrong("nonsense"),
    without_store("explain", "explain", "session_not_found").wrong("nonsense"),
    without_store("completions", "completions bash", "complete").wrong("tcsh"),
    without_store("man", "man rewind", "backstitch-rewind").wrong("nonsense"),
];
