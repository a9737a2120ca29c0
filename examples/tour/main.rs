//! A tour of the library, for the first hour with it: start, stream, approve, rewind, restore, fork, redact.
//!
//!     cargo run -p backstitch-tour -- DIRECTORY
//!
//! It depends on `backstitch` and `tokio` only, uses what the README and the guides describe, and checks
//! everything that it prints. The model is a script: the program runs offline and without a key. DIRECTORY is
//! created; the store, the agent file and the files of the agent are in it afterwards.
#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch::agent_file::AgentDefinition;
use backstitch::ports::{Erasure, ErasureMode};
use backstitch::prelude::*;
use backstitch::redaction::SensitiveValue;

/// The number of a card, which the model should not have written into the journal.
const CARD: &str = "4000 1234 5678 9010";

/// The number of orders that reached the supplier.
static ORDERS: AtomicUsize = AtomicUsize::new(0);

/// Orders thread from the supplier. A person approves it first.
#[tool(approval, workspace = "none")]
async fn order(
    /// The length in metres.
    metres: u64,
    /// The number of the card that pays for it.
    card: String,
) -> Result<String, ToolError> {
    ORDERS.fetch_add(1, Ordering::SeqCst);
    Ok(format!("{metres} m of thread, paid with {card}"))
}

/// Sets up the shop: the files of the agent, the agent file, and the replies of its model.
fn set_up(place: &Path) -> Result<Agent, Box<dyn Error>> {
    fs::create_dir(place)?;
    fs::create_dir_all(place.join("shop/fabrics"))?;
    fs::write(place.join("shop/coat.txt"), "A coat with an open hem.")?;
    fs::write(place.join("shop/fabrics/wool.txt"), "3 m")?;
    fs::write(place.join("replies.toml"), include_str!("replies.toml"))?;
    fs::write(place.join("tailor.toml"), include_str!("tailor.toml"))?;
    let tailor = AgentDefinition::read(place.join("tailor.toml"))?.build()?.agent;
    Ok(tailor.tools([order()]))
}

/// Starts a session, streams its events until it waits for a person, approves, and resumes.
async fn mend(runtime: &Runtime, tailor: &Agent) -> Result<SessionId, Box<dyn Error>> {
    let mut run = runtime.start(tailor, "Mend the coat.").await?;
    let mut positions = Vec::new();
    print!("start: ");
    while let Some(event) = run.next().await {
        positions.extend(event.record().map(|record| record.position.number()));
        print!("{}", event.text().unwrap_or_default());
    }
    let every_one: Vec<u64> = (0..).take(positions.len()).collect();
    assert_eq!(positions, every_one, "a reader of the stream gets every record, in order");
    println!("\nstream: {} records, in order", positions.len());

    let outcome = run.outcome().await?;
    assert!(matches!(outcome, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{outcome}");
    let waiting = runtime.waiting_calls(run.session()).await?;
    assert_eq!((waiting.len(), waiting[0].name.as_str(), ORDERS.load(Ordering::SeqCst)), (1, "order", 0));
    runtime.approve(waiting[0].session, waiting[0].call).await?;
    let run = runtime.resume(run.session(), tailor).await?;
    assert_eq!(run.answer::<String>().await?, "The coat is mended.");
    assert_eq!(ORDERS.load(Ordering::SeqCst), 1);
    println!("approve: `order` waited for a person, then ran once");
    Ok(run.session())
}

/// Goes back and forth: the whole session, then one file of it.
async fn rewind_session(runtime: &Runtime, session: SessionId, shop: &Path) -> Result<(), Box<dyn Error>> {
    let calls = runtime.checkpoints(session).await?;
    let names: Vec<_> = calls.iter().map(|call| call.tool_name.as_str()).collect();
    assert_eq!(names, ["write_file", "order", "write_file"]);
    let before_sleeve = PointSpec::Before(calls[2].call_id.to_string());

    let report = runtime.rewind(session, before_sleeve).await?;
    assert_eq!(coat(shop)?, "The hem is closed.");
    assert!(report.effects.is_empty(), "the order lies before the point");
    runtime.undo(session).await?;
    assert_eq!(coat(shop)?, "The hem is closed, and the sleeve is on.");
    println!("rewind: conversation, state and files went back together; undo restored them");

    runtime.restore(session, PointSpec::Start, ["coat.txt".parse()?]).await?;
    assert_eq!(coat(shop)?, "A coat with an open hem.");
    runtime.undo(session).await?;
    assert_eq!(coat(shop)?, "The hem is closed, and the sleeve is on.");
    println!("restore: one file as it was at the start; undo restored it");
    Ok(())
}

/// Forks the session after its first call into a directory of its own, and lets the fork continue.
async fn fork(
    runtime: &Runtime,
    tailor: &Agent,
    session: SessionId,
    shop: &Path,
) -> Result<SessionId, Box<dyn Error>> {
    let copy = shop.with_file_name("copy");
    let first = runtime.checkpoints(session).await?[0].call_id;
    let fork =
        runtime.fork_with(session, PointSpec::After(first.to_string()), ForkOptions::within(&*copy)).await?;
    assert_eq!(coat(&copy)?, "The hem is closed.");
    assert!(!copy.join("fabrics").exists(), "what the agent file excludes is not part of the files");
    let names: Vec<_> = fork.effects.iter().map(|effect| effect.name.as_str()).collect();
    assert_eq!(names, ["order"], "the report names what happened outside after the point");

    // The same order would be made again. It waits instead, and its recorded result is on offer.
    let tailor = tailor.clone().workspace(&*copy);
    let run = runtime.resume(fork.session, &tailor).await?;
    let outcome = run
        .deciding(&tailor, async |call| match call.reason {
            PauseReason::EffectUnknown => {
                let result = runtime.offered_result(call.session, call.call).await.ok()??;
                Some(Decision::Happened { result: Box::new(result) })
            }
            _ => Some(Decision::Approve),
        })
        .await?;
    assert_eq!(outcome.answer()?.text, "The coat is mended.");
    assert_eq!(coat(&copy)?, "The hem is closed, and the sleeve is on.");
    assert_eq!(ORDERS.load(Ordering::SeqCst), 1, "the thread was ordered once");
    println!("fork: mended another coat in {}, without a second order", copy.display());
    Ok(fork.session)
}

/// Removes the number of the card from everything that the session and its fork recorded.
async fn redact(runtime: &Runtime, sessions: [SessionId; 2]) -> Result<(), Box<dyn Error>> {
    for session in sessions {
        assert!(holds_card(runtime, session).await?);
    }
    let report = runtime.redact(sessions[0], SensitiveValue::new(CARD)?, ErasureMode::Now).await?.content;
    assert_eq!(report.erasure, Erasure::Complete);
    for session in sessions {
        assert!(!holds_card(runtime, session).await?);
    }
    assert!(runtime.opened_store().admin.verify().await?.is_sound());
    let replaced: u64 = report.sessions.iter().map(|session| session.replacements).sum();
    println!("redact: the number of the card was replaced in {replaced} places, and the store is sound");
    Ok(())
}

async fn holds_card(runtime: &Runtime, session: SessionId) -> Result<bool, RuntimeError> {
    Ok(format!("{:?}", runtime.records(session).await?).contains(CARD))
}

fn coat(directory: &Path) -> std::io::Result<String> {
    fs::read_to_string(directory.join("coat.txt"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::args_os().nth(1).ok_or("usage: tour DIRECTORY, which is created")?;
    let place = PathBuf::from(place);
    let (tailor, shop, store) = (set_up(&place)?, place.join("shop"), place.join("store/store.db"));

    let runtime = Runtime::at(&store)?;
    let session = mend(&runtime, &tailor).await?;
    rewind_session(&runtime, session, &shop).await?;
    let fork = fork(&runtime, &tailor, session, &shop).await?;
    assert_eq!(coat(&shop)?, "The hem is closed, and the sleeve is on.", "the parent is not touched");
    drop(runtime);

    // Another process would see the same: the answer is recorded, and no model is asked for it.
    let runtime = Runtime::at(&store)?;
    let run = runtime.resume(session, &tailor).await?;
    assert_eq!(run.answer::<String>().await?, "The coat is mended.");
    println!("resume: the recorded answer, from the store");
    redact(&runtime, [session, fork]).await
}
