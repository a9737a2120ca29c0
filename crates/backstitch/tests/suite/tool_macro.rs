//! Tools that `#[tool]` generates, called through the real runner.

use std::time::Duration;

use backstitch::host::CallOutcome;
use backstitch::journal::{Effect, IdempotencyKey};
use backstitch::prelude::*;
use backstitch::session::BoxError;
use backstitch::tool::{Approval, ReconcileOutcome, WorkspaceUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::harness::Harness;

#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    number: u32,
    note: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Up,
    Down,
}

/// Finds rows.
///
/// Rows are counted from 1.
#[tool(
    effect = "pure",
    workspace = "none",
    timeout = "30s",
    example(description = "All rows with a knot", arguments = { "word": "knot", "limit": 2 }, result = [{ "number": 1, "note": "knot" }]),
    example(description = "From the end", arguments = { "word": "knot", "order": "down" })
)]
async fn find_rows(
    /// The word to look for.
    word: String,
    context: ToolContext,
    #[arg(description = "How many to give at most.", default = 3)] mut limit: u32,
    order: Option<Order>,
    #[arg(name = "type", default)] kind: Vec<String>,
) -> Result<Vec<Row>, ToolError> {
    assert_eq!(context.tool().as_str(), "find_rows");
    if limit == 0 {
        return Err(ToolError::Validation { message: "limit: give at least 1".to_owned() });
    }
    limit = limit.min(5);
    let note =
        [word.as_str()].into_iter().chain(kind.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let mut rows: Vec<Row> = (1..=limit).map(|number| Row { number, note: note.clone() }).collect();
    if matches!(order, Some(Order::Down)) {
        rows.reverse();
    }
    Ok(rows)
}

/// Adds two numbers. It is not async.
#[tool(name = "add-up", effect = "pure", workspace = "none")]
fn add(left: i64, right: i64) -> i64 {
    left + right
}

#[derive(Deserialize, JsonSchema)]
struct Range {
    /// The first row.
    from: u32,
    to: u32,
}

/// Counts the rows of a range.
#[tool(effect = "pure", workspace = "none")]
async fn count_rows(
    context: &ToolContext,
    #[args] Range { from, to }: Range,
) -> Result<u32, std::num::TryFromIntError> {
    assert_eq!(context.attempt(), 1);
    u32::try_from(i64::from(to) - i64::from(from))
}

/// Does nothing.
#[tool(approval, workspace = "none")]
fn nothing() {}

/// Returns a result of its own.
#[tool(effect = "idempotent")]
fn say() -> ToolResult {
    ToolResult::failed("no")
}

/// Sends a letter.
#[tool(effect = "external", workspace = "none", timeout = "60000ms", reconcile = was_sent, compensate = call_back)]
async fn send_letter(to: String) -> ToolOutcome {
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(ToolResult::ok(format!("sent to {to}")))
}

async fn was_sent(_key: IdempotencyKey, arguments: Map<String, Value>) -> Result<ReconcileOutcome, BoxError> {
    if arguments.contains_key("to") { Ok(ReconcileOutcome::DidNotHappen) } else { Err("to whom?".into()) }
}

async fn call_back(_key: IdempotencyKey, _arguments: Map<String, Value>) -> Result<(), std::fmt::Error> {
    Ok(())
}

#[tokio::test]
async fn arguments_are_passed_by_name_and_results_are_data() {
    let harness = Harness::new([find_rows(), add(), count_rows()]).await;
    let rows = harness.succeeds("find_rows", json!({"word": "knot", "limit": 2, "order": "down"})).await;
    assert_eq!(rows, json!([{"number": 2, "note": "knot"}, {"number": 1, "note": "knot"}]));
    let rows = harness.succeeds("find_rows", json!({"word": "a", "order": null, "type": ["b", "c"]})).await;
    assert_eq!(rows[2], json!({"number": 3, "note": "a b c"}));
    assert_eq!(harness.succeeds("add-up", json!({"left": 40, "right": 2})).await, 42);
    assert_eq!(harness.succeeds("count_rows", json!({"from": 2, "to": 5})).await, 3);
}

#[tokio::test]
async fn invalid_arguments_are_refused_with_path_expectation_and_value() {
    let harness = Harness::new([find_rows(), add(), count_rows(), nothing()]).await;
    let (kind, text) =
        harness.fails("find_rows", json!({"word": 7, "limit": -1, "order": "sideways", "wrod": "x"})).await;
    assert_eq!(kind, "invalid_arguments");
    for expected in ["/word", "\"string\"", "got 7", "/limit", "got -1", "/order", "\"sideways\"", "wrod"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (_, text) = harness.fails("add-up", json!({"left": 1})).await;
    assert!(text.contains("\"right\" is a required property"), "{text}");
    let (_, text) = harness.fails("count_rows", json!({"from": 1, "to": 2, "by": 3})).await;
    assert!(text.contains("'by' was unexpected"), "{text}");
    let (_, text) = harness.fails("nothing", json!({"much": 1})).await;
    assert!(text.contains("'much' was unexpected"), "{text}");
}

#[tokio::test]
async fn errors_of_functions_become_errors_of_tools() {
    let harness = Harness::new([find_rows(), count_rows(), say()]).await;
    let (kind, text) = harness.fails("find_rows", json!({"word": "x", "limit": 0})).await;
    assert_eq!((kind.as_str(), text.as_str()), ("validation", "limit: give at least 1"));
    let (kind, text) = harness.fails("count_rows", json!({"from": 5, "to": 2})).await;
    assert_eq!(kind, "tool_failed");
    assert!(text.contains("out of range"), "{text}");
    let (_, text) = harness.fails("say", json!({})).await;
    assert_eq!(text, "no");
}

#[tokio::test]
async fn a_tool_that_needs_approval_waits_for_it() {
    let harness = Harness::new([nothing(), send_letter()]).await;
    assert!(matches!(harness.run("nothing", json!({})).await, CallOutcome::NeedsApproval));
    let harness = Harness::new([send_letter()]).await;
    assert_eq!(harness.succeeds("send_letter", json!({"to": "me"})).await, "sent to me");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_that_is_not_async_may_block() {
    let harness = Harness::new([add()]).await;
    assert_eq!(harness.succeeds("add-up", json!({"left": 1, "right": 2})).await, 3);
}

#[test]
fn the_specification_follows_from_the_function() {
    let spec = find_rows().spec;
    assert_eq!(spec.description, "Finds rows.\n\nRows are counted from 1.");
    assert_eq!((spec.effect, spec.workspace), (Effect::Pure, WorkspaceUse::None));
    assert_eq!(spec.timeout, Some(Duration::from_secs(30)));
    assert_eq!(spec.examples.len(), 2);
    assert_eq!(spec.examples[0].result, Some(json!([{"number": 1, "note": "knot"}])));
    let parameters = &spec.parameters;
    assert_eq!(parameters["required"], json!(["word"]));
    assert_eq!(parameters["additionalProperties"], false);
    let names: Vec<_> = parameters["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["word", "limit", "order", "type"], "in the order of the arguments");
    assert_eq!(parameters["properties"]["word"]["description"], "The word to look for.");
    assert_eq!(parameters["properties"]["limit"]["description"], "How many to give at most.");
    assert_eq!(parameters["properties"]["limit"]["default"], 3);
    assert_eq!(spec.output.as_ref().unwrap()["type"], "array");

    let spec = add().spec;
    assert_eq!(spec.name.as_str(), "add-up");
    assert_eq!(spec.output.as_ref().unwrap()["type"], "integer");
    assert_eq!(count_rows().spec.parameters["properties"]["from"]["description"], "The first row.");
    assert_eq!(nothing().spec.approval, Approval::Needed);
    assert_eq!((nothing().spec.effect, nothing().spec.output.clone()), (Effect::External, None));
    assert_eq!((say().spec.effect, say().spec.workspace), (Effect::Idempotent, WorkspaceUse::Write));
}

#[tokio::test]
async fn hooks_are_called_with_key_and_arguments() {
    let tool = send_letter();
    let clock = std::sync::Arc::new(backstitch::time::FixedClock::default());
    let ids = backstitch::id::IdStream::from_seed([3; 32], clock);
    let key = IdempotencyKey::new(ids.next(), ids.next());
    let reconcile = tool.reconcile.unwrap();
    let arguments = Map::from_iter([("to".to_owned(), json!("me"))]);
    assert_eq!(reconcile(key.clone(), arguments).await.unwrap(), ReconcileOutcome::DidNotHappen);
    assert_eq!(reconcile(key.clone(), Map::new()).await.unwrap_err().to_string(), "to whom?");
    tool.compensate.unwrap()(key, Map::new()).await.unwrap();
}
