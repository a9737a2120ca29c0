//! The flags of `mcp serve` about calls that need approval.

use backstitch::agent_file::Span;
use backstitch_mcp::{ApprovalBy, ApprovalSettings};
use clap::{Args, ValueEnum};

#[derive(Args)]
pub(super) struct ApprovalFlags {
    /// Who decides about calls that need approval. Default: client.
    #[arg(long, value_enum, value_name = "WHO")]
    approve_by: Option<Decider>,
    /// Time limit of a decision, after which the call is denied. Default: 5m, and 1h for a client that shows the
    /// question.
    #[arg(long, value_name = "TIME")]
    approval_timeout: Option<Span>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Decider {
    /// The client, if it can show a form. A client may answer by itself, without a person.
    Client,
    /// `approve` and `deny` alone: the client is never asked.
    Inbox,
}

impl ApprovalFlags {
    pub(super) fn settings(&self) -> ApprovalSettings {
        let by = match self.approve_by {
            None | Some(Decider::Client) => ApprovalBy::Client,
            Some(Decider::Inbox) => ApprovalBy::Inbox,
        };
        ApprovalSettings { by, timeout: self.approval_timeout.map(|span| span.0) }
    }
}
