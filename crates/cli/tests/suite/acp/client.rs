//! An editor: the client library of the protocol, connected to the pipes of a real process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, InitializeResponse, LoadSessionRequest,
    NewSessionRequest, PromptRequest, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate,
    StopReason, ToolCallContent, ToolCallStatus,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines, on_receive_notification, on_receive_request};
use futures_util::{sink, stream};
use tokio::sync::mpsc;

use crate::stage::Stage;

/// Time limit of a condition. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a person answers a question: with the id of an option, or not at all.
pub(super) type Answers = fn(&RequestPermissionRequest) -> Option<&'static str>;

/// A person who decides nothing.
pub(super) fn silent(_: &RequestPermissionRequest) -> Option<&'static str> {
    None
}

/// What the editor has received.
#[derive(Default)]
pub(super) struct Seen {
    updates: Mutex<Vec<SessionNotification>>,
    pub(super) questions: Mutex<Vec<RequestPermissionRequest>>,
    /// Questions that nobody answers.
    open: Mutex<Vec<Responder<RequestPermissionResponse>>>,
}

/// An editor that is connected.
pub(super) struct Editor {
    pub(super) connection: ConnectionTo<Agent>,
    pub(super) introduction: InitializeResponse,
    pub(super) seen: Arc<Seen>,
    child: u32,
}

/// Starts a process, connects an editor to it, and closes the connection after the test. Returns the exit status.
pub(super) fn with_editor(
    stage: &Stage,
    more: &[&str],
    answers: Answers,
    test: impl AsyncFnOnce(Editor),
) -> ExitStatus {
    let mut arguments = vec!["acp"];
    arguments.extend(more);
    let log = File::options().create(true).append(true).open(stage.path("acp.log")).unwrap();
    let mut child = stage.command(&arguments).stdin(Stdio::piped()).stderr(log).spawn().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ended = runtime.block_on(connect(&mut child, answers, test));
    let status = child.wait().unwrap();
    let log = std::fs::read_to_string(stage.path("acp.log")).unwrap();
    assert!(ended.is_ok(), "{ended:?}\n{log}");
    status
}

async fn connect(child: &mut Child, answers: Answers, test: impl AsyncFnOnce(Editor)) -> Result<(), Error> {
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let incoming =
        stream::unfold(lines, |mut lines| async move { lines.recv().await.map(|line| (line, lines)) });
    let outgoing = sink::unfold(input, |mut input, line: String| async move {
        // A process that was killed reads nothing.
        let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        Ok::<_, std::io::Error>(input)
    });
    let (seen, pid) = (Arc::new(Seen::default()), child.id());
    let (noted, asked) = (seen.clone(), seen.clone());
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                noted.updates.lock().unwrap().push(notification);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest,
                        responder: Responder<RequestPermissionResponse>,
                        _| {
                let answer = answers(&request);
                asked.questions.lock().unwrap().push(request);
                match answer {
                    Some(id) => {
                        let selected = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id));
                        responder.respond(RequestPermissionResponse::new(selected))
                    }
                    None => {
                        asked.open.lock().unwrap().push(responder);
                        Ok(())
                    }
                }
            },
            on_receive_request!(),
        )
        .connect_with(Lines::new(outgoing, incoming), async move |connection| {
            let request = InitializeRequest::new(ProtocolVersion::V1);
            let introduction = connection.send_request(request).block_task().await?;
            test(Editor { connection, introduction, seen, child: pid }).await;
            Ok(())
        })
        .await
}

impl Editor {
    /// Begins a conversation in the workspace of a stage.
    pub(super) async fn begin(&self, stage: &Stage) -> SessionId {
        let request = NewSessionRequest::new(stage.path("files"));
        self.connection.send_request(request).block_task().await.unwrap().session_id
    }

    /// Loads a conversation.
    pub(super) async fn load(&self, stage: &Stage, session: &SessionId) -> Result<(), Error> {
        let request = LoadSessionRequest::new(session.clone(), stage.path("files"));
        self.connection.send_request(request).block_task().await.map(|_| ())
    }

    /// Sends a text, and waits for the end of the turn.
    pub(super) async fn prompt(&self, session: &SessionId, text: &str) -> Result<PromptResponse, Error> {
        let content = vec![ContentBlock::from(text)];
        self.connection.send_request(PromptRequest::new(session.clone(), content)).block_task().await
    }

    /// Like [`prompt`](Self::prompt), for a turn that ends.
    pub(super) async fn say(&self, session: &SessionId, text: &str) -> StopReason {
        self.prompt(session, text).await.unwrap().stop_reason
    }

    pub(super) fn cancel(&self, session: &SessionId) {
        self.connection.send_notification(CancelNotification::new(session.clone())).unwrap();
    }

    /// Kills the process.
    pub(super) fn kill(&self) {
        let pid = self.child.to_string();
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }

    /// Waits until a condition holds.
    pub(super) async fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < PATIENCE, "{what} did not happen: {:#?}", self.seen.updates.lock());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a person was asked so many questions.
    pub(super) async fn wait_for_questions(&self, count: usize) {
        self.wait_until("a question", || self.seen.questions.lock().unwrap().len() >= count).await;
    }
}

impl Seen {
    /// Returns the updates of a session.
    pub(super) fn updates(&self, session: &SessionId) -> Vec<SessionUpdate> {
        let all = self.updates.lock().unwrap();
        all.iter().filter(|seen| seen.session_id == *session).map(|seen| seen.update.clone()).collect()
    }

    /// Returns the text of the agent in a session.
    pub(super) fn text(&self, session: &SessionId) -> String {
        let chunks = self.updates(session).into_iter().filter_map(|update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => text_of(chunk.content),
            _ => None,
        });
        chunks.collect()
    }

    /// Returns the messages of the person that were replayed.
    pub(super) fn messages(&self, session: &SessionId) -> Vec<String> {
        let chunks = self.updates(session).into_iter().filter_map(|update| match update {
            SessionUpdate::UserMessageChunk(chunk) => text_of(chunk.content),
            _ => None,
        });
        chunks.collect()
    }

    /// Returns the last status of each call, with its title, in the order in which they were announced.
    pub(super) fn calls(&self, session: &SessionId) -> Vec<(String, ToolCallStatus)> {
        let mut calls: Vec<(String, String, ToolCallStatus)> = Vec::new();
        for update in self.updates(session) {
            match update {
                SessionUpdate::ToolCall(call) => {
                    calls.push((call.tool_call_id.to_string(), call.title, call.status));
                }
                SessionUpdate::ToolCallUpdate(update) => {
                    let id = update.tool_call_id.to_string();
                    if let Some(call) = calls.iter_mut().find(|call| call.0 == id) {
                        call.2 = update.fields.status.unwrap_or(call.2);
                    }
                }
                _ => {}
            }
        }
        calls.into_iter().map(|(_, title, status)| (title, status)).collect()
    }

    /// Returns the changes of files that finished calls have shown, each with its path, old and new text.
    pub(super) fn diffs(&self, session: &SessionId) -> Vec<(String, Option<String>, String)> {
        let updates = self.updates(session).into_iter().filter_map(|update| match update {
            SessionUpdate::ToolCallUpdate(update) => update.fields.content,
            _ => None,
        });
        updates.flatten().filter_map(diff_of).collect()
    }
}

/// Returns a change of a file.
pub(super) fn diff_of(content: ToolCallContent) -> Option<(String, Option<String>, String)> {
    match content {
        ToolCallContent::Diff(diff) => {
            let name = diff.path.file_name().unwrap().to_string_lossy().into_owned();
            Some((name, diff.old_text, diff.new_text))
        }
        _ => None,
    }
}

fn text_of(block: ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Text(text) => Some(text.text),
        _ => None,
    }
}
