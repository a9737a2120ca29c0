//! Signals that ask the process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals whose default action is to end the process.
pub(super) struct Signals(Vec<Signal>);

impl Signals {
    /// Starts to listen. From then on these signals no longer end the process.
    pub(super) fn listen() -> io::Result<Self> {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
            SignalKind::alarm(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        kinds.into_iter().map(signal).collect::<io::Result<_>>().map(Self)
    }

    /// Completes when one of the signals arrives.
    pub(super) async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let arrived = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if arrived { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}
