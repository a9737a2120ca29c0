//! Recording of a cassette.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::ports::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};

use super::CassetteError;
use super::format::{Chunk, Exchange, Request, Response, VERSION};
use crate::secret::{redact_bytes, redact_json, redact_text};
use crate::transport::{Body, HttpRequest, HttpResponse, RequestHeader, Transport, TransportError};

/// The recorded headers of a response: those that this crate reads, and those that identify a request to its
/// provider.
const KEPT: [&str; 8] = [
    "content-type",
    "date",
    "location",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-request-id",
    "x-should-retry",
];

/// A transport that records the traffic of another one.
pub struct Recorder {
    inner: Arc<dyn Transport>,
    tape: Arc<Tape>,
}

impl Recorder {
    /// Records the traffic of a transport into a new file.
    pub fn create(path: impl AsRef<Path>, inner: Arc<dyn Transport>) -> Result<Self, CassetteError> {
        let file = path.as_ref().to_owned();
        let opened = OpenOptions::new().write(true).create_new(true).open(&file);
        let opened = opened.map_err(|source| CassetteError::File { file: file.clone(), source })?;
        let tape = Tape { file, opened: Mutex::new(Ok(opened)) };
        Ok(Self { inner, tape: Arc::new(tape) })
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recorder").field("file", &self.tape.file).finish_non_exhaustive()
    }
}

impl Transport for Recorder {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            self.tape.check()?;
            let key = request.secret.as_ref().map(|(_, secret)| bare(secret));
            let of_headers = request.custom.iter().flat_map(RequestHeader::secrets);
            let secrets = key.into_iter().chain(of_headers.map(SecretString::from)).collect();
            let mut take = Take {
                tape: self.tape.clone(),
                secrets,
                request: Some(Request::of(&request)),
                response: Response::default(),
                chunks: Vec::new(),
            };
            match self.inner.send(request).await {
                Ok(HttpResponse { status, headers, body }) => {
                    let kept = headers.iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
                    take.response.headers = kept.cloned().collect();
                    take.response.status = Some(status);
                    Ok(HttpResponse { status, headers, body: Box::new(RecordingBody { body, take }) })
                }
                Err(error) => {
                    take.response.broken = Some(error.to_string());
                    take.write();
                    self.tape.check()?;
                    Err(error)
                }
            }
        })
    }
}

/// The key itself, without the name of the scheme.
fn bare(secret: &SecretString) -> SecretString {
    let value = secret.expose_secret();
    SecretString::from(value.strip_prefix("Bearer ").unwrap_or(value).to_owned())
}

/// The file of a cassette.
struct Tape {
    file: PathBuf,
    /// The file, until an exchange could not be written.
    opened: Mutex<Result<File, std::io::Error>>,
}

impl Tape {
    fn write(&self, exchange: &Exchange) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(file) = &mut *opened else { return };
        let written = serde_json::to_vec(exchange).map_err(std::io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)
        });
        if let Err(problem) = written {
            *opened = Err(problem);
        }
    }

    /// Fails if an earlier exchange could not be written.
    fn check(&self) -> Result<(), TransportError> {
        match &*self.opened.lock().unwrap_or_else(PoisonError::into_inner) {
            Ok(_) => Ok(()),
            Err(problem) => {
                let file = self.file.display();
                Err(TransportError::broken(format!("the cassette {file} cannot be written: {problem}")))
            }
        }
    }
}

/// An exchange in progress. It is written at its end, or when its body is dropped.
struct Take {
    tape: Arc<Tape>,
    secrets: Vec<SecretString>,
    request: Option<Request>,
    response: Response,
    chunks: Vec<Vec<u8>>,
}

impl Take {
    fn write(&mut self) {
        let Some(mut request) = self.request.take() else { return };
        let mut response = std::mem::take(&mut self.response);
        let mut chunks = std::mem::take(&mut self.chunks);
        for secret in self.secrets.iter().map(|secret| secret.expose_secret()) {
            request.url = redact_text(&request.url, secret);
            request.body = request.body.map(|body| redact_json(body, secret));
            response.broken = response.broken.map(|text| redact_text(&text, secret));
            for (_, value) in &mut response.headers {
                *value = redact_text(value, secret);
            }
            // A secret may be split between two pieces, so the whole body is searched, and becomes one piece.
            let whole = chunks.concat();
            let clean = redact_bytes(&whole, secret.as_bytes());
            if clean != whole {
                chunks = vec![clean];
            }
        }
        response.chunks = chunks.into_iter().map(Chunk::of).collect();
        self.tape.write(&Exchange { v: VERSION, request, response });
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        self.write();
    }
}

struct RecordingBody {
    body: Box<dyn Body>,
    take: Take,
}

impl Body for RecordingBody {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async move {
            let chunk = self.body.chunk().await;
            match &chunk {
                Ok(Some(bytes)) => self.take.chunks.push(bytes.clone()),
                Ok(None) => self.take.write(),
                Err(error) => {
                    self.take.response.broken = Some(error.to_string());
                    self.take.write();
                }
            }
            chunk
        })
    }
}
