//! Playback of a cassette.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use backstitch_core::digest::Digest;
use backstitch_core::ports::BoxFuture;

use super::CassetteError;
use super::format::{Exchange, VERSION, path_of};
use super::miss::miss;
use crate::transport::{Body, CassetteMiss, HttpRequest, HttpResponse, Transport, TransportError};

/// A transport that answers from a cassette, without network access.
#[derive(Debug)]
pub struct Player {
    file: PathBuf,
    recorded: usize,
    /// The exchanges that were not played yet, in order.
    left: Mutex<VecDeque<Take>>,
}

/// An exchange with the bytes of its body.
#[derive(Debug)]
struct Take {
    exchange: Exchange,
    chunks: VecDeque<Vec<u8>>,
}

impl Player {
    /// Opens a cassette.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        let file = path.as_ref().to_owned();
        let text = std::fs::read_to_string(&file)
            .map_err(|source| CassetteError::File { file: file.clone(), source })?;
        let mut left = VecDeque::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let take = take_of(line);
            let take =
                take.map_err(|problem| CassetteError::Line { file: file.clone(), line: index + 1, problem })?;
            left.push_back(take);
        }
        Ok(Self { file, recorded: left.len(), left: Mutex::new(left) })
    }

    /// The number of exchanges that were not played yet.
    pub fn left(&self) -> usize {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn play(&self, request: &HttpRequest) -> Result<Take, CassetteMiss> {
        let digest = Digest::of(request.body.text().as_bytes());
        let path = path_of(&request.url);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |take: &Take| {
            take.exchange.request.digest == digest && path_of(&take.exchange.request.url) == path
        };
        match left.iter().position(fits).and_then(|place| left.remove(place)) {
            Some(take) => Ok(take),
            None => {
                let others = left.iter().map(|take| &take.exchange.request);
                Err(miss(&self.file, self.recorded, others, request))
            }
        }
    }
}

fn take_of(line: &str) -> Result<Take, String> {
    let exchange: Exchange = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if exchange.v != VERSION {
        return Err(format!("version {} is not known here, only {VERSION}", exchange.v));
    }
    let chunks = exchange.response.chunks.iter().map(|chunk| chunk.bytes());
    let chunks = chunks.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    Ok(Take { exchange, chunks })
}

impl Transport for Player {
    fn has_limits(&self) -> bool {
        false
    }

    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let take = self.play(&request).map_err(|miss| TransportError::NotRecorded(Box::new(miss)))?;
            let response = take.exchange.response;
            let broken = response.broken.map(TransportError::broken);
            match response.status {
                None => Err(broken.unwrap_or_else(|| TransportError::broken("it was not reached"))),
                Some(status) => {
                    let body = PlaybackBody { chunks: take.chunks, broken };
                    Ok(HttpResponse { status, headers: response.headers, body: Box::new(body) })
                }
            }
        })
    }
}

struct PlaybackBody {
    chunks: VecDeque<Vec<u8>>,
    broken: Option<TransportError>,
}

impl Body for PlaybackBody {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        let next = match self.chunks.pop_front() {
            None => self.broken.take().map_or(Ok(None), Err),
            chunk => Ok(chunk),
        };
        Box::pin(std::future::ready(next))
    }
}
