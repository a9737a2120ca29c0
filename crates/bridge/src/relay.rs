//! The tools of an agent for its engine.
//!
//! The process that drives the session serves the tools on a socket in a private directory. The program of the engine
//! starts the relay as one of its MCP servers, which connects standard input and output with that socket. So calls run in
//! the process that holds the session, and the relay ends with it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use backstitch_mcp::ToolServer;
use backstitch_runtime::{EngineError, OutsideCalls, PrivateDirectory};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The name of the server in the settings of the programs. Their names of the tools begin with it.
pub(crate) const SERVER: &str = "backstitch";

/// The longest path of a socket that all systems accept.
const LONGEST: usize = 100;

/// Returns the words of a command that runs [`relay`]. The path of the socket is appended to them.
pub type RelayCommand = fn() -> io::Result<Vec<String>>;

/// The socket on which tools are served, until it is dropped.
pub(crate) struct ToolSocket {
    directory: PrivateDirectory,
    _stop: DropGuard,
}

impl ToolSocket {
    /// Serves the tools of a session, if it has any. Also returns the command that connects a program with the socket.
    pub(crate) fn offer(
        title: &str,
        calls: Option<Arc<OutsideCalls>>,
        relay: RelayCommand,
    ) -> Result<Option<(Self, Vec<String>)>, EngineError> {
        let Some(calls) = calls else { return Ok(None) };
        let offered = Self::serve(calls).and_then(|socket| {
            let mut words = relay()?;
            words.push(socket.directory.path().join("socket").to_string_lossy().into_owned());
            Ok((socket, words))
        });
        offered.map(Some).map_err(|error| EngineError::Start {
            title: title.to_owned(),
            reason: format!("its tools cannot be served: {error}"),
        })
    }

    fn serve(calls: Arc<OutsideCalls>) -> io::Result<Self> {
        let directory = private_directory()?;
        let listener = UnixListener::bind(directory.path().join("socket"))?;
        let server = ToolServer::of_engine(calls);
        let stop = CancellationToken::new();
        let token = stop.clone();
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = token.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((stream, _)) = accepted else { return };
                let (server, token) = (server.clone(), token.clone());
                tokio::spawn(async move {
                    let (input, output) = stream.into_split();
                    if let Err(error) = server.serve(input, output, token).await {
                        tracing::warn!(%error, "an engine could not be served");
                    }
                });
            }
        });
        Ok(Self { directory, _stop: stop.drop_guard() })
    }
}

/// Creates a directory that only this user can enter, and in which a socket has a short path.
fn private_directory() -> io::Result<PrivateDirectory> {
    let directory = PrivateDirectory::new()?;
    let is_short = directory.path().as_os_str().len() + "/socket".len() <= LONGEST;
    if is_short { Ok(directory) } else { PrivateDirectory::below(Path::new("/tmp")) }
}

/// Copies an input to a socket and the socket to an output, until the socket ends. A command passes its standard input
/// and output.
pub async fn relay(
    socket: &Path,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (mut from, mut to) = UnixStream::connect(socket).await?.into_split();
    let input = async {
        tokio::io::copy(&mut input, &mut to).await?;
        to.shutdown().await
    };
    let output = async {
        tokio::io::copy(&mut from, &mut output).await?;
        output.flush().await
    };
    // The end of the input ends nothing by itself: answers to the last requests still come.
    let output = std::pin::pin!(output);
    tokio::select! {
        done = output => done,
        failed = async { input.await.err().map_or(std::future::pending().await, Err) } => failed,
    }
}
