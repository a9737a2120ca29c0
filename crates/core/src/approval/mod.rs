//! Approval rules: which calls run, which ones a person is asked about, and which ones are refused.
//!
//! A rule names a tool, a tool and the first words of its command, or a tool and a host ([`ApprovalScope`]). Its
//! [`ApprovalVerdict`] replaces the default of the tool. If several rules match a call, `deny` wins over `ask`,
//! and `ask` over `allow`. A user's lasting rules are part of the [agent](crate::tool_spec); rules that a person
//! made while deciding are items of the session's slice [`ApprovalRule`], so a rewind removes them and a fork
//! has them.
//!
//! A rule about a command is about every command that a shell runs for it, in pipelines, lists and substitutions: each
//! has to be allowed by itself, and so do the files that it redirects to: see [`ParsedCommand`]. A person is asked about
//! what cannot be parsed. A rule about a call with an address is about its host: see [`WebHost`].

mod command;
mod host;
mod parsed;
mod rule;
mod scope;

pub use command::CommandWords;
pub use host::WebHost;
pub use parsed::{CommandPart, ParsedCommand, Redirection};
pub use rule::{ApprovalRule, ApprovalRules, ApprovalVerdict, RuleMatch};
pub use scope::{ApprovalScope, InvalidScope};
