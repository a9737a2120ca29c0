//! Appends of sessions that write at the same time, through as many connections, in turns with bare INSERTs of the same bytes.
//!
//! An append is what a runtime sends: a batch of the conversation's records, with the summary for the index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backstitch_core::journal::{Batch, Position, SessionSummary};
use backstitch_core::ports::{ClaimMode, Owner, SessionClaim, Store};
use backstitch_runtime::{SystemClock, fresh_ids};
use backstitch_store::{PostgresAddress, PostgresOptions, PostgresStore, SqliteStore};
use backstitch_testkit::postgres::{POOLER, PORT, TestServer};
use backstitch_testkit::sample;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::bare::BareWriter;
use super::server::processor_time;
use super::{executor, percentile};
use crate::agent::Failed;
use crate::aims;
use crate::measure::Scope;
use crate::report::{Report, ratio};

pub(super) const CONNECTIONS: [usize; 3] = [1, 8, 32];
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(1_500);

pub(super) fn measure_server(report: &mut Report, server: &TestServer) -> Result<(), Failed> {
    let workload = Arc::new(Workload::new()?);
    let ways = [
        ("direct", Some(server.address()), PORT, aims::SERVER_APPENDS),
        ("pgbouncer", server.pooled_address(), POOLER, aims::POOLED_APPENDS),
    ];
    for (way, address, port, aim) in ways {
        let Some(address) = address else { continue };
        let address = PostgresAddress::parse(&address)?;
        for connections in CONNECTIONS {
            let executor = executor()?;
            let options = PostgresOptions::default().with_connections(connections);
            let store: Arc<dyn Store> = Arc::new(PostgresStore::open_with(&address, options)?);
            let mut bare = executor.block_on(BareWriter::open(server, port, connections))?;
            let mut writers = executor.block_on(SessionWriter::open(&*store, connections))?;
            let (mut ours, mut theirs, mut ratios) = (Tally::default(), Tally::default(), Vec::new());
            let append = |writer: SessionWriter, end| writer.work(Arc::clone(&store), workload.clone(), end);
            let insert = |writer: BareWriter, end| writer.work(workload.clone(), end);
            // The store opens its connections in this round, and each plans the function of the server, which costs as much as some ten appends.
            executor.block_on(round(&mut writers, append))?;
            executor.block_on(round(&mut bare, insert))?;
            for _ in 0..ROUNDS {
                let rate = ours.add(server, || executor.block_on(round(&mut writers, append)))?;
                let bare_rate = theirs.add(server, || executor.block_on(round(&mut bare, insert)))?;
                ratios.push(rate / bare_rate);
            }
            let params = json!({ "store": "postgres", "through": way, "connections": connections,
                "records": workload.records(), "bytes": workload.bytes() });
            let (rate, with_cpu) = ours.median(&params);
            match connections {
                32 => aim.judge(report, with_cpu, rate),
                _ => report.value("fleet.appends_per_second", with_cpu, rate, "appends/s"),
            }
            let (rate, with_cpu) = theirs.median(&params);
            Report::of("bare_insert").value("fleet.appends_per_second", with_cpu, rate, "appends/s");
            aims::APPENDS_TO_BARE.judge(report, params, percentile(&mut ratios, 0.5));
        }
    }
    Ok(())
}

/// The same in a file, where the number of sessions takes the place of that of connections. The group `store` compares it with bare SQLite.
pub(super) fn measure_file(report: &mut Report, path: &str) -> Result<(), Failed> {
    let workload = Arc::new(Workload::new()?);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
    for connections in CONNECTIONS {
        let executor = executor()?;
        let mut writers = executor.block_on(SessionWriter::open(&*store, connections))?;
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let work = |writer: SessionWriter, end| writer.work(Arc::clone(&store), workload.clone(), end);
            rates.push(executor.block_on(round(&mut writers, work))?.1);
        }
        let params = json!({ "store": "sqlite", "sessions": connections, "records": workload.records(),
            "bytes": workload.bytes() });
        report.value("fleet.appends_per_second", params, percentile(&mut rates, 0.5), "appends/s");
    }
    Ok(())
}

/// The rounds of one kind of writers.
#[derive(Default)]
struct Tally {
    rates: Vec<f64>,
    written: usize,
    client: Duration,
    server: Duration,
}

impl Tally {
    /// Adds a round, and returns its rate.
    fn add(
        &mut self,
        server: &TestServer,
        round: impl FnOnce() -> Result<(usize, f64), Failed>,
    ) -> Result<f64, Failed> {
        let (clock, before) = (Scope::Process.start(), processor_time(server));
        let (written, rate) = round()?;
        self.client += clock.elapsed().cpu;
        self.server += processor_time(server).saturating_sub(before);
        self.written += written;
        self.rates.push(rate);
        Ok(rate)
    }

    /// The median of the rates, and parameters with the processor time of a write in microseconds: a busy machine changes it less.
    fn median(&mut self, params: &Value) -> (f64, Value) {
        let each = |time: Duration| ratio(time.as_secs_f64() * 1e6 / self.written.max(1) as f64);
        let mut params = params.clone();
        params["server_cpu_us"] = json!(each(self.server));
        params["client_cpu_us"] = json!(each(self.client));
        (percentile(&mut self.rates, 0.5), params)
    }
}

/// Lets all writers work at the same time, and returns how much they wrote, and how much in a second.
async fn round<W, F>(writers: &mut Vec<W>, work: impl Fn(W, Instant) -> F) -> Result<(usize, f64), Failed>
where
    W: Send + 'static,
    F: Future<Output = Result<(W, usize), Failed>> + Send + 'static,
{
    let began = Instant::now();
    let mut all = JoinSet::new();
    for writer in writers.drain(..) {
        all.spawn(work(writer, began + ROUND));
    }
    let mut written = 0;
    while let Some(done) = all.join_next().await {
        let (writer, count) = done??;
        writers.push(writer);
        written += count;
    }
    Ok((written, written as f64 / began.elapsed().as_secs_f64()))
}

/// The batches of a conversation, again and again.
pub(super) struct Workload {
    batches: Vec<Batch>,
    /// The texts of the same batches: records and the summary.
    texts: Vec<Vec<String>>,
    summary: SessionSummary,
}

impl Workload {
    pub(super) fn new() -> Result<Self, Failed> {
        let mut summary = sample::summary(sample::session(1));
        summary.agent = Some(super::AGENT.into());
        summary.mission = Arc::from("Mend the coat, and press it before noon.");
        let journal = sample::conversation(60);
        // The first batch creates the session.
        let batches: Vec<Batch> = journal.batches.into_iter().skip(1).collect();
        let mut texts = Vec::with_capacity(batches.len());
        for batch in &batches {
            let (records, _) = batch.clone().into_records(Position::new(1));
            let mut rows: Vec<String> = Vec::with_capacity(records.len() + 1);
            for record in records {
                rows.push(record.encode()?);
            }
            rows.push(serde_json::to_string(&summary)?);
            texts.push(rows);
        }
        Ok(Self { batches, texts, summary })
    }

    /// The texts of an append.
    pub(super) fn texts(&self, turn: usize) -> &[String] {
        &self.texts[turn % self.texts.len()]
    }

    /// The mean number of records of an append.
    fn records(&self) -> f64 {
        let records: usize = self.batches.iter().map(Batch::len).sum();
        ratio(records as f64 / self.batches.len() as f64)
    }

    /// The mean number of bytes of an append.
    pub(super) fn bytes(&self) -> usize {
        self.texts.iter().flatten().map(String::len).sum::<usize>() / self.texts.len()
    }
}

/// A session that is written.
struct SessionWriter {
    claim: SessionClaim,
    next: Position,
    turn: usize,
}

impl SessionWriter {
    /// Creates new sessions.
    async fn open(store: &dyn Store, count: usize) -> Result<Vec<Self>, Failed> {
        let ids = fresh_ids(Arc::new(SystemClock::new()))?;
        let mut writers = Vec::with_capacity(count);
        for _ in 0..count {
            let created = sample::created(ids.next());
            let claim = store.claim(created.session_id, Owner::new("bench"), ClaimMode::IfFree).await?;
            let batch = Batch::at(created.created_at).with(created);
            let next = store.append(claim.session, Position::START, claim.fence, batch).await?;
            writers.push(Self { claim, next, turn: 0 });
        }
        Ok(writers)
    }

    /// Appends until a moment. Returns the number of appends.
    async fn work(
        mut self,
        store: Arc<dyn Store>,
        workload: Arc<Workload>,
        end: Instant,
    ) -> Result<(Self, usize), Failed> {
        let mut appends = 0;
        while Instant::now() < end {
            let mut batch = workload.batches[self.turn % workload.batches.len()].clone();
            let (session, position) = (self.claim.session, self.next.after(batch.len()));
            batch.summarize(SessionSummary { session, position, ..workload.summary.clone() });
            self.next = store.append(session, self.next, self.claim.fence, batch).await?;
            self.turn += 1;
            appends += 1;
        }
        Ok((self, appends))
    }
}
