//! The pipes of a server that is a program: one message on each line.
//!
//! The SDK has such a transport too. This one reads messages with the limits of [`incoming`](super::incoming), and
//! answers for the server where a message cannot be read.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use super::incoming::IncomingMessage;

/// The pipes of a server.
pub(super) struct LineTransport<R, W> {
    input: BufReader<R>,
    /// The beginning of a line. It is kept if reading is interrupted.
    line: IncomingMessage,
    output: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead, W> LineTransport<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::new(input),
            line: IncomingMessage::default(),
            output: Arc::new(Mutex::new(Some(output))),
        }
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            let Some(output) = &mut *output else { return Err(io::ErrorKind::NotConnected.into()) };
            output.write_all(&line).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let bytes = match self.input.fill_buf().await {
                Ok([]) => return None,
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::warn!(%error, "the output of an MCP server cannot be read");
                    return None;
                }
            };
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            self.line.add(&bytes[..newline.unwrap_or(bytes.len())]);
            let taken = newline.map_or(bytes.len(), |at| at + 1);
            self.input.consume(taken);
            let message = match newline {
                Some(_) => std::mem::take(&mut self.line).read(None),
                None => self.line.early_answer(),
            };
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}
