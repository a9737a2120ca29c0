//! Signals that ask the process to end.

use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals whose default action is to end the process.
pub(crate) struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    /// Starts to listen. From then on these signals no longer end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
            SignalKind::alarm(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let listen = |kind| Ok((kind, signal(kind)?));
        kinds.into_iter().map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// Completes when one of the signals arrives, and returns it.
    pub(crate) async fn next(&mut self) -> SignalKind {
        std::future::poll_fn(|context| {
            let mut all = self.0.iter_mut();
            let arrived =
                all.find_map(|(kind, signal)| signal.poll_recv(context).is_ready().then_some(*kind));
            arrived.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
