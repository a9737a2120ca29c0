//! The public interface as a new user sees it: only the prelude.

use std::path::Path;

use backstitch::prelude::*;
use backstitch::{RewindScope, RewoundFiles};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

#[derive(Debug, Serialize, Deserialize, Slice)]
#[slice(name = "door_stitch")]
struct Stitch {
    row: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Report {
    stitches: u32,
}

/// Sews a row.
#[tool(effect = "workspace")]
async fn sew(
    context: ToolContext,
    /// The row.
    row: u32,
) -> Result<String, ToolError> {
    context.output("sewing\n");
    context.append(Stitch { row })?;
    let text = format!("{} rows", context.all::<Stitch>()?.len());
    let mode = backstitch::ports::WriteMode::Overwrite;
    context.filesystem()?.write_bytes(&"seam.txt".parse()?, text.as_bytes(), mode)?;
    Ok(text)
}

/// Sends the coat.
#[tool(approval, workspace = "none")]
async fn send() -> Result<String, ToolError> {
    Ok("sent".to_owned())
}

fn script(place: &Path, name: &str, text: &str) -> String {
    let path = place.join(name);
    std::fs::write(&path, text).unwrap();
    format!("scripted:{}", path.display())
}

const SEWING: &str = r#"
[[reply]]
text = "I sew."
[[reply.call]]
name = "sew"
arguments = { row = 1 }

[[reply]]
text = '{"stitches": 1}'
output = { stitches = 1 }
"#;

fn tailor(place: &TempDir) -> Agent {
    // A script holds the replies of a whole session: here twice, for a mission and a follow-up.
    Agent::new("tailor")
        .model(script(place.path(), "sewing.toml", &SEWING.repeat(2)))
        .instructions("You mend seams.")
        .tools([sew(), send()])
        .workspace(place.path().join("shop"))
        .answers_with::<Report>()
}

#[tokio::test]
async fn an_agent_is_started_followed_asked_rewound_and_forked() {
    let place = TempDir::new().unwrap();
    let runtime = Runtime::at(place.path().join("store/store.db")).unwrap();
    let agent = tailor(&place);
    let mut run = runtime.start(&agent, "Mend the hem").await.unwrap();
    let (mut positions, mut output) = (Vec::new(), String::new());
    while let Some(event) = run.next().await {
        assert!(!event.to_string().contains('\n'), "{event}");
        positions.extend(event.record().map(|record| record.position.number()));
        if let Some(LiveKind::Output { text, .. }) = event.live().map(|event| &event.kind) {
            output.push_str(text);
        }
    }
    assert_eq!(positions, (0..positions.len() as u64).collect::<Vec<_>>(), "every record, in order");
    assert_eq!(output, "sewing\n");
    assert_eq!(run.answer::<Report>().await.unwrap(), Report { stitches: 1 });
    assert_eq!(run.answer::<Report>().await.unwrap(), Report { stitches: 1 }, "more than once");
    assert!(matches!(run.answer::<String>().await, Err(RuntimeError::AnswerType { .. })));
    let session = run.session();
    let seam = place.path().join("shop/seam.txt");
    assert_eq!(std::fs::read_to_string(&seam).unwrap(), "1 rows");
    assert_eq!(runtime.state(session).await.unwrap().all::<Stitch>().unwrap().len(), 1);
    let listed = runtime.sessions(SessionQuery::roots()).await.unwrap().sessions;
    assert_eq!(listed.iter().map(IndexedSession::id).collect::<Vec<_>>(), [session]);
    let shop = place.path().join("shop").canonicalize().unwrap();
    assert_eq!(listed[0].summary.workspace.as_deref(), shop.to_str());
    assert_eq!((listed[0].status(), &*listed[0].summary.mission), (IndexedStatus::Idle, "Mend the hem"));
    assert_eq!(runtime.status(session).await.unwrap(), SessionStatus::Idle);

    let again = runtime.ask(session, &agent, "Now the sleeve").await.unwrap();
    assert_eq!(again.answer::<Report>().await.unwrap(), Report { stitches: 1 });
    assert_eq!(std::fs::read_to_string(&seam).unwrap(), "2 rows");

    let elsewhere = ForkOptions::within(place.path().join("other"));
    let forked = runtime.fork_with(session, PointSpec::Head, elsewhere).await.unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("other/seam.txt")).unwrap(), "2 rows");
    runtime.rewind(session, PointSpec::Start).await.unwrap();
    assert!(!seam.exists());
    assert_eq!(runtime.state(session).await.unwrap().all::<Stitch>().unwrap().len(), 0);
    assert_eq!(runtime.state(forked.session).await.unwrap().all::<Stitch>().unwrap().len(), 2);
    runtime.undo(session).await.unwrap();
    assert_eq!(std::fs::read_to_string(&seam).unwrap(), "2 rows");
    runtime.redo(session).await.unwrap();
    assert!(!seam.exists());
    runtime.undo(session).await.unwrap();
}

/// Pays. It leaves half of a bill, and does not return.
#[tool(effect = "external")]
async fn pay(context: ToolContext) -> Result<String, ToolError> {
    context.filesystem()?.write_bytes(&"bill.txt".parse()?, b"half", WriteMode::Overwrite)?;
    std::future::pending().await
}

/// Operations need no agent, since the journal names the directory of the files.
#[test]
fn operations_open_the_recorded_directory() {
    let place = TempDir::new().unwrap();
    let [store, shop, moved] = ["store/store.db", "shop", "moved"].map(|name| place.path().join(name));
    let paying = "[[reply]]\n[[reply.call]]\nname = \"pay\"\narguments = {}\n\n[[reply]]\ntext = \"Done.\"\n";
    let model = script(place.path(), "paying.toml", paying);
    let agent = Agent::new("clerk").model(model).tools([pay()]).workspace(&*shop);
    let bill = shop.join("bill.txt");
    let process = tokio::runtime::Runtime::new().unwrap();
    let session = process.block_on(async {
        let run = Runtime::at(&store).unwrap().start(&agent, "Pay").await.unwrap();
        while !bill.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        run.session()
    });
    // The process dies inside of the call.
    drop(process);
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let runtime = Runtime::at(&store).unwrap();
        let ended = runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call, .. } = ended else {
            panic!("{ended:?}")
        };
        let decided = runtime.decide(session, call, Decision::Fail { reason: None }, None).await.unwrap();
        assert_eq!(decided, backstitch::DecisionState::Recorded);
        assert!(!bill.exists(), "the decision has restored the files");
        let run = runtime.resume(session, &agent).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
        std::fs::write(&bill, "by hand").unwrap();
        let scope = RewindScope { files: RewoundFiles::All, ..RewindScope::default() };
        let all = RewindOptions { scope, ..RewindOptions::default() };
        runtime.restore_with(session, PointSpec::Start, [FilePath::root()], all).await.unwrap();
        assert!(!bill.exists());
        runtime.undo(session).await.unwrap();
        assert_eq!(std::fs::read_to_string(&bill).unwrap(), "by hand");

        // A directory that was moved is not created again.
        std::fs::rename(&shop, &moved).unwrap();
        let codes = [
            runtime.rewind(session, PointSpec::Start).await.unwrap_err().kind().to_owned(),
            runtime.redo(session).await.unwrap_err().kind().to_owned(),
        ];
        assert_eq!(codes, ["workspace_gone"; 2]);
        assert!(!shop.exists());
        let all = RewindOptions { scope, ..RewindOptions::within(&*moved) };
        runtime.rewind_with(session, PointSpec::Start, all).await.unwrap();
        assert!(!moved.join("bill.txt").exists());
    });
}

#[tokio::test]
async fn a_call_that_waits_is_approved_or_denied() {
    let place = TempDir::new().unwrap();
    let sending =
        "[[reply]]\n[[reply.call]]\nname = \"send\"\narguments = {}\n\n[[reply]]\ntext = \"Done.\"\n";
    let model = script(place.path(), "sending.toml", sending);
    let agent = Agent::new("tailor").model(model).tools([send()]);
    let runtime = Runtime::in_memory();
    for approve in [true, false] {
        let run = runtime.start(&agent, "Send it").await.unwrap();
        let ended = run.outcome().await.unwrap();
        assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
        let session = run.session();
        let call = runtime.waiting_calls(session).await.unwrap()[0].call;
        if approve {
            runtime.approve(session, call).await.unwrap();
        } else {
            runtime.deny(session, call, "not today").await.unwrap();
        }
        let run = runtime.resume(session, &agent).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
        let view = runtime.view(session).await.unwrap();
        let said = view.transcript().unwrap().all().iter().map(|one| one.content()).collect::<Vec<_>>();
        assert_eq!(said.iter().any(|text| text == "sent"), approve, "{said:?}");
        assert_eq!(said.iter().any(|text| text.contains("not today")), !approve, "{said:?}");
    }
}

#[tokio::test]
async fn errors_of_an_agent_are_reported_before_anything_is_stored() {
    let place = TempDir::new().unwrap();
    let runtime = Runtime::in_memory();
    let wrong = [
        // Without a namespace, an agent is called by its name alone.
        (Agent::new("tailor"), "agent tailor has no model"),
        (Agent::new("tailor").model("nonsense"), "cannot be opened"),
        // The cause is a part of the text.
        (Agent::new("tailor").model("scripted:/nowhere/at/all.toml"), "agent tailor cannot be opened"),
        (Agent::new("tailor").model("scripted:/nowhere/at/all.toml"), "No such file or directory"),
        (tailor(&place).tools([sew()]), "two tools called sew"),
        (tailor(&place).workspace("/proc/1/nothing"), "cannot be opened"),
    ];
    for (agent, words) in wrong {
        let error = runtime.start(&agent, "Sew").await.unwrap_err();
        assert!(error.to_string().contains(words), "{error} ({words})");
    }
    for blank in [Mission::new(Vec::new()), "".into(), " \n\t".into()] {
        let error = runtime.start(&tailor(&place), blank).await.unwrap_err();
        assert!(matches!(error, RuntimeError::EmptyMission), "{error}");
    }
    assert!(runtime.sessions(SessionQuery::new()).await.unwrap().sessions.is_empty());
}

#[tokio::test]
async fn an_isolated_agent_works_in_a_copy_until_it_is_applied() {
    let place = TempDir::new().unwrap();
    let shop = place.path().join("shop");
    std::fs::create_dir(&shop).unwrap();
    std::fs::write(shop.join("coat.txt"), "a coat\n").unwrap();
    let runtime = Runtime::in_memory();
    let agent = tailor(&place).isolated();
    let run = runtime.start(&agent, "Mend the hem").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    assert!(!shop.join("seam.txt").exists());
    let view = runtime.view(session).await.unwrap();
    let copy = std::path::PathBuf::from(view.directory().unwrap());
    assert_eq!(view.isolation().unwrap().record.directory, copy.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(copy.join("coat.txt")).unwrap(), "a coat\n");
    // A follow-up finds the copy, also one that was deleted.
    std::fs::remove_dir_all(&copy).unwrap();
    runtime.ask(session, &agent, "Now the sleeve").await.unwrap().outcome().await.unwrap();
    assert_eq!(std::fs::read_to_string(copy.join("seam.txt")).unwrap(), "2 rows");
    assert_eq!(std::fs::read_to_string(copy.join("coat.txt")).unwrap(), "a coat\n");

    let applied = runtime.apply(session, backstitch::ApplyOptions::default()).await.unwrap();
    assert_eq!(applied.changes.len(), 1, "{applied:?}");
    assert_eq!(std::fs::read_to_string(shop.join("seam.txt")).unwrap(), "2 rows");
    runtime.undo_apply(session, backstitch::ApplyOptions::default()).await.unwrap();
    assert!(!shop.join("seam.txt").exists() && shop.join("coat.txt").exists());
}

#[tokio::test]
async fn runs_continue_without_readers_and_stop_on_request() {
    let place = TempDir::new().unwrap();
    let slow = "[[reply]]\ntext = \"Slowly.\"\ndelay_ms = 30000\n";
    let slow = Agent::new("slow").model(script(place.path(), "slow.toml", slow));
    let runtime = Runtime::at(place.path().join("store/store.db")).unwrap();
    let agent = tailor(&place);
    let session = runtime.start(&agent, "Mend the hem").await.unwrap().session();
    // The run was dropped. Another reader sees it end.
    let mut events = runtime.events(session);
    loop {
        let event = events.next().await.unwrap().unwrap();
        if event.record().is_some_and(|record| record.body.kind() == "evaluation_finished") {
            break;
        }
    }
    let paused = runtime.start(&slow, "Wait").await.unwrap();
    paused.pause();
    let ended = paused.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    let cancelled = runtime.start(&slow, "Wait").await.unwrap();
    cancelled.cancel().await.unwrap();
    let ended = cancelled.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
    assert!(matches!(cancelled.cancel().await, Err(RuntimeError::NothingToCancel { .. })));

    let (one, other) =
        (runtime.start(&slow, "Wait").await.unwrap(), runtime.start(&slow, "Wait").await.unwrap());
    runtime.shutdown().await;
    for run in [one, other] {
        let ended = run.outcome().await.unwrap();
        assert!(matches!(ended, DriveOutcome::Paused { .. }), "{ended:?}");
    }
    assert!(matches!(runtime.start(&slow, "Wait").await, Err(RuntimeError::ShuttingDown)));
}

/// A policy that panics, as one with a defect does.
struct Broken(backstitch::message::PolicyName);

impl backstitch::ports::Policy for Broken {
    fn name(&self) -> &backstitch::message::PolicyName {
        &self.0
    }

    fn describe(&self, _: &backstitch::ports::PolicyRequest) -> backstitch::ports::RequestInfo {
        panic!("a defect of the policy")
    }

    fn decide(
        &self,
        _: backstitch::ports::PolicyRequest,
        _: backstitch::ports::RequestInfo,
    ) -> backstitch::ports::BoxFuture<
        '_,
        Result<backstitch::ports::PolicyAnswer, backstitch::ports::PolicyError>,
    > {
        panic!("a defect of the policy")
    }
}

#[tokio::test]
async fn a_panic_while_a_session_is_driven_is_an_error_and_the_session_resumes() {
    let place = TempDir::new().unwrap();
    let runtime = Runtime::at(place.path().join("store/store.db")).unwrap();
    let broken = tailor(&place).policy(Broken(backstitch::message::PolicyName::new("agent").unwrap()));
    let mut run = runtime.start(&broken, "Mend the hem").await.unwrap();
    while run.next().await.is_some() {}
    let error = run.outcome().await.unwrap_err();
    assert!(matches!(error.cause(), RuntimeError::DriverPanicked), "{error}");
    assert_eq!(runtime.interrupted_sessions().await.unwrap(), [run.session()]);
    let resumed = runtime.resume(run.session(), &tailor(&place)).await.unwrap();
    assert_eq!(resumed.answer::<Report>().await.unwrap(), Report { stitches: 1 });
}
