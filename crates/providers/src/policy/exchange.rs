//! One request and its answer.

use std::sync::Arc;

use backstitch_core::ports::{Answer, Question};
use serde_json::Value;

use super::{ModelPolicy, address};
use crate::error::{ErrorKind, ProviderError, of_event, of_response};
use crate::parse::{parse, stream_reader};
use crate::secret::{Listener, redact_answer};
use crate::sse::SseDecoder;
use crate::transport::{HttpRequest, HttpResponse, TransportError};

/// The most bytes that are read of a response that is no answer.
const LONGEST_ERROR: usize = 1024 * 1024;

impl ModelPolicy {
    pub(super) async fn exchange(
        &self,
        question: &Question,
        body: Arc<str>,
    ) -> Result<Answer, ProviderError> {
        let provider = self.target.provider;
        let stream = self.options.stream;
        let request = HttpRequest {
            url: address::url(&self.target, stream),
            headers: address::headers(provider, stream),
            secret: self.key.as_ref().map(|key| address::secret(provider, key)),
            body,
        };
        let mut response = self.transport.send(request).await.map_err(|error| self.unreached(&error))?;
        if !(200..300).contains(&response.status) {
            // What can be read of it says more than that it cannot be read to its end.
            let body = self.whole(&mut response, LONGEST_ERROR).await.unwrap_or_default();
            return Err(of_response(provider, response.status, |name| response.header(name), &body));
        }
        // Servers that do not stream answer in one piece, whatever they were asked for.
        let streams =
            response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let answer = if streams {
            self.read_stream(question, response).await?
        } else {
            let body = self.whole(&mut response, self.answer_limit).await?;
            parse(&body, &self.target)?
        };
        // A server that repeats the key must not bring it into the journal.
        let answer = redact_answer(answer, self.secret());
        let wants_output = question.output.is_some() || self.options.output_schema.is_some();
        Ok(if wants_output { with_output(answer) } else { answer })
    }

    async fn read_stream(
        &self,
        question: &Question,
        mut response: HttpResponse,
    ) -> Result<Answer, ProviderError> {
        let provider = self.target.provider;
        let mut decoder = SseDecoder::new();
        let mut reader = stream_reader(&self.target);
        let (mut events, mut deltas) = (Vec::new(), Vec::new());
        let mut listener = Listener::new(&question.deltas, self.secret());
        let mut read = 0;
        while !reader.is_complete() {
            let chunk = response.body.chunk().await.map_err(|_| ProviderError::cut_stream(provider))?;
            let Some(chunk) = chunk else { break };
            read += chunk.len();
            if read > self.answer_limit {
                return Err(self.too_long(self.answer_limit));
            }
            let taken = decoder.take_in(&chunk, &mut events);
            taken.map_err(|problem| ProviderError::malformed(provider, problem.to_string()))?;
            for event in events.drain(..) {
                reader.take_in(&event, &mut deltas)?;
                for delta in deltas.drain(..) {
                    listener.tell(delta);
                }
            }
        }
        listener.finish();
        reader.finish().map_err(|error| {
            let stray = serde_json::from_str::<Value>(&decoder.into_stray()).ok();
            let said = stray.filter(|stray| !stray["error"].is_null() || !stray[0]["error"].is_null());
            said.map_or(error, |said| of_event(provider, &said))
        })
    }

    async fn whole(&self, response: &mut HttpResponse, limit: usize) -> Result<String, ProviderError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.body.chunk().await.map_err(|error| self.unreached(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > limit {
                return Err(self.too_long(limit));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn too_long(&self, limit: usize) -> ProviderError {
        ProviderError::malformed(self.target.provider, format!("the response has more than {limit} bytes"))
    }

    fn unreached(&self, error: &TransportError) -> ProviderError {
        let kind = match error {
            TransportError::NotRecorded(_) => ErrorKind::NotRecorded,
            _ => ErrorKind::Network,
        };
        ProviderError::new(self.target.provider, kind, error.to_string())
    }
}

/// The answer with its structured form, when it has one.
fn with_output(mut answer: Answer) -> Answer {
    if answer.calls.is_empty() {
        let texts = answer.parts.iter().filter_map(|part| part.as_text()?.text.inline());
        let text: String = texts.map(|text| &**text).collect();
        answer.output = serde_json::from_str(text.trim()).ok();
    }
    answer
}
