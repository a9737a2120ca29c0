//! The built-in slices.

use backstitch_core::budget::Amounts;
use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::session::{Slice, SlicePolicy, replace_latest, upsert_by};
use backstitch_core::slices::{
    Plan, PlanError, PlanStatus, PromptExecuted, PromptRendered, ReceivedSignal, RunContext, StepStatus,
    ToolInvoked, Visibility, VisibilityOverrides, WorkspaceDigest, excerpt, small,
};
use backstitch_core::time::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::samples::{items, session, session_id};

#[test]
fn the_table_of_names_and_policies() {
    /// A slice without a declared policy.
    #[derive(serde::Serialize, serde::Deserialize, backstitch_macros::Slice)]
    #[slice(name = "custom", crate = backstitch_core::__private)]
    struct Custom;

    fn row<S: Slice>() -> (&'static str, u32, SlicePolicy) {
        (S::NAME, S::VERSION, session().policy_of::<S>())
    }
    let table = [
        row::<Plan>(),
        row::<VisibilityOverrides>(),
        row::<ReceivedSignal>(),
        row::<WorkspaceDigest>(),
        row::<ToolInvoked>(),
        row::<PromptRendered>(),
        row::<PromptExecuted>(),
        row::<Custom>(),
    ];
    assert_eq!(
        table,
        [
            ("plan", 1, SlicePolicy::State),
            ("visibility_overrides", 1, SlicePolicy::State),
            ("received_signal", 1, SlicePolicy::State),
            ("workspace_digest", 1, SlicePolicy::Cache),
            ("tool_invoked", 1, SlicePolicy::Log),
            ("prompt_rendered", 1, SlicePolicy::Log),
            ("prompt_executed", 1, SlicePolicy::Log),
            ("custom", 1, SlicePolicy::State),
        ]
    );
}

#[test]
fn a_plan_completes_with_its_last_step_and_is_active_again_with_a_new_one() {
    let mut plan = Plan::new("mend", ["find the tear", "sew"]).unwrap();
    assert_eq!(plan.status(), PlanStatus::Active);
    plan.set_step(1, StepStatus::Done).unwrap();
    plan.set_step(2, StepStatus::InProgress).unwrap();
    assert_eq!(plan.status(), PlanStatus::Active);
    plan.set_step(2, StepStatus::Done).unwrap();
    assert_eq!(plan.status(), PlanStatus::Completed);
    assert_eq!(plan.add_step("iron"), Ok(3));
    assert_eq!((plan.status(), plan.steps()[2].status), (PlanStatus::Active, StepStatus::Pending));
    assert_eq!(plan.set_step(4, StepStatus::Done), Err(PlanError::NoStep { id: 4 }));
    assert_eq!(Plan::new("rest", [""; 0]).unwrap().status(), PlanStatus::Active, "nothing was planned yet");
}

#[test]
fn the_numbers_of_steps_grow() {
    let plan = |ids: &[u32]| {
        let steps: Vec<_> =
            ids.iter().map(|id| json!({"id": id, "title": "", "status": "pending"})).collect();
        serde_json::from_value::<Plan>(json!({"objective": "mend", "steps": steps}))
    };
    assert_eq!(plan(&[2, 5]).unwrap().add_step("next"), Ok(6));
    assert_eq!(plan(&[u32::MAX]).unwrap().add_step("next"), Err(PlanError::Full));
    for ids in [&[0][..], &[1, 1], &[2, 1]] {
        assert!(plan(ids).unwrap_err().to_string().contains("out of order"), "{ids:?}");
    }
}

#[test]
fn a_plan_is_undone_with_a_failed_call() {
    let mut session = session();
    session.register::<Plan, Plan>(replace_latest);
    session.append(Plan::new("mend", ["sew"]).unwrap()).unwrap();
    let snapshot = session.snapshot();
    let mut plan = Plan::clone(&session.latest::<Plan>().unwrap().unwrap());
    plan.set_step(1, StepStatus::Done).unwrap();
    session.append(plan).unwrap();
    assert_eq!(session.latest::<Plan>().unwrap().unwrap().status(), PlanStatus::Completed);
    session.rollback(&snapshot).unwrap();
    assert_eq!(session.latest::<Plan>().unwrap().unwrap().status(), PlanStatus::Active);
}

#[test]
fn overrides_hold_by_path() {
    let mut overrides = VisibilityOverrides::default();
    overrides.set("workspace.files", Visibility::Full);
    overrides.set("notes", Visibility::Full);
    overrides.set("notes", Visibility::Summary);
    assert_eq!(overrides.get("notes"), Some(Visibility::Summary));
    overrides.remove("notes");
    assert_eq!(overrides.get("notes"), None);
    assert_eq!(overrides.iter().collect::<Vec<_>>(), [("workspace.files", Visibility::Full)]);
    assert_eq!(serde_json::to_value(&overrides).unwrap(), json!({"overrides": {"workspace.files": "full"}}));
}

#[test]
fn of_each_section_the_latest_digest_counts() {
    let mut session = session();
    session.register::<WorkspaceDigest, WorkspaceDigest>(upsert_by(|digest: &WorkspaceDigest| {
        digest.section_key.clone()
    }));
    for (key, summary) in [("files", "old"), ("tests", "old"), ("files", "new")] {
        session.append(WorkspaceDigest::new(key, summary, "")).unwrap();
    }
    let digests = items::<WorkspaceDigest>(&session);
    assert_eq!(digests, [WorkspaceDigest::new("tests", "old", ""), WorkspaceDigest::new("files", "new", "")]);
}

fn run() -> RunContext {
    RunContext::new(session_id(1), EvaluationId::from_uuid(Uuid::from_u128(2)))
}

fn tool_invoked() -> ToolInvoked {
    ToolInvoked {
        call_id: CallId::from_uuid(Uuid::from_u128(3)),
        prompt_name: "mender".into(),
        adapter: "scripted".into(),
        name: "sew".into(),
        params: small(json!({"stitches": 3})),
        success: false,
        rendered_output: excerpt("the thread broke"),
        usage: Some(Amounts { calls: 1, ..Amounts::ZERO }),
        run: RunContext { attempt: 2, worker_id: Some("w1".into()), ..run() },
        created_at: Timestamp::UNIX_EPOCH,
        extra: Extra::default(),
    }
}

#[test]
fn what_is_logged_stays_when_the_call_fails() {
    let mut session = session();
    let snapshot = session.snapshot();
    session.append(tool_invoked()).unwrap();
    session.append(Plan::new("mend", ["sew"]).unwrap()).unwrap();
    session.rollback(&snapshot).unwrap();
    assert_eq!((items::<ToolInvoked>(&session), items::<Plan>(&session)), (vec![tool_invoked()], vec![]));
}

#[test]
fn every_item_comes_back_with_the_fields_that_nobody_knows() {
    fn check<S: Slice + PartialEq + std::fmt::Debug>(item: &S) -> Value {
        let mut stored = serde_json::to_value(item).unwrap();
        assert_eq!(serde_json::from_value::<S>(stored.clone()).unwrap(), *item);
        stored["of_tomorrow"] = json!([1, {"a": null}]);
        let read: S = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), stored);
        stored
    }
    check(&Plan::new("mend", ["sew"]).unwrap());
    check(&VisibilityOverrides::default());
    check(&WorkspaceDigest::new("files", "few", "a\nb"));
    check(&PromptRendered {
        prompt_ns: "house".into(),
        prompt_key: "mend".into(),
        prompt_name: "mender".into(),
        adapter: "scripted".into(),
        render_inputs: None,
        rendered: Digest::of(b"Mend it."),
        rendered_bytes: 8,
        descriptor: Some(Digest::of(b"contract")),
        run: run(),
        created_at: Timestamp::UNIX_EPOCH,
        extra: Extra::default(),
    });
    check(&PromptExecuted {
        prompt_name: "mender".into(),
        adapter: "scripted".into(),
        text: Some("mended".into()),
        output: None,
        usage: None,
        run: run(),
        created_at: Timestamp::UNIX_EPOCH,
        extra: Extra::default(),
    });
    let stored = check(&tool_invoked());
    insta::assert_snapshot!(serde_json::to_string_pretty(&stored).unwrap(), @r#"
    {
      "call_id": "00000000-0000-0000-0000-000000000003",
      "prompt_name": "mender",
      "adapter": "scripted",
      "name": "sew",
      "params": {
        "stitches": 3
      },
      "success": false,
      "rendered_output": "the thread broke",
      "usage": {
        "calls": 1
      },
      "run": {
        "session_id": "00000000-0000-0000-0000-000000000001",
        "evaluation_id": "00000000-0000-0000-0000-000000000002",
        "attempt": 2,
        "worker_id": "w1"
      },
      "created_at": "1970-01-01T00:00:00.000000Z",
      "of_tomorrow": [
        1,
        {
          "a": null
        }
      ]
    }
    "#);
}
