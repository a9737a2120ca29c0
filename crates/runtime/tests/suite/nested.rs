//! Calls that a handler makes through a runner of its own session: they never wait for the call that they are made in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::Effect;
use backstitch_core::tool::{Tool, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::{MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{CallOutcome, CallRequest, RuntimeError, ToolRunner};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::harness::Harness;

/// The call that a handler makes next, and the runner that it makes it through.
type NextCalls = Arc<Mutex<Vec<(Arc<ToolRunner>, CallRequest)>>>;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that uses files so, and whose handler makes the next call, if there is one.
fn caller(name: &str, uses: WorkspaceUse, next: &NextCalls) -> Tool {
    let next = next.clone();
    Tool::builder(name, "Makes a call.").unwrap().effect(Effect::Workspace).workspace(uses).handler(
        move |_, _: Nothing| {
            let next = next.lock().unwrap().pop();
            async move {
                let Some((runner, call)) = next else { return Ok(ToolResult::ok("the innermost")) };
                match runner.run(call).await {
                    Ok(CallOutcome::Succeeded(_)) => Ok(ToolResult::ok("it ran inside")),
                    Ok(other) => Err(ToolError::new(format!("{other:?}"))),
                    Err(error) => Err(ToolError::new(format!("{}: {error}", error.code()))),
                }
            }
        },
    )
}

/// Makes a call inside of a call inside of a call, and returns the text of the outermost result.
async fn made_inside(uses: &[WorkspaceUse]) -> String {
    let (next, store) = (NextCalls::default(), Arc::new(MemoryStore::new()));
    let files = Arc::new(MemoryFilesystem::new());
    let workspace = Arc::new(MemoryWorkspace::new(files, store.clone()));
    let names = ["outer", "middle", "inner"];
    let tools = names.iter().zip(uses).map(|(name, uses)| caller(name, *uses, &next));
    let harness = Harness::over(store, tools, Some(workspace)).await;
    for name in names[1..uses.len()].iter().rev() {
        let call = harness.call(name, json!({})).await;
        next.lock().unwrap().push((harness.runner.clone(), call));
    }
    let running = harness.run("outer", json!({}));
    // Only a call that waits for itself takes so long.
    let ended = tokio::time::timeout(Duration::from_secs(60), running).await.expect("it waits for itself");
    ended.message().unwrap().content()
}

#[tokio::test]
async fn a_call_inside_of_a_call_runs_or_is_refused_and_never_waits_for_itself() {
    use WorkspaceUse::{None, Read, Write};
    for outer in [None, Read, Write] {
        for inner in [None, Read, Write] {
            let text = made_inside(&[outer, inner]).await;
            let conflicts = outer != None && inner != None && (outer, inner) != (Read, Read);
            let expected = if conflicts { "nested_call: inner cannot" } else { "it ran inside" };
            let expected = expected.replace("inner", "middle");
            assert!(text.contains(&expected), "{outer:?}, {inner:?}: {text}");
        }
    }
}

#[tokio::test]
async fn a_hold_is_known_through_a_call_that_has_none() {
    use WorkspaceUse::{None, Read, Write};
    let text = made_inside(&[Write, None, Write]).await;
    assert!(text.contains("inner cannot run inside of outer"), "{text}");
    assert_eq!(made_inside(&[Read, None, Read]).await, "it ran inside");
}

#[test]
fn the_error_says_what_to_do() {
    let error = RuntimeError::NestedCall { inner: "sew".into(), outer: "mend".into() };
    assert_eq!(error.code(), ErrorCode::NestedCall);
    let text = error.to_string();
    assert!(text.contains("let mend use neither") && text.contains("make the call after it"), "{text}");
}
