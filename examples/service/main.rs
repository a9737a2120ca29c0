//! An HTTP service: each request starts a session and streams its events. Killed or stopped and started
//! again, it resumes its sessions.
//!
//!     service STORE [MODEL]
//!
//! It prints its address. `POST /sessions` with a mission as the body responds with server-sent events, the
//! first of which names the session; `GET /sessions/ID` returns the answer once there is one; `GET /sessions`
//! lists the status of all sessions. A client that disconnects does not affect its session.
#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::convert::Infallible;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event as Sent, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use backstitch::journal::StopReason;
use backstitch::ports::StoreError;
use backstitch::prelude::*;
use serde_json::{Value, json};

/// Counts the words of a text.
#[tool(effect = "pure", workspace = "none")]
async fn count_words(
    /// The text.
    text: String,
) -> Result<usize, ToolError> {
    Ok(text.split_whitespace().count())
}

struct Service {
    runtime: Runtime,
    agent: Agent,
}

type Answered = Result<Json<Value>, (StatusCode, String)>;

fn failed(error: impl Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

async fn start(
    State(service): State<Arc<Service>>,
    mission: String,
) -> Result<Sse<impl futures_util::Stream<Item = Result<Sent, Infallible>>>, (StatusCode, String)> {
    if mission.trim().is_empty() {
        return Err((StatusCode::BAD_REQUEST, "the body is empty: it must contain the mission".to_owned()));
    }
    let run = service.runtime.start(&service.agent, mission).await.map_err(failed)?;
    let first = Sent::default().event("started").data(run.session().to_string());
    let events = futures_util::stream::unfold((run, Some(first)), |(mut run, first)| async move {
        if let Some(first) = first {
            return Some((Ok(first), (run, None)));
        }
        let event = run.next().await?;
        let name = if event.record().is_some() { "record" } else { "live" };
        Some((Ok(Sent::default().event(name).data(event.to_string())), (run, None)))
    });
    Ok(Sse::new(events))
}

async fn answer(State(service): State<Arc<Service>>, Path(id): Path<SessionId>) -> Answered {
    let status = service.runtime.status(id).await.map_err(|error| match error {
        RuntimeError::SessionNotFound { .. } => (StatusCode::NOT_FOUND, error.to_string()),
        other => failed(other),
    })?;
    if status != SessionStatus::Idle {
        return Ok(Json(json!({"session": id, "status": format!("{status:?}").to_lowercase()})));
    }
    // A session that has answered returns its recorded answer. No model is asked.
    let run = match service.runtime.resume(id, &service.agent).await {
        // The run that answered has not released the session yet.
        Err(RuntimeError::Store(StoreError::Held { .. })) => {
            return Ok(Json(json!({"session": id, "status": "running"})));
        }
        run => run.map_err(failed)?,
    };
    let text: String = run.answer().await.map_err(failed)?;
    Ok(Json(json!({"session": id, "status": "idle", "answer": text})))
}

async fn list(State(service): State<Arc<Service>>) -> Answered {
    let page = service.runtime.sessions(SessionQuery::roots()).await.map_err(failed)?;
    let line = |one: &IndexedSession| json!({"session": one.id(), "status": one.status()});
    Ok(Json(page.sessions.iter().map(line).collect()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = PathBuf::from(arguments.next().ok_or("usage: service STORE [MODEL]")?);
    let script = concat!("scripted:", env!("CARGO_MANIFEST_DIR"), "/service/script.toml");
    let model = arguments.next().unwrap_or_else(|| script.to_owned());

    let runtime = Runtime::at(store)?;
    let agent = Agent::new("clerk").model(model).tools([count_words()]);
    let unfinished = SessionQuery::roots()
        .with_status(IndexedStatus::Interrupted)
        .with_status(IndexedStatus::Stopped)
        .with_status(IndexedStatus::Runnable)
        .with_status(IndexedStatus::Paused)
        .with_limit(usize::MAX);
    for session in runtime.sessions(unfinished).await?.sessions {
        let stopped = session.summary.stopped.as_ref().map(|stopped| stopped.reason);
        if session.status() != IndexedStatus::Paused || stopped == Some(StopReason::Shutdown) {
            runtime.resume(session.id(), &agent).await?;
            println!("resumed {}", session.id());
        }
    }
    let service = Arc::new(Service { runtime: runtime.clone(), agent });
    let routes = Router::new()
        .route("/sessions", post(start).get(list))
        .route("/sessions/{id}", get(answer))
        .with_state(service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on {}", listener.local_addr()?);
    let stopped = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    axum::serve(listener, routes).with_graceful_shutdown(stopped).await?;
    // Sessions that are running pause here, and are resumed by the next process.
    runtime.shutdown().await;
    Ok(())
}
