//! Lisp agents with failing programs: every request has the published form, for every provider.

use std::sync::Arc;

use backstitch_core::journal::Effect;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::Provider;
use backstitch_repl::LispAgent;
use backstitch_runtime::{Agent, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;

use super::loopback::{RUNTIME, model};
use super::support::server::{Served, Server};
use super::support::wire::Spoken;

#[test]
fn failed_turns_are_shown_in_the_published_form() {
    // An unknown name, an error, a text without a program, a failing call, and an answer.
    let answers = [
        "```clojure\n(no-such-thing 1)\n```",
        "```clojure\n(/ 1 0)\n```",
        "I would rather talk about it.",
        "```clojure\n(tool/look {})\n```",
        "```clojure\n(return (+ 1 2))\n```",
    ];
    for provider in Provider::ALL {
        let served = answers.iter().map(|answer| {
            let spoken = Spoken::text(answer).thinking("Hm.");
            Served::stream(&spoken.streamed(provider), 64)
        });
        // The server refuses what a strict one refuses.
        let server = Server::with(served.collect());
        let look = Tool::builder("look", "Looks around.").unwrap().effect(Effect::Pure);
        let look = look.workspace(WorkspaceUse::None).handler(|_, (): ()| async {
            Ok::<_, backstitch_core::tool::ToolError>(ToolResult::ok("a seam"))
        });
        let tools = Tools::new([look]).unwrap();
        let policy = Arc::new(model(provider, server.address()));
        let lisp = LispAgent::new().with_max_turns(8);
        let agent = Agent::lisp("tests/lisp", policy, lisp, tools).unwrap();
        RUNTIME.block_on(async {
            let runtime = Runtime::new(Arc::new(MemoryStore::new()));
            let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
            let ended = driver.start("Add them.").await;
            let answered = ended.unwrap_or_else(|error| panic!("{provider}: {error}")).answer().unwrap();
            assert_eq!(answered.output, Some(3.into()), "{provider}");
        });
        assert_eq!(server.seen().len(), answers.len(), "{provider}");
    }
}
