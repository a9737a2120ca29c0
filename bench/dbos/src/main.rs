//! What the group `fleet` measures, by DBOS in Rust.
//!
//! `dbos-peer ADDRESS SCHEMA worker | busy | enqueue | steps WORKFLOWS BYTES SECONDS | claims`: the roles are those of `peer.py`, which
//! describes them.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dbos::sysdb::SystemDatabase;
use dbos::sysdb::postgres::{self, PostgresSystemDatabase, Settings};
use dbos::{Client, ClientConfig, Config, DBOS, QueueConflict, QueueOptions, WorkflowHandle, step};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, stdin};
use tokio::task::JoinSet;

type Failed = Box<dyn Error + Send + Sync>;

const QUEUE: &str = "sessions";
const LONG_QUEUE: &str = "long";
const VERSION: &str = "1";
/// As many as Backstitch enqueues at a time, and as its workers take at a time.
const CONCURRENCY: i32 = 8;
const WORKERS: u32 = 8;
const CLAIMS: usize = 100;
/// Sessions that a busy worker has at a time. Its first looks at the queue are up to a second apart, and come only slowly closer to the interval of the
/// queue: with the 50 of Python it would mostly wait.
const BUSY: i32 = 250;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, schema, role, numbers @ ..] = arguments.as_slice() else {
        return Err("an address, a schema and a role are needed".into());
    };
    let place = Place { address: address.clone(), schema: schema.clone() };
    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse()).collect::<Result<_, _>>()?;
    match (role.as_str(), numbers.as_slice()) {
        ("worker", []) => work(&place, QueueOptions::default()).await,
        ("busy", []) => {
            let (worker_concurrency, polling_interval) = (Some(BUSY), Duration::from_millis(50));
            let options = QueueOptions { worker_concurrency, polling_interval, ..QueueOptions::default() };
            work(&place, options).await
        }
        ("enqueue", []) => enqueue(&place).await,
        ("steps", [workflows, bytes, seconds]) => {
            steps(&place, *workflows, usize::try_from(*bytes)?, *seconds).await
        }
        ("claims", []) => claims(&place).await,
        _ => Err(format!("unknown role {role}").into()),
    }
}

struct Place {
    address: String,
    schema: String,
}

impl Place {
    fn config(&self, max_connections: u32) -> Config {
        Config {
            schema: self.schema.clone(),
            app_version: Some(VERSION.to_owned()),
            executor_id: Some(format!("executor-{}", std::process::id())),
            max_connections,
            ..Config::new("fleet", &self.address)
        }
    }
}

/// The time, in nanoseconds since 1970.
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn say(word: &str, session: &str) {
    println!("{word} {session} {}", nanoseconds());
}

async fn session(_: String) -> dbos::Result<String> {
    let id = dbos::workflow_id().unwrap_or_default();
    let first = id.clone();
    step("request", move || {
        say("first", &first);
        async { dbos::Result::Ok(json!({ "text": "First a stitch.", "call": "stitch" })) }
    })
    .await?;
    step("stitch", || async { dbos::Result::Ok("stitched".to_owned()) }).await?;
    step("request", || async { dbos::Result::Ok(json!({ "text": "Mended." })) }).await?;
    say("rested", &id);
    Ok("Mended.".to_owned())
}

async fn work(place: &Place, options: QueueOptions) -> Result<(), Failed> {
    let dbos = DBOS::new(place.config(20));
    let _session = dbos.register_workflow("session", session)?;
    dbos.launch().await?;
    dbos.register_queue(QUEUE, options, QueueConflict::AlwaysUpdate).await?;
    say("ready", "-");
    stdin().read_to_end(&mut Vec::new()).await?;
    dbos.shutdown().await;
    Ok(())
}

async fn enqueue(place: &Place) -> Result<(), Failed> {
    let config = ClientConfig {
        app_name: Some("fleet".to_owned()),
        schema: place.schema.clone(),
        max_connections: WORKERS,
        ..ClientConfig::new(&place.address)
    };
    let client = Arc::new(Client::connect(config).await?);
    say("ready", "-");
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let mut running = JoinSet::new();
        for _ in 0..line.trim().parse::<usize>()? {
            if running.len() == WORKERS as usize
                && let Some(done) = running.join_next().await
            {
                done??;
            }
            let client = Arc::clone(&client);
            running.spawn(async move {
                let began = nanoseconds();
                let enqueued: WorkflowHandle<String> =
                    client.enqueue("session", QUEUE, "Mend the coat.".to_owned()).await?;
                println!("enqueued {} {began}", enqueued.workflow_id());
                Ok::<_, Failed>(())
            });
        }
        while let Some(done) = running.join_next().await {
            done??;
        }
    }
    Ok(())
}

/// Stores results of some bytes until a time in nanoseconds. Returns their number, and the time after the last one.
async fn repeat((end, text): (u64, String)) -> dbos::Result<(u64, u64)> {
    let mut count = 0;
    while nanoseconds() < end {
        step("store", || async { dbos::Result::Ok(text.clone()) }).await?;
        count += 1;
    }
    Ok((count, nanoseconds()))
}

async fn steps(place: &Place, workflows: u64, bytes: usize, seconds: u64) -> Result<(), Failed> {
    // Some connections are for its own tasks.
    let dbos = DBOS::new(place.config(u32::try_from(workflows)? + 4));
    let repeat = dbos.register_workflow("repeat", repeat)?;
    dbos.launch().await?;
    let began = nanoseconds();
    let end = began + seconds * 1_000_000_000;
    let mut running = JoinSet::new();
    for _ in 0..workflows {
        let (repeat, text) = (repeat.clone(), "x".repeat(bytes));
        running.spawn(async move { repeat.run((end, text)).await });
    }
    let (mut count, mut ended) = (0, end);
    while let Some(done) = running.join_next().await {
        let (of_workflow, at) = done??;
        count += of_workflow;
        ended = ended.max(at);
    }
    println!("{}", json!({ "rate": count as f64 / ((ended - began) as f64 / 1e9) }));
    dbos.shutdown().await;
    Ok(())
}

/// Claims by the function that DBOS's own loop calls, from as many tasks as there are workers of Backstitch.
async fn claims(place: &Place) -> Result<(), Failed> {
    // It takes nothing from any queue by itself.
    let dbos = DBOS::new(Config { listen_queues: Some(Vec::new()), ..place.config(5) });
    dbos.launch().await?;
    let options = QueueOptions {
        worker_concurrency: Some(CONCURRENCY),
        polling_interval: Duration::from_secs(3_600),
        ..QueueOptions::default()
    };
    dbos.register_queue(LONG_QUEUE, options, QueueConflict::AlwaysUpdate).await?;
    dbos.shutdown().await;
    println!("{}", json!({ "ready": true }));
    BufReader::new(stdin()).read_line(&mut String::new()).await?;
    let settings = Settings { schema: &place.schema, application_name: Some("fleet"), ..Settings::default() };
    let config =
        postgres::Config { max_connections: WORKERS, settings, ..postgres::Config::new(&place.address) };
    let database = Arc::new(PostgresSystemDatabase::connect(&config).await?);
    let queue = Arc::new(database.get_queue(LONG_QUEUE).await?.ok_or("the queue is missing")?);
    let began = Instant::now();
    let mut running = JoinSet::new();
    for worker in 0..WORKERS {
        let (database, queue) = (Arc::clone(&database), Arc::clone(&queue));
        running.spawn(async move {
            let (mut times, mut claimed) = (Vec::new(), 0);
            let executor = format!("bench-{worker}");
            for _ in 0..CLAIMS {
                let began = Instant::now();
                claimed +=
                    database.start_queued_workflows(&queue, &executor, VERSION, None, 0, 0).await?.len();
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
            Ok::<_, dbos::sysdb::Error>((times, claimed))
        });
    }
    let (mut times, mut claimed) = (Vec::new(), 0);
    while let Some(done) = running.join_next().await {
        let (of_worker, count) = done??;
        times.extend(of_worker);
        claimed += count;
    }
    let rate = claimed as f64 / began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let share = |share: usize| times.get(times.len() * share / 100).copied();
    let found: Value = json!({ "workers": WORKERS, "batch": CONCURRENCY, "claimed": claimed, "rate": rate,
        "p50": share(50), "p99": share(99) });
    println!("{found}");
    Ok(())
}
