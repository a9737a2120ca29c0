//! One mission over a few thousand records, in two modes and with several compressions: what the requests of each cost.
//!
//! `cargo run --release -p backstitch-examples --bin records` prints a table. Nothing is sent anywhere: the answers come from a
//! script, and the requests are rendered as they would be sent to OpenAI Chat Completions. The same answers are given with
//! each compression, so that what differs is what the model is shown.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod clerks;
mod measured;
mod orders;

use std::sync::Arc;

use backstitch::journal::{Position, RecordBody};
use backstitch::store::MemoryStore;
use backstitch::{Agent, Runtime, SessionOptions, read_records};

use clerks::{MISSION, Way};

/// What the requests of a session were.
struct Cost {
    requests: usize,
    bytes: u64,
    largest: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = orders::all();
    let raw = serde_json::to_string(&orders)?.len();
    println!("{} orders, {} KiB as JSON. {MISSION}\n", orders.len(), raw / 1024);
    println!(
        "{:<32} {:<24} {:>8} {:>10} {:>12} {:>12} {:>9}",
        "agent", "compression", "requests", "bytes", "tokens, ~", "largest", "saved"
    );
    let mut dearer = Vec::new();
    for (name, compressions) in [
        ("calls tools by JSON", ["none", "trim", "elide"].as_slice()),
        ("writes programs, straight", &["none", "single_user_coalesced", "trim"]),
        ("writes programs, looks around", &["none", "single_user_coalesced", "trim"]),
    ] {
        let mut plain = None;
        for compression in compressions {
            let agent = match name {
                "calls tools by JSON" => clerks::with_tools(compression)?,
                "writes programs, straight" => clerks::with_programs(Way::Straight, compression)?,
                _ => clerks::with_programs(Way::Around, compression)?,
            };
            let cost = cost(agent).await?;
            let before = *plain.get_or_insert(cost.bytes);
            let saved = 100.0 * (1.0 - cost.bytes as f64 / before as f64);
            println!(
                "{name:<32} {compression:<24} {:>8} {:>10} {:>12} {:>12} {:>8.1}%",
                cost.requests,
                cost.bytes,
                cost.bytes / 4,
                cost.largest,
                saved
            );
            if cost.bytes > before {
                dearer.push(format!("{name}, {compression}: {} bytes more", cost.bytes - before));
            }
        }
    }
    println!(
        "\nFour bytes are taken for a token. Records that are data never stand in a request; pages that a tool gives do."
    );
    match dearer.is_empty() {
        true => println!("Compression costs more than it saves nowhere here."),
        false => {
            println!("Compression costs more than it saves where there is little to leave out:");
            dearer.iter().for_each(|line| println!("  {line}"));
        }
    }
    Ok(())
}

/// Drives an agent to its answer, which has to be right, and adds up its requests.
async fn cost(agent: Agent) -> Result<Cost, Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    let driver = runtime.create(agent, SessionOptions::default()).await?;
    let session = driver.session().id();
    let answer = driver.start(MISSION).await?.answer()?;
    driver.session().release().await?;
    if clerks::answered(&answer) != Some(orders::answer(&orders::all())) {
        return Err(format!("this is not the answer: {answer:?}").into());
    }
    let mut cost = Cost { requests: 0, bytes: 0, largest: 0 };
    for record in read_records(&*store, session, Position::START, None).await? {
        if let RecordBody::RequestStarted(request) = &record.body {
            if request.digest.is_none() {
                return Err("a request could not be rendered".into());
            }
            cost.requests += 1;
            cost.bytes += request.length;
            cost.largest = cost.largest.max(request.length);
        }
    }
    Ok(cost)
}
