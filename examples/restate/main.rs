//! Sessions as virtual objects of Restate: it decides when and where a session is driven, Backstitch does the rest.
//!
//!     backstitch-restate STORE WORKSPACE OUTSIDE ADDRESS
//!
//! The key of an object is the id of a session. Restate runs one exclusive handler of a key at a time, starts it again if its process is
//! lost, and keeps the timers. The journal, the inbox, the fence against a process that only seemed lost, and the files stay with the store.
//! The agent follows a script, so the program runs offline. `OUTSIDE` is a directory that stands for the world outside: `log` has a line for
//! each effect there, and while there is a file `slow`, work does not end.
#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstitch::code::ErrorCode;
use backstitch::id::InvalidId;
use backstitch::journal::{IdempotencyKey, InboxItem, InboxKind, PauseResolved, StopReason};
use backstitch::prelude::*;
use backstitch::session::BoxError;
use backstitch::time::Clock as _;
use backstitch::tool::{ReconcileOutcome, Wait};
use backstitch::{AgentRegistry, Rest, SystemClock};
use restate_sdk::prelude::*;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};

/// The state of an object: why its session rests. Restate's interface shows it.
const REST: &str = "rest";

/// What can be delivered to a session.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Item {
    Message(String),
    Signal { name: String, value: Value },
    Decision(PauseResolved),
}

#[derive(Clone)]
struct Sessions {
    runtime: Runtime,
    agent: Agent,
}

#[object(name = "Session")]
impl Sessions {
    /// Starts a session with a mission, and drives it. A second start of the same key only drives it.
    #[handler]
    async fn start(&self, ctx: ObjectContext<'_>, mission: String) -> Result<Json<Rest>, HandlerError> {
        self.drive_in(ctx, Some(mission)).await
    }

    /// Drives a session until it waits or ends.
    #[handler]
    async fn drive(&self, ctx: ObjectContext<'_>) -> Result<Json<Rest>, HandlerError> {
        self.drive_in(ctx, None).await
    }

    /// Drives a session whose time has come. Without the note about this timer, the next one is planned even if it is the same: this
    /// clock may be behind that of Restate.
    #[handler]
    async fn due(&self, ctx: ObjectContext<'_>, timer: Json<Rest>) -> Result<Json<Rest>, HandlerError> {
        let planned: Option<Json<Rest>> = ctx.get(REST).await?;
        if planned.is_some_and(|planned| planned.0 == timer.0) {
            ctx.clear(REST);
        }
        self.drive_in(ctx, None).await
    }

    /// Delivers an item, also while the session is driven. It is durable in the store before a drive is queued.
    #[handler]
    async fn wake(&self, ctx: SharedObjectContext<'_>, item: Json<Item>) -> Result<(), HandlerError> {
        let (sessions, session, once) = (self.clone(), key(ctx.key())?, ctx.invocation_id().to_owned());
        let deliver = move || async move { sessions.deliver(session, &once, item.into_inner()).await };
        ctx.run(deliver).name("deliver").await?;
        ctx.object_client::<SessionsClient>(ctx.key()).drive().send();
        Ok(())
    }

    /// Reports a session with the decisions that it waits for, and its last message.
    #[handler]
    async fn report(&self, ctx: SharedObjectContext<'_>) -> Result<Json<Value>, HandlerError> {
        let view = self.runtime.view(key(ctx.key())?).await.map_err(failure)?;
        let texts = view.transcript()?.all().iter().map(|message| message.content()).collect::<Vec<_>>();
        let last = texts.iter().rfind(|text| !text.is_empty());
        Ok(Json(json!({ "session": self.runtime.overview(&view).await?, "last_message": last })))
    }
}

impl Sessions {
    /// Drives a session as one step of the invocation: if the process is lost, the step runs again, and the session continues where its
    /// journal ends.
    async fn drive_in(
        &self,
        ctx: ObjectContext<'_>,
        mission: Option<String>,
    ) -> Result<Json<Rest>, HandlerError> {
        let (sessions, session) = (self.clone(), key(ctx.key())?);
        let policy = RunRetryPolicy::default()
            .max_delay(Duration::from_secs(10))
            .max_duration(Duration::from_secs(600));
        let drive = move || async move { sessions.advance(session, mission).await.map(Json) };
        let rest: Json<Rest> = ctx.run(drive).name("drive").retry_policy(policy).await?;
        let before: Option<Json<Rest>> = ctx.get(REST).await?;
        let is_planned = before.is_some_and(|before| before.0 == rest.0);
        if let (Rest::Until { at }, false) = (&rest.0, is_planned) {
            // Not `ctx.sleep`: a handler that sleeps keeps the key, and everything else would wait behind it.
            let left = at.since(SystemClock::new().now());
            ctx.object_client::<SessionsClient>(ctx.key()).due(Json(rest.0.clone())).send_after(left);
        }
        ctx.set(REST, Json(rest.0.clone()));
        Ok(rest)
    }

    async fn advance(&self, session: SessionId, mission: Option<String>) -> Result<Rest, HandlerError> {
        if let Some(mission) = mission {
            let options = SessionOptions { id: Some(session), ..SessionOptions::default() };
            match self.runtime.start_with(&self.agent, mission, options).await {
                // How it ended is what the drive below returns.
                Ok(run) => drop(run.outcome().await),
                Err(RuntimeError::SessionExists { .. }) => {}
                Err(error) => return Err(failure(error)),
            }
        }
        // Restate gives a key to one process at a time, so another one that holds the session has lost it. If it is this one, the step
        // before this one is about to end.
        let options =
            SessionOptions { take_over: !self.runtime.drives(session), ..SessionOptions::default() };
        match self.runtime.drive_with(session, options).await {
            // This process is shut down, so that another one has to continue.
            Ok(Rest::Stopped) => Err("the endpoint was shut down".into()),
            Ok(rest) => Ok(rest),
            Err(error) => Err(failure(error)),
        }
    }

    async fn deliver(&self, session: SessionId, once: &str, item: Item) -> Result<(), HandlerError> {
        let at = SystemClock::new().now();
        let item = match item {
            Item::Message(text) => InboxItem::message(text, at),
            Item::Signal { name, value } => InboxItem::signal(name, value, at),
            Item::Decision(decision) => {
                // A decision about a call of a sub-agent is passed on to it.
                let waiting = self.runtime.waiting_calls(session).await.map_err(failure)?;
                let owner = waiting.iter().find(|waiting| Some(waiting.call) == decision.call_id);
                let owner = owner.map(|waiting| waiting.session).filter(|owner| *owner != session);
                let item =
                    InboxItem { kind: InboxKind::Resolution, at, data: serde_json::to_value(decision)? };
                match owner {
                    Some(owner) => item.for_sub_agent(owner),
                    None => item,
                }
            }
        };
        self.runtime.deliver(session, once, item).await.map_err(failure)?;
        Ok(())
    }
}

/// Decides whether Restate repeats a step: not after errors that no time mends.
fn failure(error: RuntimeError) -> HandlerError {
    match error.code() {
        ErrorCode::Auth
        | ErrorCode::EmptyMission
        | ErrorCode::MissingKey
        | ErrorCode::ScriptEnded
        | ErrorCode::SessionNotFound
        | ErrorCode::UnknownAgent
        | ErrorCode::WorkspaceGone
        | ErrorCode::WorkspaceRefused => TerminalError::from_error(error).into(),
        _ => error.into(),
    }
}

/// Reads the key of an object. Another form of the same id would be another object.
fn key(key: &str) -> Result<SessionId, TerminalError> {
    let session: SessionId =
        key.parse().map_err(|error: InvalidId| TerminalError::from_error(error).with_code(400))?;
    if session.to_string() != key {
        return Err(TerminalError::new_with_code(400, format!("write the id as {session}")));
    }
    Ok(session)
}

/// The directory that stands for the world outside.
static OUTSIDE: OnceLock<PathBuf> = OnceLock::new();

fn outside(name: &str) -> PathBuf {
    OUTSIDE.get().map(|directory| directory.join(name)).unwrap_or_default()
}

/// Does something outside, each time that it is called.
fn act(what: &str, key: &IdempotencyKey) -> std::io::Result<()> {
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(outside("log"))?;
    writeln!(log, "{what} {key}")
}

/// Takes as long as work takes.
async fn work() {
    while outside("slow").exists() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Orders cloth, waits until it is delivered, and a second until it is unpacked.
#[tool(effect = "external", workspace = "none")]
async fn order(context: ToolContext, cloth: String) -> Result<String, ToolError> {
    context.step("order", async { Ok(act("order", context.idempotency_key())?) }).await?;
    let parcel = context.wait("delivery", Wait::signal("delivered")).await?;
    let second = Duration::from_secs(1);
    let unpacked =
        context.step("unpacked", async { Ok(context.clock().now().saturating_add(second)) }).await?;
    context.wait("unpacking", Wait::until(unpacked)).await?;
    Ok(format!("{cloth} in parcel {}", parcel.unwrap_or_default()))
}

/// Sews a coat.
#[tool(effect = "workspace")]
async fn sew(context: ToolContext) -> Result<String, ToolError> {
    let (files, coat) = (context.filesystem()?, "coat.txt".parse()?);
    files.write_bytes(&coat, b"half a coat\n", WriteMode::Overwrite)?;
    work().await;
    files.write_bytes(&coat, b"a coat\n", WriteMode::Overwrite)?;
    Ok("sewn".to_owned())
}

/// Ships the coat. A person decides first.
#[tool(effect = "external", workspace = "none", approval, reconcile = find_shipment)]
async fn ship(context: ToolContext) -> Result<String, ToolError> {
    act("ship", context.idempotency_key())?;
    work().await;
    Ok("shipped".to_owned())
}

/// Looks outside for a shipment whose call was interrupted.
async fn find_shipment(key: IdempotencyKey, _: Map<String, Value>) -> Result<ReconcileOutcome, BoxError> {
    let line = format!("ship {key}");
    let is_shipped = std::fs::read_to_string(outside("log"))?.lines().any(|known| known == line);
    Ok(if is_shipped { ReconcileOutcome::happened("shipped") } else { ReconcileOutcome::DidNotHappen })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [store, workspace, outside, address] = arguments.as_slice() else {
        return Err("usage: backstitch-restate STORE WORKSPACE OUTSIDE ADDRESS".into());
    };
    OUTSIDE.get_or_init(|| outside.clone());
    let script = ScriptedPolicy::from_toml(include_str!("script.toml"))?;
    let agent =
        Agent::new("tailor").policy(script).tools([order(), sew(), ship()]).workspace(workspace.clone());
    let runtime = Runtime::connect(store).await?.with_agents(Arc::new(AgentRegistry::new([agent.clone()])));
    let sessions = Sessions { runtime: runtime.clone(), agent };
    // A drive may take hours. Both times have to be longer than any, or Restate ends it and starts it again.
    let day = Duration::from_secs(24 * 3600);
    let options = ServiceOptions::new().inactivity_timeout(day).abort_timeout(day);
    let endpoint = Endpoint::builder().bind(sessions.into_service_definition().options(options)).build();
    let listener = tokio::net::TcpListener::bind(address.to_string_lossy().as_ref()).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async {
        tokio::select! { _ = tokio::signal::ctrl_c() => {}, _ = terminate.recv() => {} }
        // Sessions that are driven pause, and another process continues them.
        runtime.stop(StopReason::Shutdown);
    };
    HttpServer::new(endpoint).serve_with_cancel(listener, stop).await;
    runtime.shutdown().await;
    Ok(())
}
