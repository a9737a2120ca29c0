//! The cost of the requests of one mission over a few thousand records, in two modes and with several
//! compressions.
//!
//! `cargo run --release -p backstitch-examples --bin records` prints a table. Nothing is sent anywhere: the
//! answers come from a script, and the requests are rendered as they would be sent to OpenAI Chat
//! Completions. The answers are the same with each compression, so only the requests differ.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod clerks;
mod measured;
mod orders;

use std::sync::{Arc, PoisonError};

use backstitch::host::{Runtime, read_records};
use backstitch::journal::{Position, RecordBody};
use backstitch::store::MemoryStore;
use backstitch::{Agent, SessionOptions};
use clerks::{MISSION, Way};
use measured::Requests;
use serde_json::{Value, json};

/// How an agent answers.
#[derive(Clone, Copy)]
enum Kind {
    Tools,
    Programs(Way),
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "calls tools, 15 pages",
            Self::Programs(Way::Straight) => "one program",
            Self::Programs(Way::Short) => "two programs",
            Self::Programs(Way::Around) => "twelve programs",
        }
    }

    fn agent(self, compression: &Value, requests: Requests) -> Result<Agent, Box<dyn std::error::Error>> {
        match self {
            Self::Tools => clerks::with_tools(compression, requests),
            Self::Programs(way) => clerks::with_programs(way, compression, requests),
        }
    }
}

/// Number and size of the requests of a session.
struct Cost {
    requests: usize,
    bytes: u64,
    /// Bytes after the prefix that a request shares with the previous one. No provider can have cached them.
    fresh: u64,
}

impl Cost {
    /// The cost in bytes at full price, if cached bytes cost a tenth.
    fn with_cache(&self) -> f64 {
        self.fresh as f64 + (self.bytes - self.fresh) as f64 / 10.0
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = orders::all();
    let raw = serde_json::to_string(&orders)?.len();
    println!("{} orders, {} KiB as JSON. {MISSION}\n", orders.len(), raw / 1024);
    println!(
        "{:<22} {:<22} {:>8} {:>9} {:>8} {:>7}   {:>9} {:>7}",
        "agent", "compression", "requests", "bytes", "tokens", "saved", "new bytes", "saved"
    );
    let trim = json!({ "strategy": "trim", "turns": 3 });
    let elide = json!({ "strategy": "elide", "keep_turns": 1, "recall": "recall" });
    let (none, coalesced) = (json!("none"), json!("single_user_coalesced"));
    let for_programs = [&none, &coalesced, &trim];
    let mut dearer = Vec::new();
    for (kind, compressions) in [
        (Kind::Tools, [&none, &trim, &elide]),
        (Kind::Programs(Way::Straight), for_programs),
        (Kind::Programs(Way::Short), for_programs),
        (Kind::Programs(Way::Around), for_programs),
    ] {
        let mut plain: Option<Cost> = None;
        for compression in compressions {
            let requests = Requests::default();
            let cost = cost(kind.agent(compression, requests.clone())?, &requests).await?;
            let before = plain.as_ref().unwrap_or(&cost);
            let saved = |now: f64, before: f64| 100.0 * (1.0 - now / before);
            let whole = saved(cost.bytes as f64, before.bytes as f64);
            let cached = saved(cost.with_cache(), before.with_cache());
            let (name, strategy) = (kind.name(), written(compression));
            println!(
                "{name:<22} {strategy:<22} {:>8} {:>9} {:>8} {whole:>6.1}%   {:>9} {cached:>6.1}%",
                cost.requests,
                cost.bytes,
                cost.bytes / 4,
                cost.fresh,
            );
            if whole < 0.0 {
                dearer.push(format!("{name}, {strategy}: {:.1} % more", -whole));
            } else if cached < 0.0 {
                dearer.push(format!("{name}, {strategy}: {:.1} % more, with a cache", -cached));
            }
            plain.get_or_insert(cost);
        }
    }
    println!(
        "\nA token is counted as four bytes. Requests contain the pages that a tool returns, but never the data of programs."
    );
    println!(
        "New bytes are those after the prefix that a request shares with the previous one. The second saving applies"
    );
    println!("if the provider caches that prefix and charges a tenth of the price for it.");
    if dearer.is_empty() {
        println!("\nNo compression here costs more than it saves.");
    } else {
        println!("\nCompression costs more than it saves here:");
        dearer.iter().for_each(|line| println!("  {line}"));
    }
    Ok(())
}

/// A short name of a compression, for the table.
fn written(compression: &Value) -> String {
    let kept = compression.get("turns").or_else(|| compression.get("keep_turns"));
    match (compression, kept) {
        (Value::String(name), _) => name.clone(),
        (table, Some(kept)) => format!("{}, last {kept}", table["strategy"].as_str().unwrap_or_default()),
        (table, None) => table.to_string(),
    }
}

/// Drives an agent to its answer, checks the answer, and adds up the requests.
async fn cost(agent: Agent, requests: &Requests) -> Result<Cost, Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    let driver = runtime.create(agent, SessionOptions::default()).await?;
    let session = driver.session().id();
    let answer = driver.start(MISSION).await?.answer()?;
    driver.session().release().await?;
    if clerks::answered(&answer) != Some(orders::answer(&orders::all())) {
        return Err(format!("the answer is wrong: {answer:?}").into());
    }
    let mut cost = Cost { requests: 0, bytes: 0, fresh: 0 };
    for record in read_records(&*store, session, Position::START, None).await? {
        if let RecordBody::RequestStarted(request) = &record.body {
            if request.digest.is_none() {
                return Err("a request could not be rendered".into());
            }
            cost.requests += 1;
            cost.bytes += request.length;
        }
    }
    let requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
    let mut before: &str = "";
    for request in requests.iter() {
        let shared = before.bytes().zip(request.bytes()).take_while(|(one, other)| one == other).count();
        cost.fresh += (request.len() - shared) as u64;
        before = request;
    }
    Ok(cost)
}
