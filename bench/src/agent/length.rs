//! What a turn costs in sessions of different lengths.

use std::path::Path;
use std::sync::Arc;

use backstitch::tools::write_file;
use backstitch_providers::{ScriptedCall, ScriptedReply};
use backstitch_repl::transcript::Elide;
use backstitch_runtime::{Agent, Runtime, SessionOptions};
use backstitch_store::SqliteStore;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use serde_json::{Map, json};

use super::{Failed, scripted};
use crate::aims::{self, Aim};
use crate::measure::{Samples, Scope};
use crate::report::Report;

/// Turns of the sessions.
const LENGTHS: [usize; 3] = [250, 1_000, 4_000];

/// Rounds over all lengths. They are interleaved, so that a disturbance affects all lengths alike.
const ROUNDS: usize = 3;

/// Turns of a follow-up.
const FOLLOW_UP: usize = 250;

/// Number of files, which are written in rotation: the directory does not grow with the session.
const FILES: usize = 8;

/// The processor time of sessions of one length, and of their follow-ups.
#[derive(Default)]
struct Costs {
    session: Samples,
    follow_up: Samples,
}

/// Measures the processor time of a turn that writes a file of a host directory: in sessions of growing
/// length on a durable store, and in follow-ups of one length to such sessions.
pub(super) async fn run(report: &mut Report) -> Result<(), Failed> {
    for shown in ["all", Elide::NAME] {
        let mut costs: [Costs; LENGTHS.len()] = Default::default();
        for _ in 0..ROUNDS {
            for (turns, costs) in LENGTHS.into_iter().zip(&mut costs) {
                session(turns, shown, costs).await?;
            }
        }
        let per_turn = |of: fn(&Costs) -> &Samples, turns: fn(usize) -> usize| {
            let costs = LENGTHS.into_iter().zip(&costs);
            costs.map(|(length, costs)| of(costs).timing().divided(turns(length)).cpu).collect::<Vec<f64>>()
        };
        let turns = per_turn(|costs| &costs.session, |length| length);
        print(report, "agent.turn_cpu", aims::TURN_GROWTH, shown, &turns);
        let follow_ups = per_turn(|costs| &costs.follow_up, |_| FOLLOW_UP);
        print(report, "agent.follow_up_turn_cpu", aims::FOLLOW_UP_GROWTH, shown, &follow_ups);
    }
    Ok(())
}

/// Prints what a turn costs with each length of the session, and how much more with the longer ones.
fn print(report: &mut Report, metric: &str, aim: Aim, shown: &str, costs: &[f64]) {
    for (turns, cost) in LENGTHS.into_iter().zip(costs) {
        let params = json!({ "turns": turns, "shown": shown, "tool": "write_file", "sessions": ROUNDS });
        report.precise(&format!("{metric}_by_length"), params, cost / 1e6, "ms");
    }
    for (turns, cost) in LENGTHS.into_iter().zip(costs).skip(1) {
        let params = json!({ "turns": turns, "than": LENGTHS[0], "shown": shown });
        report.ratio(&format!("{metric}_growth"), params.clone(), cost / costs[0]);
        if turns == LENGTHS[LENGTHS.len() - 1] {
            aim.judge(report, params, cost / costs[0]);
        }
    }
}

async fn session(turns: usize, shown: &str, costs: &mut Costs) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(directory.path().join("store.db"))?);
    let workspace = workspace(directory.path(), &store)?;
    let runtime = Runtime::new(store);
    let options = SessionOptions::with_workspace(Arc::new(workspace));
    let mut agent = agent(turns)?;
    if shown == Elide::NAME {
        agent = agent.compression(Arc::new(Elide::default()));
    }
    let driver = runtime.create(agent, options).await?;
    for (samples, mission) in [(&mut costs.session, "sew"), (&mut costs.follow_up, "sew on")] {
        let clock = Scope::Process.start();
        driver.start(mission).await?.answer()?;
        samples.add(clock.elapsed());
    }
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

/// An agent that writes one file a turn and answers after `turns` turns. In a follow-up it does so for
/// `FOLLOW_UP` turns.
fn agent(turns: usize) -> Result<Agent, Failed> {
    let turn = |turn: usize| {
        let mut arguments = Map::new();
        arguments.insert("path".into(), format!("seam-{}.txt", turn % FILES).into());
        arguments.insert("text".into(), format!("stitch {turn}\n").into());
        ScriptedReply::text("on we go").call(ScriptedCall::new("write_file", arguments))
    };
    let done = || [ScriptedReply::text("done")];
    let replies = (0..turns).map(turn).chain(done()).chain((0..FOLLOW_UP).map(turn)).chain(done()).collect();
    Ok(scripted(replies, write_file())?.instructions("You sew."))
}
