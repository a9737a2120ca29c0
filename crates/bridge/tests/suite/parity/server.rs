//! A server of the session, as a process of its own.
//!
//! The process is this test program, which runs [`process`] alone. What the test harness prints must not get between the
//! messages, so a shell moves standard input and output away first.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::ports::Store;
use backstitch_mcp::{HostError, HostFuture, OpenCalls, ServerHost, ToolOffer, ToolServer};
use backstitch_runtime::OutsideCalls;
use serde_json::Value;
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::outside::{closed, opened};
use super::place::{Place, threads};

/// Environment variable with the directory of the place.
const DIRECTORY: &str = "BACKSTITCH_PARITY_DIRECTORY";

/// Environment variable that is set if the case has a budget.
const BUDGET: &str = "BACKSTITCH_PARITY_BUDGET";

/// Starts the test program with the pipes of the client as descriptors 3 and 4.
const SCRIPT: &str =
    r#"exec "$0" parity::server::process --exact --ignored --nocapture 3<&0 4>&1 </dev/null >/dev/null"#;

/// Returns the command of a server over the session of a place.
pub(super) fn command(place: &Place) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let [directory, budget] = variables(place).map(|(name, value)| format!("{name}={value}"));
    ["env", &directory, &budget, "sh", "-c", SCRIPT, program.to_str().unwrap()].map(str::to_owned).to_vec()
}

/// Returns the environment variables that name a place to another process.
pub(super) fn variables(place: &Place) -> [(&'static str, String); 2] {
    [(DIRECTORY, place.directory.display().to_string()), (BUDGET, u8::from(place.has_budget).to_string())]
}

/// Returns the place that the environment variables of this process name.
pub(super) fn place_of_variables() -> Option<Place> {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY)?);
    Some(Place::at(directory, std::env::var(BUDGET).as_deref() == Ok("1")))
}

/// The pipes of a client, as descriptors 3 and 4. Their types are those of the other end, which are the ones that make a
/// pipe of a descriptor.
pub(super) struct Pipes {
    pub(super) input: ChildStdout,
    pub(super) output: ChildStdin,
}

impl Pipes {
    pub(super) fn open() -> Self {
        let input: OwnedFd = File::open("/dev/fd/3").unwrap().into();
        let output: OwnedFd = File::options().write(true).open("/dev/fd/4").unwrap().into();
        Self {
            input: ChildStdout::from_std(input.into()).unwrap(),
            output: ChildStdin::from_std(output.into()).unwrap(),
        }
    }
}

/// A host that holds one session, and has no others.
struct BareHost(Arc<OutsideCalls>);

impl ServerHost for BareHost {
    fn offer(&self) -> HostFuture<'_, Result<ToolOffer, HostError>> {
        let tools = self.0.driver().agent().tools.iter().map(|tool| tool.spec.clone()).collect();
        let offer = ToolOffer { name: "parity".to_owned(), tools, instructions: None };
        Box::pin(async { Ok(offer) })
    }

    fn open(&self, _: Option<String>) -> HostFuture<'_, Result<OpenCalls, HostError>> {
        Box::pin(async { Ok(OpenCalls::held(self.0.clone())) })
    }

    fn session(&self) -> HostFuture<'_, Result<(SessionId, Arc<dyn Store>), HostError>> {
        Box::pin(async { Ok((self.0.session().id(), self.0.session().store().clone())) })
    }

    fn diff(&self, _: String, _: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("there is nothing to compare".to_owned()) })
    }

    fn fork(&self, _: String) -> HostFuture<'_, Result<Value, String>> {
        Box::pin(async { Err("there is no room for a fork".to_owned()) })
    }

    fn waits(&self, _: SessionId, _: CallId, name: &str) -> String {
        format!("{name} waits for approval")
    }
}

#[test]
#[ignore = "it is the process of a server, which the other tests start"]
fn process() {
    let Some(place) = place_of_variables() else { return };
    threads().block_on(async {
        let runtime = place.runtime();
        let calls = opened(&place, &runtime).await;
        let server = ToolServer::new(Arc::new(BareHost(calls.clone())));
        let Pipes { input, output } = Pipes::open();
        server.serve(input, output, CancellationToken::new()).await.unwrap();
        closed(&calls).await;
    });
}
