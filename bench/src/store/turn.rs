//! How much a turn of an agent adds to a store.
//!
//! A scripted model says something and calls a tool, and the tool returns a text: all records of a real turn are there.

use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::journal::Effect;
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{ScriptedCall, ScriptedReply};
use backstitch_runtime::{Agent, Runtime, SessionOptions};
use backstitch_store::SqliteStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use crate::agent::{Failed, scripted};
use crate::aims;
use crate::report::{Report, ratio};

/// Bytes of an answer, of the arguments of a call as JSON, and of its result.
const SIZES: [usize; 3] = [200, 60, 1_024];

/// Length of the JSON around the one argument.
const AROUND: usize = r#"{"path":""}"#.len();

/// The growth is that between two lengths, so that what a session has once does not count.
const TURNS: [usize; 2] = [50, 450];

/// What a store holds after a session.
struct Sizes {
    file: f64,
    rows: f64,
    snapshot: f64,
}

pub(crate) fn run(report: &mut Report) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return eprintln!("no async runtime could be made") };
    for (name, effect) in [("pure", Effect::Pure), ("external", Effect::External)] {
        if let Err(error) = runtime.block_on(growth(report, name, effect)) {
            eprintln!("store: {error}");
        }
    }
}

async fn growth(report: &mut Report, name: &str, effect: Effect) -> Result<(), Failed> {
    let [few, many] = TURNS;
    let (before, after) = (session(few, effect).await?, session(many, effect).await?);
    let per_turn = |of: fn(&Sizes) -> f64| (of(&after) - of(&before)) / (many - few) as f64;
    let raw: usize = SIZES.iter().sum();
    let (rows, snapshot) = (per_turn(|sizes| sizes.rows), per_turn(|sizes| sizes.snapshot));
    let whole = per_turn(|sizes| sizes.file);
    let journal = whole - snapshot;
    let params = json!({
        "effect": name, "answer": SIZES[0], "call": SIZES[1], "result": SIZES[2], "rows": rows.round(),
        "snapshot": snapshot.round(), "with_snapshot": whole.round(),
    });
    report.value("store.turn_size", params, journal.round(), "bytes");
    let params = json!({ "effect": name, "raw_text": raw, "with_snapshot": ratio(whole / raw as f64) });
    aims::TURN_SIZE.judge(report, params, journal / raw as f64);
    Ok(())
}

/// Runs a session of so many turns on a store of its own.
async fn session(turns: usize, effect: Effect) -> Result<Sizes, Failed> {
    let directory = super::temporary();
    let store = Arc::new(super::open(&directory));
    let path = store.path().to_owned();
    let runtime = Runtime::new(store.clone());
    let driver = runtime.create(agent(turns, effect)?, SessionOptions::default()).await?;
    driver.start("sew").await?.answer()?;
    driver.session().release().await?;
    drop((driver, runtime));
    let sizes = store.size()?;
    let session = sizes.sessions.first().ok_or("there is no session")?;
    let (rows, snapshot) = (session.text as f64, session.snapshot as f64);
    // The log is copied into the file when the last connection closes it.
    Arc::into_inner(store).ok_or("the store is still open")?;
    let store = SqliteStore::open(&path)?;
    let size = store.size()?;
    // A snapshot that was replaced leaves free pages, which later turns use.
    Ok(Sizes { file: (size.file - size.free) as f64, rows, snapshot })
}

#[derive(Deserialize, JsonSchema)]
struct Look {
    /// What to look at.
    #[expect(dead_code, reason = "every path shows the same")]
    path: String,
}

/// An agent that makes one call a turn, and answers after so many.
fn agent(turns: usize, effect: Effect) -> Result<Agent, Failed> {
    let mut words = Words::new();
    let mut turn = || {
        let path = words.take(SIZES[1] - AROUND);
        let arguments = Map::from_iter([("path".to_owned(), path.into())]);
        ScriptedReply::text(words.take(SIZES[0])).call(ScriptedCall::new("look", arguments))
    };
    let mut replies: Vec<ScriptedReply> = (0..turns).map(|_| turn()).collect();
    replies.push(ScriptedReply::text("done"));
    let words = Arc::new(Mutex::new(words));
    let tool = Tool::builder("look", "Looks at something.")?
        .effect(effect)
        .workspace(WorkspaceUse::None)
        .handler(move |_, _: Look| {
            let shown = words.lock().unwrap_or_else(PoisonError::into_inner).take(SIZES[2]);
            async move { Ok(ToolResult::ok(shown)) }
        });
    scripted(replies, tool)
}

/// Random words, the same in each run. They compress about as well as prose does, which matters for snapshots; records are not
/// compressed.
struct Words {
    rng: Rng,
    vocabulary: Vec<String>,
}

impl Words {
    fn new() -> Self {
        let mut words = Self { rng: Seed::new(7).rng(), vocabulary: Vec::new() };
        words.vocabulary = (0..4096).map(|_| words.letters()).collect();
        words
    }

    fn next(&mut self, below: usize) -> usize {
        self.rng.below(below as u64) as usize
    }

    fn letters(&mut self) -> String {
        let length = 2 + self.next(8);
        (0..length).map(|_| char::from(b'a' + self.next(26) as u8)).collect()
    }

    fn take(&mut self, count: usize) -> String {
        let mut text = String::new();
        while text.len() < count {
            let index = self.next(self.vocabulary.len());
            text.push_str(&self.vocabulary[index]);
            text.push(' ');
        }
        text.truncate(count);
        text
    }
}
