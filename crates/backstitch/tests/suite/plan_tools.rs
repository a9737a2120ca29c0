//! The tools for the plan, through the real runner.

use backstitch::host::CallOutcome;
use backstitch::slices::{Plan, PlanStatus, StepStatus};
use backstitch::tools::plan_tools;
use serde_json::json;

use crate::harness::Harness;

#[tokio::test]
async fn a_plan_is_written_changed_and_completed() {
    let harness = Harness::new(plan_tools()).await;
    let (kind, text) = harness.fails("read_plan", json!({})).await;
    assert!(kind == "no_plan" && text.contains("setup_plan"), "{kind}: {text}");
    harness.fails("add_plan_step", json!({"title": "sew"})).await;

    let plan = harness.succeeds("setup_plan", json!({"objective": "mend", "steps": ["find", "sew"]})).await;
    let steps = json!([
        {"step": 1, "title": "find", "status": "pending"},
        {"step": 2, "title": "sew", "status": "pending"},
    ]);
    assert_eq!(plan, json!({"objective": "mend", "status": "active", "steps": steps}));
    harness.succeeds("update_plan_step", json!({"step": 1, "status": "done"})).await;
    let plan = harness.succeeds("update_plan_step", json!({"step": 2, "status": "done"})).await;
    assert_eq!(plan["status"], "completed");
    let plan = harness.succeeds("add_plan_step", json!({"title": "iron"})).await;
    assert_eq!((&plan["status"], &plan["steps"][2]["step"]), (&json!("active"), &json!(3)));
    assert_eq!(harness.succeeds("read_plan", json!({})).await, plan);

    let state = harness.live.state().await;
    let plans = state.session.all::<Plan>().unwrap();
    assert_eq!((plans.len(), plans.get(0).unwrap().status()), (1, PlanStatus::Active));
    assert_eq!(plans.get(0).unwrap().steps()[0].status, StepStatus::Done);
}

#[tokio::test]
async fn invalid_calls_leave_the_plan_unchanged() {
    let harness = Harness::new(plan_tools()).await;
    let plan = harness.succeeds("setup_plan", json!({"objective": "mend"})).await;
    for (tool, arguments) in [
        ("setup_plan", json!({"objective": " "})),
        ("setup_plan", json!({"objective": "mend", "steps": [""]})),
        ("add_plan_step", json!({"title": ""})),
        ("update_plan_step", json!({"step": 1, "status": "done"})),
        ("update_plan_step", json!({"step": 1, "status": "finished"})),
    ] {
        harness.fails(tool, arguments).await;
    }
    assert_eq!(harness.succeeds("read_plan", json!({})).await, plan);
    assert!(matches!(harness.run("read_plan", json!({})).await, CallOutcome::Succeeded(_)));
}
