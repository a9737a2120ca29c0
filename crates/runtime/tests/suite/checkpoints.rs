//! The usage examples of the specifications: an observer that writes checkpoints, and a main loop with a
//! handler.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use backstitch_core::journal::{Effect, InnerMessage};
use backstitch_core::session::Snapshot;
use backstitch_core::view::Transcript;
use backstitch_runtime::{
    CheckpointError, CheckpointHandler, FileCheckpointHandler, MainLoop, MainLoopError, Mission,
    ResumeOptions, Runtime, SessionOptions, Task, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::findings::Finding;
use crate::tailor::{keep, reply, scripted};

#[tokio::test]
async fn an_observer_of_messages_writes_a_checkpoint_that_another_process_resumes_from() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checkpoint.json");
    let ran = Arc::default();
    let tools = Tools::new([keep(Effect::Workspace, Arc::clone(&ran))]).unwrap();
    let written = path.clone();
    let agent = scripted(vec![reply("a", &[("keep", json!({"text": "x"}))])]).tools(tools.clone()).set_up(
        move |session| {
            let path = written.clone();
            session.observe::<InnerMessage>(move |observation| {
                Ok(std::fs::write(&path, observation.session.snapshot().to_json()?)?)
            });
        },
    );
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("sew").await.unwrap_err();

    let snapshot = Snapshot::from_json(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
    let longer = scripted(vec![reply("a", &[("keep", json!({"text": "x"}))]), reply("done", &[])]);
    let options = SessionOptions::default();
    let driver = elsewhere.adopt_snapshot(longer.tools(tools), &snapshot, options).await.unwrap();
    let state = driver.session().state().await;
    let transcript = Transcript::of(&state.session).unwrap();
    let evaluation = transcript.latest_evaluation_id().unwrap();
    assert_eq!(transcript.pending_tool_calls(evaluation), []);
    assert_eq!(state.session.all::<Finding>().unwrap().len(), 1);
    drop(state);
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

type Handler = FileCheckpointHandler<fn(&String) -> String>;

struct Review {
    runtime: Runtime,
    handler: Arc<Handler>,
    replies: usize,
    ran: Arc<std::sync::atomic::AtomicUsize>,
}

impl MainLoop for Review {
    type Request = String;

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn create_session(&self, _: &String) -> SessionOptions {
        SessionOptions::default()
    }

    fn create_prompt(&self, request: &String) -> Task {
        let turn = |text: &str| reply(text, &[("keep", json!({"text": text}))]);
        let mut replies = vec![turn("one"), turn("two"), reply("reviewed", &[])];
        replies.truncate(self.replies);
        let tools = Tools::new([keep(Effect::Workspace, self.ran.clone())]).unwrap();
        (scripted(replies).tools(tools), Mission::from(format!("review {request}"))).into()
    }

    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<String>>> {
        Some(self.handler.clone())
    }
}

#[tokio::test]
async fn a_main_loop_loads_first_saves_after_each_turn_and_clears_on_success() {
    let directory = tempfile::tempdir().unwrap();
    let name: fn(&String) -> String = |request| request.clone();
    let handler = Arc::new(FileCheckpointHandler::new(directory.path(), name));
    let ran: Arc<std::sync::atomic::AtomicUsize> = Arc::default();
    let review = |replies| Review {
        runtime: Runtime::new(Arc::new(MemoryStore::new())),
        handler: handler.clone(),
        replies,
        ran: ran.clone(),
    };
    let request = Arc::new("seam-7".to_owned());
    // The script ends after two turns, which stands for a process that died and lost its store.
    let error = review(2).execute(request.clone()).await.unwrap_err();
    assert!(matches!(error, MainLoopError::Runtime(_)), "{error}");
    assert!(directory.path().join("seam-7.json").exists());
    let answered = review(3).execute(request.clone()).await.unwrap();
    assert_eq!((answered.text.as_str(), ran.load(Ordering::SeqCst)), ("reviewed", 2));
    assert!(!directory.path().join("seam-7.json").exists());

    // A damaged checkpoint is reported, and after it is cleared the loop starts from the beginning.
    std::fs::write(directory.path().join("seam-7.json"), "{").unwrap();
    let error = review(3).execute(request.clone()).await.unwrap_err();
    assert!(matches!(error, MainLoopError::Checkpoint(CheckpointError::Restore { .. })), "{error}");
    handler.clear(&request).unwrap();
    assert!(review(3).execute(request).await.is_ok());
    let error = review(3).execute(Arc::new("../seam".to_owned())).await.unwrap_err();
    assert!(matches!(error, MainLoopError::Checkpoint(CheckpointError::Name { .. })), "{error}");
}

/// Answers requests with a prompt whose section is opened half-way.
struct Workshop {
    runtime: Runtime,
    handler: Arc<Handler>,
    replies: usize,
}

impl MainLoop for Workshop {
    type Request = String;

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn create_session(&self, _: &String) -> SessionOptions {
        SessionOptions::default()
    }

    fn create_prompt(&self, _: &String) -> Task {
        let mut replies = vec![
            reply("", &[crate::prompts::open(&["room"])]),
            reply("", &[("sew", json!({}))]),
            reply("sewn", &[]),
        ];
        replies.truncate(self.replies);
        (scripted(replies), crate::prompts::workshop()).into()
    }

    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<String>>> {
        Some(self.handler.clone())
    }
}

#[tokio::test]
async fn a_main_loop_evaluates_prompts_and_continues_with_evaluations_that_supersede_others() {
    let directory = tempfile::tempdir().unwrap();
    let name: fn(&String) -> String = |request| request.clone();
    let handler = Arc::new(FileCheckpointHandler::new(directory.path(), name));
    let workshop = |replies| Workshop {
        runtime: Runtime::new(Arc::new(MemoryStore::new())),
        handler: handler.clone(),
        replies,
    };
    let request = Arc::new("coat".to_owned());
    workshop(2).execute(request.clone()).await.unwrap_err();
    assert!(directory.path().join("coat.json").exists());
    let answered = workshop(3).execute(request.clone()).await.unwrap();
    assert_eq!(answered.text, "sewn");
    assert!(!directory.path().join("coat.json").exists());
    assert_eq!(workshop(3).execute(request).await.unwrap().text, "sewn");
}
