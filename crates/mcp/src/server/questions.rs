//! Questions that a client answers with its next request.
//!
//! Since revision 2026-07-28 a server sends no requests. A call that needs a decision ends with the question as its
//! result, and the client repeats the call with the answer. Here the call itself keeps waiting meanwhile, and the
//! repeated request continues it. The state that the client returns is only the name of the call.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::CallId;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequiredResult, InputResponses};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The name of the only question of a call.
const APPROVAL: &str = "approval";

/// The open questions of a session, of all of its clients. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenQuestions(Arc<Mutex<HashMap<String, OpenQuestion>>>);

/// A call that waits for the answer of its client.
pub(super) struct OpenQuestion {
    pub(super) call: CallId,
    pub(super) cancel: CancellationToken,
    name: String,
    arguments: Map<String, Value>,
    answer: oneshot::Sender<Option<ElicitResult>>,
}

/// The way of a question to its client.
pub(super) struct QuestionSender {
    pub(super) questions: OpenQuestions,
    /// To the request that is answered with the question.
    pub(super) results: mpsc::UnboundedSender<InputRequiredResult>,
    /// Stops the call.
    pub(super) cancel: CancellationToken,
}

/// Removes a question that nobody waits for any more.
struct QuestionGuard<'a> {
    questions: &'a OpenQuestions,
    key: String,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.questions.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl OpenQuestions {
    /// Takes the question of a request that is repeated with an answer.
    pub(super) fn take(
        &self,
        state: &str,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Option<OpenQuestion> {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = questions.get(state)?;
        if known.name != name || known.arguments != *arguments {
            return None;
        }
        questions.remove(state)
    }
}

impl OpenQuestion {
    /// Passes the answer of the client on to the call.
    pub(super) fn answer(self, answers: Option<&InputResponses>) {
        let sent = answers.and_then(|answers| answers.get(APPROVAL)).cloned();
        let sent = sent.and_then(|sent| serde_json::from_value::<ElicitResult>(sent).ok());
        let _ = self.answer.send(sent);
    }
}

impl QuestionSender {
    /// Asks a question, and waits for the request that brings the answer.
    pub(super) async fn ask(
        &self,
        call: CallId,
        name: &str,
        arguments: &Map<String, Value>,
        question: ElicitRequest,
    ) -> Option<ElicitResult> {
        let (sender, answer) = oneshot::channel();
        let key = call.to_string();
        let open = OpenQuestion {
            call,
            cancel: self.cancel.clone(),
            name: name.to_owned(),
            arguments: arguments.clone(),
            answer: sender,
        };
        self.questions.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), open);
        let guard = QuestionGuard { questions: &self.questions, key };
        let requests = BTreeMap::from([(APPROVAL.to_owned(), InputRequest::Elicitation(question))]);
        self.results.send(InputRequiredResult::new(Some(requests), Some(guard.key.clone()))).ok()?;
        answer.await.ok().flatten()
    }
}
