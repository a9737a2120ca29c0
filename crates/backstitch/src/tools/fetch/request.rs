//! The request for a page: name resolution, redirects, and the limits of an answer.
//!
//! The resolver of the connection refuses names that lead to private addresses, and the connection uses the addresses that
//! it returned. So there is no second look-up between the check and the connection, which a server could answer differently.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Client, Response, StatusCode, redirect};

use super::Fetch;
use super::address::{PageAddress, is_public};
use crate::tool::{ToolError, with_causes};

/// Most redirects on one host.
const MOST_REDIRECTS: usize = 5;

/// Most bytes of the names and values of an answer's headers.
const MOST_HEADERS: usize = 64 * 1024;

/// How long a connection may take, and a server be silent.
const SILENCE: Duration = Duration::from_secs(15);

/// How much of the text of a failed answer the error repeats, in characters.
const SHOWN_FAILURE: usize = 300;

const ACCEPTED: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.9, text/plain;q=0.8, */*;q=0.1";

/// A page could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum FetchError {
    #[error("the address cannot be read: {reason}")]
    Address { reason: &'static str },
    #[error(
        "the port of {host} is not one of web pages (80, 443, 8080, 8443); the user can allow it by naming it in `private_hosts`"
    )]
    Port { host: String },
    #[error(
        "{host} has the address {address}, which is not public; the user can allow it by naming it in `private_hosts`"
    )]
    Private { host: String, address: IpAddr },
    #[error("{host} cannot be found: {cause}")]
    NotFound { host: String, cause: String },
    #[error("{host} cannot be reached: {cause}")]
    Unreachable { host: String, cause: String },
    #[error("the page was not read within {seconds} s")]
    TooSlow { seconds: u64 },
    #[error("{host} redirects more than {} times; it may be a loop", MOST_REDIRECTS)]
    Redirects { host: String },
    #[error("{host} redirects without a usable address")]
    BadRedirect { host: String },
    #[error("the headers of the answer are too many, or larger than {} KiB", MOST_HEADERS >> 10)]
    Headers,
    #[error(
        "the answer is encoded as {encoding:?}, which was not asked for; a small answer may expand to a large one, so it is not decoded"
    )]
    Encoding { encoding: String },
    #[error("{host} answers with {status}{text}")]
    Status { host: String, status: StatusCode, text: String },
    #[error("the answer of {host} broke off: {cause}")]
    Broken { host: String, cause: String },
    #[error("there is no way to send requests: {0}")]
    Client(String),
}

impl FetchError {
    fn kind(&self) -> &'static str {
        match self {
            Self::Address { .. } => "invalid_address",
            Self::Port { .. } => "unusual_port",
            Self::Private { .. } => "private_address",
            Self::NotFound { .. } => "host_not_found",
            Self::Unreachable { .. } => "unreachable",
            Self::TooSlow { .. } => "timed_out",
            Self::Redirects { .. } | Self::BadRedirect { .. } => "redirect",
            Self::Headers => "large_headers",
            Self::Encoding { .. } => "encoding",
            Self::Status { .. } => "http_status",
            Self::Broken { .. } => "broken_answer",
            Self::Client(_) => "no_client",
        }
    }

    /// Converts to the error of the call.
    pub(super) fn tool_error(self) -> ToolError {
        match self.is_passing() {
            true => ToolError::retryable(self.kind(), self),
            false => ToolError::of_kind(self.kind(), self),
        }
    }

    fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TooSlow { .. } | Self::Broken { .. } => true,
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }
}

/// What a server answered.
pub(super) enum Answer {
    /// A page.
    Content(Content),
    /// The address of another host.
    Elsewhere { url: String, status: u16, to: String },
}

/// The content of a page, as far as it was read.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) url: url::Url,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) bytes: Vec<u8>,
    /// The size that the server names.
    pub(super) announced: Option<u64>,
    /// Whether there is more than was read.
    pub(super) is_cut: bool,
}

impl Fetch {
    /// Reads a page, and follows redirects on its host.
    pub(super) async fn follow(&self, first: PageAddress) -> Result<Answer, FetchError> {
        let client = client(first.is_private)?;
        let mut address = first;
        for _ in 0..=MOST_REDIRECTS {
            let host = address.host.to_string();
            let response = client.get(address.url.clone()).header(ACCEPT, ACCEPTED).send().await;
            let response = response.map_err(|error| failed(&host, error))?;
            self.check(&address, &response)?;
            let status = response.status();
            if !is_redirect(status) {
                return self.content(&address, response).await.map(Answer::Content);
            }
            let bad = || FetchError::BadRedirect { host: host.clone() };
            let named = header(&response, LOCATION).ok_or_else(bad)?;
            let to = address.url.join(named.trim()).map_err(|_| bad())?;
            let next = match PageAddress::parse(to.as_str(), |host| self.is_private(host)) {
                Ok(next) => next,
                // It is another question, which is refused then with its reason.
                Err(FetchError::Port { .. } | FetchError::Private { .. }) => {
                    return Ok(elsewhere(&address, status, to));
                }
                Err(_) => return Err(bad()),
            };
            // A person agreed to this host. What is encrypted stays so.
            let is_weaker = address.url.scheme() == "https" && next.url.scheme() == "http";
            if next.host != address.host || is_weaker {
                return Ok(elsewhere(&address, status, to));
            }
            address = next;
        }
        Err(FetchError::Redirects { host: address.host.to_string() })
    }

    /// Checks the connection and the head of an answer.
    fn check(&self, address: &PageAddress, response: &Response) -> Result<(), FetchError> {
        let host = || address.host.to_string();
        if let Some(peer) = response.remote_addr()
            && !address.is_private
            && !is_public(peer.ip())
        {
            return Err(FetchError::Private { host: host(), address: peer.ip() });
        }
        let sizes = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
        if sizes.sum::<usize>() > MOST_HEADERS {
            return Err(FetchError::Headers);
        }
        match header(response, CONTENT_ENCODING) {
            Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
                Err(FetchError::Encoding { encoding: encoding.chars().take(40).collect() })
            }
            _ => Ok(()),
        }
    }

    async fn content(&self, address: &PageAddress, mut response: Response) -> Result<Content, FetchError> {
        let host = address.host.to_string();
        let (status, content_type) = (response.status(), header(&response, CONTENT_TYPE));
        let announced = header(&response, CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let is_text = content_type.as_deref().is_none_or(super::body::is_text);
        let (mut bytes, mut is_cut) = (Vec::new(), false);
        // Of what cannot be shown, nothing is read.
        while is_text && let Some(chunk) = response.chunk().await.map_err(|error| broken(&host, error))? {
            let room = self.most_bytes - bytes.len();
            is_cut = chunk.len() > room;
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if is_cut {
                break;
            }
        }
        let url = address.url.clone();
        let content = Content { url, status: status.as_u16(), content_type, bytes, announced, is_cut };
        if status.is_success() {
            return Ok(content);
        }
        let text = super::body::PageText::of(content).text.unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = text.chars().take(SHOWN_FAILURE).collect();
        let text = if text.is_empty() { text } else { format!(": {text}") };
        Err(FetchError::Status { host, status, text })
    }
}

fn elsewhere(address: &PageAddress, status: StatusCode, to: url::Url) -> Answer {
    Answer::Elsewhere { url: address.url.to_string(), status: status.as_u16(), to: to.into() }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn header(response: &Response, name: HeaderName) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

/// Creates the client of one call. Proxies of the environment are not used: what they connect to cannot be checked.
fn client(is_private: bool) -> Result<Client, FetchError> {
    // A program that has chosen a crypto provider keeps it.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    Client::builder()
        .user_agent(concat!("backstitch/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .dns_resolver(Arc::new(CheckedResolver { is_private }))
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
        .build()
        .map_err(|error| FetchError::Client(with_causes(&error)))
}

/// Resolves names, and refuses those that lead to private addresses.
struct CheckedResolver {
    /// Whether the user allows private addresses for the host of this call.
    is_private: bool,
}

/// A name leads to an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("it has the address {0}, which is not public")]
struct PrivateAddress(IpAddr);

/// A name could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unresolved(String);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_private = self.is_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found: Vec<SocketAddr> = found.map_err(|error| Unresolved(error.to_string()))?.collect();
            // A name with both kinds of addresses is not used at all.
            let refused = found.iter().find(|found| !is_private && !is_public(found.ip()));
            match refused {
                Some(refused) => Err(PrivateAddress(refused.ip()).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// Explains why there is no answer.
fn failed(host: &str, error: reqwest::Error) -> FetchError {
    let host = host.to_owned();
    let error = error.without_url();
    let causes = || std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    if let Some(PrivateAddress(address)) = causes().find_map(|cause| cause.downcast_ref::<PrivateAddress>()) {
        return FetchError::Private { host, address: *address };
    }
    if let Some(Unresolved(cause)) = causes().find_map(|cause| cause.downcast_ref::<Unresolved>()) {
        return FetchError::NotFound { host, cause: cause.clone() };
    }
    let last = causes().last().map_or_else(|| error.to_string(), ToString::to_string);
    if error.is_timeout() {
        return FetchError::TooSlow { seconds: SILENCE.as_secs() };
    }
    // The HTTP library has limits of its own, and no kind of error for them.
    if last.contains("head is too large") {
        return FetchError::Headers;
    }
    if error.is_connect() {
        return FetchError::Unreachable { host, cause: last };
    }
    FetchError::Broken { host, cause: last }
}

fn broken(host: &str, error: reqwest::Error) -> FetchError {
    if error.is_timeout() {
        return FetchError::TooSlow { seconds: SILENCE.as_secs() };
    }
    FetchError::Broken { host: host.to_owned(), cause: with_causes(&error.without_url()) }
}
