//! What a program reports.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::observed::{ObservedCall, ObservedRequest, ObservedResult};

/// What a program reports, in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineEvent {
    /// Its conversation is open.
    Started {
        /// The program's own id of the conversation.
        session: String,
        /// The file that the program keeps it in.
        transcript: Option<PathBuf>,
        /// The model, in the program's own words.
        model: Option<String>,
        /// The version of the program.
        version: Option<String>,
    },
    /// Its model begins an answer. Texts and calls that follow belong to it.
    Answering,
    /// A piece of the text of an answer, as it arrives.
    Piece(String),
    /// A text of an answer, complete.
    Text(String),
    /// A call is about to run. It runs once it is allowed.
    CallStarting(ObservedCall, CallReply),
    /// A call has ended. The program continues once this is acknowledged.
    CallFinished(ObservedCall, ObservedResult, ProgramHold),
    /// The result that the model of the program receives. Calls that were denied, or never began, have only this.
    CallResult(ObservedCall, ObservedResult),
    /// A sub-agent of the program has ended.
    SubAgentEnded(Option<String>, ProgramHold),
    /// A request to the model has been answered.
    Request(ObservedRequest),
    /// The money that this run has cost so far, in millionths, as the program counts it.
    Cost(u64),
    /// A request to the model failed, and the program sends it again after a delay.
    Retry {
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// The delay.
        wait: Duration,
        /// A word for the kind of error.
        kind: String,
        /// The error, for people.
        message: String,
    },
    /// Something for the log.
    Note(String),
    /// The program has answered, or has stopped. This is the last event.
    Ended(EngineEnd),
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineEnd {
    /// It answered. The text is that of the whole answer, if the program reports it.
    Answered(Option<String>),
    /// It was interrupted.
    Interrupted,
    /// It reached a limit that it was started with.
    Limit(String),
    /// It failed, and says why.
    Failed(String),
}

/// The answer to a call that is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAnswer {
    /// It runs.
    Allow,
    /// It runs with other arguments.
    AllowWith(serde_json::Value),
    /// It does not run, and the model of the program reads the reason.
    Deny(String),
}

/// Holds a call until it is answered. Dropping it denies the call.
#[derive(Debug)]
pub struct CallReply(oneshot::Sender<CallAnswer>);

impl CallReply {
    /// Creates a reply, and the receiver of its answer. A receiver that gets an error has to deny the call.
    pub fn new() -> (Self, oneshot::Receiver<CallAnswer>) {
        let (send, receive) = oneshot::channel();
        (Self(send), receive)
    }

    /// Whether nothing can be decided any more, because the call has run already.
    pub(super) fn is_late(&self) -> bool {
        self.0.is_closed()
    }

    /// Answers. A program that is gone receives nothing.
    pub fn answer(self, answer: CallAnswer) {
        let _ = self.0.send(answer);
    }
}

/// Holds a program until this is dropped.
#[derive(Debug)]
pub struct ProgramHold(#[expect(dead_code, reason = "dropping it is the message")] oneshot::Sender<()>);

impl ProgramHold {
    /// Creates a hold. The receiver completes, with an error, when it is dropped.
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (send, receive) = oneshot::channel();
        (Self(send), receive)
    }
}
