//! One request and its answer.

use std::sync::Arc;

use backstitch_core::ports::{PolicyAnswer, PolicyRequest, RequestBody};

use super::limiter::Limiter;
use super::{ModelPolicy, address};
use crate::answer::SseDecoder;
use crate::error::{ErrorKind, ProviderError, quote};
use crate::secret::{Listener, redact_all, redact_answer};
use crate::transport::{HttpRequest, HttpResponse, TransportError};
use crate::wire::{error_in_body, of_response, parse, stream_reader};

/// The maximum size of a response with an error status, in bytes.
const LONGEST_ERROR: usize = 1024 * 1024;

impl ModelPolicy {
    pub(super) async fn exchange(
        &self,
        question: &PolicyRequest,
        body: RequestBody,
    ) -> Result<PolicyAnswer, ProviderError> {
        let provider = self.target.provider;
        let stream = self.options.stream;
        let request = HttpRequest {
            url: address::url(&self.target, stream),
            headers: address::headers(provider, stream),
            secret: self.key.as_ref().map(|key| address::secret(&self.target, key)),
            custom: self.headers.to_vec(),
            body,
        };
        let limiter = self.limiter();
        if let Some(limiter) = &limiter {
            limiter.wait().await;
        }
        let mut response = self.transport.send(request).await.map_err(|error| self.unreached(&error))?;
        let status = response.status;
        if !(200..300).contains(&status) {
            // A truncated error body says more than the failure to read it.
            let body = self.whole(&mut response, Vec::new(), LONGEST_ERROR).await.unwrap_or_default();
            let body = redact_all(&body, &self.held_secrets());
            let error = of_response(provider, status, |name| response.header(name), &body);
            if let Some(limiter) = limiter {
                limiter.heed_error(&error, |name| response.header(name));
            }
            return Err(error);
        }
        if let Some(limiter) = limiter {
            limiter.heed_headers(|name| response.header(name));
        }
        let (begun, streams) = self.begin(&mut response).await?;
        let answer = if streams {
            self.read_stream(question, response, begun).await?
        } else {
            let body = self.whole(&mut response, begun, self.answer_limit).await?;
            parse(&body, &self.target).map_err(|error| self.unread(error, status, &body))?
        };
        // A server that repeats a secret must not get it into the journal.
        let answer = self.held_secrets().into_iter().fold(answer, redact_answer);
        let wants_output = question.output.is_some() || self.options.output_schema.is_some();
        Ok(if wants_output { with_output(answer) } else { answer })
    }

    /// The limiter of the address and the key; `None` if no server is asked.
    fn limiter(&self) -> Option<Arc<Limiter>> {
        let base = self.target.endpoint.as_deref().unwrap_or_else(|| self.target.provider.base_url());
        self.transport.has_limits().then(|| Limiter::of(base, &self.held_secrets()))
    }

    /// Reads the first bytes of a response, until they show whether the answer is streamed. Some servers do
    /// not stream although the request asks for it, and not all of them send a content type, so the header
    /// only decides when the bytes do not.
    async fn begin(&self, response: &mut HttpResponse) -> Result<(Vec<u8>, bool), ProviderError> {
        let named = response.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut begun = Vec::new();
        loop {
            if let Some(streams) = is_stream(&begun, named) {
                return Ok((begun, streams));
            }
            let chunk = response.body.chunk().await.map_err(|error| {
                if named { ProviderError::cut_stream(self.target.provider) } else { self.unreached(&error) }
            })?;
            let Some(chunk) = chunk else { return Ok((begun, named)) };
            begun.extend_from_slice(&chunk);
            if begun.len() > self.answer_limit {
                return Err(self.too_long(self.answer_limit));
            }
        }
    }

    async fn read_stream(
        &self,
        question: &PolicyRequest,
        mut response: HttpResponse,
        begun: Vec<u8>,
    ) -> Result<PolicyAnswer, ProviderError> {
        let provider = self.target.provider;
        let mut decoder = SseDecoder::new();
        let mut reader = stream_reader(&self.target);
        let (mut events, mut deltas) = (Vec::new(), Vec::new());
        let mut listener = Listener::new(&question.deltas, &self.held_secrets());
        let mut read = 0;
        let mut begun = Some(begun);
        let mut is_complete = false;
        while !is_complete {
            let chunk = match begun.take() {
                Some(begun) => Some(begun),
                None => response.body.chunk().await.map_err(|_| ProviderError::cut_stream(provider))?,
            };
            let Some(chunk) = chunk else { break };
            read += chunk.len();
            if read > self.answer_limit {
                return Err(self.too_long(self.answer_limit));
            }
            let taken = decoder.feed(&chunk, &mut events);
            taken.map_err(|problem| ProviderError::malformed(provider, problem.to_string()))?;
            for event in events.drain(..) {
                is_complete |= reader.feed(&event, &mut deltas)?;
                for delta in deltas.drain(..) {
                    listener.emit(delta);
                }
            }
        }
        listener.finish();
        reader.finish().map_err(|error| error_in_body(provider, &decoder.into_stray()).unwrap_or(error))
    }

    /// The error for a body that cannot be parsed: the error object in it, or a description with the
    /// beginning of the body.
    fn unread(&self, error: ProviderError, status: u16, body: &str) -> ProviderError {
        // An error about the finish reason keeps its own message.
        if error.kind != ErrorKind::Malformed || error.code.is_some() {
            return error;
        }
        let body = redact_all(body, &self.held_secrets());
        let usage = *error.usage;
        let mut error = error_in_body(self.target.provider, &body).unwrap_or_else(|| {
            let quoted = if body.trim().is_empty() { "nothing".to_owned() } else { quote(&body) };
            let message = format!("{}; the server answered with status {status}: {quoted}", error.message);
            ProviderError::malformed(self.target.provider, message)
        });
        error.status = Some(status);
        error.costing(usage)
    }

    async fn whole(
        &self,
        response: &mut HttpResponse,
        begun: Vec<u8>,
        limit: usize,
    ) -> Result<String, ProviderError> {
        let mut bytes = begun;
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
        let is_miss = matches!(error, TransportError::NotRecorded(_));
        let kind = if is_miss { ErrorKind::NotRecorded } else { ErrorKind::Network };
        ProviderError::new(self.target.provider, kind, error.to_string())
    }
}

/// Whether a response is a stream of events: its first bytes decide, and if they do not, the header, which says
/// `named`. `None` if there are too few bytes.
fn is_stream(bytes: &[u8], named: bool) -> Option<bool> {
    const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text.first() {
        // JSON, or a page of a proxy.
        Some(b'{' | b'[' | b'<') => Some(false),
        _ if FIELDS.iter().any(|field| text.starts_with(field)) => Some(true),
        _ if FIELDS.iter().any(|field| field.starts_with(text)) => None,
        _ => Some(named),
    }
}

/// Sets the structured output of an answer, if its text is JSON.
fn with_output(mut answer: PolicyAnswer) -> PolicyAnswer {
    if answer.calls.is_empty() {
        let texts = answer.parts.iter().filter_map(|part| part.as_text()?.text.inline());
        let text: String = texts.map(|text| &**text).collect();
        answer.output = serde_json::from_str(text.trim()).ok();
    }
    answer
}
