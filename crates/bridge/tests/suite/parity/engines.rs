//! An agent with an engine: a program with its own loop, whose calls come to the session that drives it.
//!
//! The engine of the test is driven like any other, through the port. Its tools are served to it as the adapters of real
//! programs serve them: over a stream, with the program's own id of each call.

use std::sync::Arc;

use backstitch_core::journal::ProcessStarted;
use backstitch_mcp::ToolServer;
use backstitch_runtime::{
    Agent, AgentEngine, DriveOutcome, Engine, EngineEnd, EngineError, EngineEvent, EngineFuture, EngineRun,
    EngineStart, Engines, Run,
};
use backstitch_testkit::tool::CallSpec;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::place::{Place, threads};
use super::{Case, Trouble};

const NAME: &str = "sewing-machine";

/// Makes the calls of a case, one after the other, and answers.
#[derive(Clone)]
struct SewingMachine {
    calls: Vec<CallSpec>,
}

struct SewingRun {
    sews: JoinHandle<()>,
    is_interrupted: bool,
}

impl Engines for SewingMachine {
    fn open(&self, name: &str) -> Result<Arc<dyn Engine>, EngineError> {
        assert_eq!(name, NAME);
        Ok(Arc::new(self.clone()))
    }
}

impl Engine for SewingMachine {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "The sewing machine"
    }

    fn start(&self, start: EngineStart) -> EngineFuture<'_, Result<Box<dyn EngineRun>, EngineError>> {
        let server = ToolServer::of_engine(start.tools.unwrap());
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        tokio::spawn(server.serve(input, output, CancellationToken::new()));
        let sews = tokio::spawn(sew(near, self.calls.clone()));
        Box::pin(async { Ok(Box::new(SewingRun { sews, is_interrupted: false }) as Box<dyn EngineRun>) })
    }
}

impl EngineRun for SewingRun {
    fn process(&self) -> Option<ProcessStarted> {
        None
    }

    fn next(&mut self) -> EngineFuture<'_, Result<EngineEvent, EngineError>> {
        Box::pin(async {
            if self.is_interrupted {
                return Ok(EngineEvent::Ended(EngineEnd::Interrupted));
            }
            (&mut self.sews).await.unwrap();
            Ok(EngineEvent::Ended(EngineEnd::Answered(Some("done".to_owned()))))
        })
    }

    fn interrupt(&mut self) -> EngineFuture<'_, Result<(), EngineError>> {
        self.is_interrupted = true;
        Box::pin(async { Ok(()) })
    }

    fn end(self: Box<Self>) -> EngineFuture<'static, ()> {
        self.sews.abort();
        Box::pin(async {})
    }
}

/// Speaks the protocol by hand.
async fn sew(stream: DuplexStream, calls: Vec<CallSpec>) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    let information = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "machine", "version": "1"},
    });
    let first = ("initialize".to_owned(), information);
    let calls = calls.into_iter().enumerate().map(|(number, call)| {
        let meta = json!({"claudecode/toolUseId": format!("toolu_{number}")});
        ("tools/call".to_owned(), json!({"name": call.name, "arguments": call.arguments, "_meta": meta}))
    });
    for (id, (method, params)) in std::iter::once(first).chain(calls).enumerate() {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        output.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        loop {
            let line = lines.next_line().await.unwrap().expect("the server answers");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                break;
            }
        }
        if id == 0 {
            output
                .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
                .await
                .unwrap();
        }
    }
}

/// Starts an agent whose work an engine does.
pub(super) fn start(
    threads: &tokio::runtime::Runtime,
    place: &Place,
    engine: &str,
    engines: Arc<dyn Engines>,
) -> Run {
    let runtime = place.runtime().with_engines(engines);
    let named = AgentEngine { name: engine.to_owned(), ..AgentEngine::default() };
    let agent = place.complete(Agent::new("tests/parity").engine(named).tools(Place::tools()));
    threads.block_on(runtime.start_with(&agent, "Sew.", place.options())).unwrap()
}

/// An agent whose engine makes the calls.
pub(super) fn engine(place: &Place, case: &Case) {
    let threads = threads();
    let run = start(&threads, place, NAME, Arc::new(SewingMachine { calls: case.calls() }));
    match case.trouble {
        Trouble::Cancelled => {
            place.wait_for_begin();
            threads.block_on(run.cancel()).unwrap();
        }
        Trouble::Denied => place.deny(),
        Trouble::None | Trouble::Budget => {}
    }
    let ended = threads.block_on(run.outcome()).unwrap();
    let is_expected = match case.trouble {
        Trouble::Cancelled => matches!(ended, DriveOutcome::Cancelled { .. }),
        _ => matches!(ended, DriveOutcome::Completed(_)),
    };
    assert!(is_expected, "{}: {ended:?}", case.name);
}
