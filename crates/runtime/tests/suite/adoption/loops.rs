//! Main loops that are stopped inside of a handler, and checkpoints that cannot be saved.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::journal::Effect;
use backstitch_core::session::Snapshot;
use backstitch_core::tool::Tool;
use backstitch_runtime::{
    CheckpointError, CheckpointHandler, MainLoop, MainLoopError, Mission, Runtime, RuntimeError,
    SessionOptions, Task, Tools,
};
use backstitch_store::MemoryStore;

use super::world::{EFFECTS, Offer, World, nameless, offering, replies};

/// Checkpoints in memory. After `limit` of them, saving fails.
#[derive(Default)]
struct Memory {
    saved: Mutex<Option<String>>,
    saves: AtomicUsize,
    limit: Option<usize>,
}

impl CheckpointHandler<()> for Memory {
    fn load(&self, (): &()) -> Result<Option<Snapshot>, CheckpointError> {
        Ok(self.saved.lock().unwrap().as_ref().map(|text| Snapshot::from_json(text).unwrap()))
    }

    fn save(&self, (): &(), snapshot: &Snapshot) -> Result<(), CheckpointError> {
        if self.limit.is_some_and(|limit| self.saves.fetch_add(1, Ordering::SeqCst) >= limit) {
            return Err(CheckpointError::Name { name: "the disk is full".into() });
        }
        *self.saved.lock().unwrap() = Some(snapshot.to_json()?);
        Ok(())
    }

    fn clear(&self, (): &()) -> Result<(), CheckpointError> {
        *self.saved.lock().unwrap() = None;
        Ok(())
    }
}

/// Whether a loop evaluates a mission or a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mission,
    Prompt,
}

struct Paying {
    runtime: Runtime,
    memory: Arc<Memory>,
    tool: Tool,
    kind: Kind,
    offer: Offer,
}

impl Paying {
    fn new(memory: &Arc<Memory>, tool: &Tool, kind: Kind, offer: Offer) -> Self {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        Self { runtime, memory: memory.clone(), tool: tool.clone(), kind, offer }
    }
}

impl MainLoop for Paying {
    type Request = ();

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn create_session(&self, (): &()) -> SessionOptions {
        SessionOptions::default()
    }

    fn create_prompt(&self, (): &()) -> Task {
        match self.kind {
            Kind::Prompt => offering(&self.tool, self.offer).into(),
            Kind::Mission => {
                let offered = (self.offer != Offer::Nowhere).then(|| self.tool.clone());
                let agent = nameless(replies()).tools(Tools::new(offered).unwrap());
                (agent, Mission::from("pay")).into()
            }
        }
    }

    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<()>>> {
        Some(self.memory.clone())
    }
}

#[tokio::test]
async fn a_main_loop_repeats_no_external_call() {
    let ways = [(Kind::Mission, Offer::Agent), (Kind::Prompt, Offer::Agent), (Kind::Prompt, Offer::Section)];
    for effect in EFFECTS {
        for (kind, offer) in ways {
            let what = format!("{effect:?} offered by {offer:?} to a {kind:?}");
            let (world, memory) = (World::stopping(1), Arc::<Memory>::default());
            let tool = world.pay(effect);
            let first = Paying::new(&memory, &tool, kind, offer);
            tokio::spawn(async move { first.execute(Arc::new(())).await });
            world.until(1).await;

            let gone = Paying::new(&memory, &tool, kind, Offer::Nowhere);
            let error = gone.execute(Arc::new(())).await.unwrap_err();
            let mismatch = matches!(error, MainLoopError::Runtime(RuntimeError::PromptMismatch { .. }));
            assert!(mismatch, "{what}: {error}");

            let again = Paying::new(&memory, &tool, kind, offer).execute(Arc::new(())).await;
            if effect == Effect::External {
                let error = again.unwrap_err();
                let unknown =
                    matches!(error, MainLoopError::Runtime(RuntimeError::ToolIdempotencyError { .. }));
                assert!(unknown, "{what}: {error}");
                assert_eq!(world.attempts().len(), 1, "{what}");
            } else {
                assert_eq!(again.unwrap().text, "done", "{what}");
                let [one, other] = &world.attempts()[..] else { panic!("{what}") };
                assert_eq!((&one.key, other.is_resume), (&other.key, true), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_saved_stops_the_loop_before_its_next_action() {
    // A failure before the request, before the call and after the call: each is reported.
    for (limit, calls) in [(0, 0), (1, 0), (2, 1)] {
        let world = World::stopping(0);
        let memory = Arc::new(Memory { limit: Some(limit), ..Memory::default() });
        let tool = world.pay(Effect::External);
        let failing = Paying::new(&memory, &tool, Kind::Mission, Offer::Agent);
        let error = failing.execute(Arc::new(())).await.unwrap_err();
        assert!(matches!(error, MainLoopError::Checkpoint(CheckpointError::Name { .. })), "{limit}: {error}");
        assert_eq!(world.attempts().len(), calls, "{limit}");
    }
    let world = World::stopping(0);
    let memory = Arc::new(Memory { limit: Some(100), ..Memory::default() });
    let sound = Paying::new(&memory, &world.pay(Effect::External), Kind::Mission, Offer::Agent);
    assert_eq!(sound.execute(Arc::new(())).await.unwrap().text, "done");
}
