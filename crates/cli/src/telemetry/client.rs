//! The HTTP client of the exporters.
//!
//! Exporters call it on threads of their own, which block anyway, so it waits for its requests on a runtime that nothing else uses: a command that has ended, or
//! that has no runtime, still sends its last spans.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// Time limit of the connection to a collector.
const CONNECT: Duration = Duration::from_secs(5);

/// Time limit of a whole request, as the protocol recommends.
const WHOLE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct CollectorClient {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl CollectorClient {
    pub(super) fn new() -> anyhow::Result<Self> {
        // A program that has chosen a crypto provider keeps it.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("backstitch/", env!("CARGO_PKG_VERSION")))
            // Headers may hold a key, which must not be sent to another server.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .build()
            .context("the client for the collector of traces cannot be created")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, client })
    }
}

/// The answer to a request, as the trait declares it.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for CollectorClient {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Answer<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { self.runtime.block_on(self.client.send_bytes(request)) })
    }
}
