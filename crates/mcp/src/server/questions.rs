//! Questions that a client answers with its next request.
//!
//! Since revision 2026-07-28 a server sends no requests. A call that needs a decision ends with the question as its
//! result, and the client repeats the call with the answer. Here the call itself keeps waiting meanwhile, and the
//! repeated request continues it. The state that the client returns is only the name of the question: that of the call, and a
//! number, so that a late answer is not taken for that to a later question about the call.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
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
    request: RepeatedRequest,
    results: Arc<Mutex<ResultSender>>,
    answer: oneshot::Sender<Option<ElicitResult>>,
}

/// The way to a request that is answered with a question.
pub(super) type ResultSender = mpsc::UnboundedSender<InputRequiredResult>;

/// The tool and the arguments of a request, which its client repeats with the answer. The arguments of the question may be
/// others, if a person has edited them.
type RepeatedRequest = (String, Map<String, Value>);

/// The way of the questions about a call to its client.
pub(super) struct QuestionSender {
    questions: OpenQuestions,
    request: RepeatedRequest,
    /// To the latest request: each answer comes with a new one, which is answered with the next question.
    results: Arc<Mutex<ResultSender>>,
    /// Stops the call.
    cancel: CancellationToken,
    /// The number of questions so far.
    count: AtomicU32,
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
        let (known, known_arguments) = &questions.get(state)?.request;
        if known != name || known_arguments != arguments {
            return None;
        }
        questions.remove(state)
    }
}

impl OpenQuestion {
    /// Passes the answer of the client on to the call. The next question about it goes to the request with the answer.
    pub(super) fn answer(self, answers: Option<&InputResponses>, results: ResultSender) {
        *self.results.lock().unwrap_or_else(PoisonError::into_inner) = results;
        let sent = answers.and_then(|answers| answers.get(APPROVAL)).cloned();
        let sent = sent.and_then(|sent| serde_json::from_value::<ElicitResult>(sent).ok());
        let _ = self.answer.send(sent);
    }
}

impl QuestionSender {
    pub(super) fn new(
        questions: OpenQuestions,
        (name, arguments): (&str, &Map<String, Value>),
        results: ResultSender,
        cancel: CancellationToken,
    ) -> Self {
        let request = (name.to_owned(), arguments.clone());
        let (results, count) = (Arc::new(Mutex::new(results)), AtomicU32::new(0));
        Self { questions, request, results, cancel, count }
    }

    /// Asks a question, and waits for the request that brings the answer.
    pub(super) async fn ask(&self, call: CallId, question: ElicitRequest) -> Option<ElicitResult> {
        let (sender, answer) = oneshot::channel();
        let key = format!("{call}-{}", self.count.fetch_add(1, Ordering::Relaxed));
        let open = OpenQuestion {
            call,
            cancel: self.cancel.clone(),
            request: self.request.clone(),
            results: self.results.clone(),
            answer: sender,
        };
        self.questions.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), open);
        let guard = QuestionGuard { questions: &self.questions, key };
        let requests = BTreeMap::from([(APPROVAL.to_owned(), InputRequest::Elicitation(question))]);
        let result = InputRequiredResult::new(Some(requests), Some(guard.key.clone()));
        self.results.lock().unwrap_or_else(PoisonError::into_inner).send(result).ok()?;
        answer.await.ok().flatten()
    }
}
