//! What a turn costs in sessions of different lengths.

use std::path::Path;
use std::sync::Arc;

use backstitch::tools::write_file;
use backstitch_core::message::PolicyName;
use backstitch_providers::{Reply, Script, ScriptedCall, ScriptedPolicy};
use backstitch_runtime::{Agent, Runtime, SessionOptions, Tools};
use backstitch_store::SqliteStore;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use serde_json::{Map, json};

use super::Failed;
use crate::measure::{Samples, Scope};
use crate::report::Report;

/// How many turns sessions have, and how many sessions of each length are run.
const LENGTHS: [(usize, usize); 3] = [(250, 5), (1_000, 3), (4_000, 1)];

/// How many files are written, one after the other and then again: what the directory holds does not grow with the session.
const FILES: usize = 8;

/// The processor time of a turn that writes a file of a host directory, in sessions of growing length on a durable store. The aim: a
/// turn of the longest costs at most 1.3 times one of the shortest.
pub(super) async fn run(report: &mut Report) -> Result<(), Failed> {
    let mut shortest = None;
    for (turns, sessions) in LENGTHS {
        let mut samples = Samples::default();
        for _ in 0..sessions {
            session(turns, &mut samples).await?;
        }
        let cpu = samples.timing().divided(turns).cpu;
        let params = json!({ "turns": turns, "tool": "write_file", "sessions": samples.len() });
        report.precise("agent.turn_cpu_by_length", params, cpu / 1e6, "ms");
        let of = *shortest.get_or_insert(cpu);
        if turns != LENGTHS[0].0 {
            let params = json!({ "turns": turns, "than": LENGTHS[0].0, "aim": 1.3 });
            report.ratio("agent.turn_cpu_growth", params, cpu / of);
        }
    }
    Ok(())
}

async fn session(turns: usize, samples: &mut Samples) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(directory.path().join("store.db"))?);
    let workspace = workspace(directory.path(), &store)?;
    let runtime = Runtime::new(store);
    let options = SessionOptions::with_workspace(Arc::new(workspace));
    let driver = runtime.create(agent(turns)?, options).await?;
    let clock = samples.begin(Scope::Process);
    driver.start("sew").await?.answer()?;
    samples.end(clock);
    driver.session().release().await?;
    Ok(())
}

fn workspace(directory: &Path, store: &Arc<SqliteStore>) -> Result<HostWorkspace, Failed> {
    let files = directory.join("files");
    std::fs::create_dir(&files)?;
    let mut options = OpenOptions::new(files, directory.join("private"), store.clone());
    options.locks = Some(directory.join("locks"));
    Ok(HostWorkspace::open(options)?)
}

/// An agent that writes one file a turn, and answers after so many.
fn agent(turns: usize) -> Result<Agent, Failed> {
    let turn = |turn: usize| {
        let mut arguments = Map::new();
        arguments.insert("path".into(), format!("seam-{}.txt", turn % FILES).into());
        arguments.insert("text".into(), format!("stitch {turn}\n").into());
        Reply::text("on we go").call(ScriptedCall::new("write_file", arguments))
    };
    let replies = (0..turns).map(turn).chain([Reply::text("done")]).collect();
    let policy = ScriptedPolicy::new(PolicyName::new("tailor")?, Script { replies });
    let agent = Agent::new("bench/tailor").policy(Arc::new(policy)).instructions("You sew.");
    Ok(agent.tools(Tools::new([write_file()])?))
}
