//! Signals that ask the process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a process to end, and whose default is to end it at once.
pub(super) struct Signals(Vec<Signal>);

impl Signals {
    /// From now on these signals no longer end the process: a person who presses Ctrl-C, a closed terminal, `kill`.
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

    /// Completes when one of them comes.
    pub(super) async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let come = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if come { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}
