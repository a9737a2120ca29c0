//! Addresses that keys may be sent to.
//!
//! A key of a model is sent to the provider's own address, and to those that the user chose: by an option, in the environment,
//! in the user's settings, or in files that the user trusts. Values of headers are sent to addresses that the user chose. The address of a recorded session was chosen when the
//! session was started, and is remembered in the state directory. The address of an imported session was chosen by
//! another user: it gets no key before this user names it, or says yes to it on a terminal. The same holds for headers
//! of MCP servers, whose values are taken from this user's environment.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use backstitch::agent_file::AgentDefinition;

use super::TrustError;
use super::ask;
use super::ledger::Ledger;
use crate::common::{Common, quoted};
use crate::keys;

/// The addresses that were chosen while this process runs.
static CHOSEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Remembers that the user chose the addresses of an agent to which secrets would be sent.
pub(crate) fn allow(definition: &AgentDefinition) {
    for Receiver { address, .. } in receivers(definition) {
        // Where nothing can be recorded, the address is allowed for this command only.
        if Ledger::read().is_ok_and(|ledger| !ledger.addresses.contains(&address)) {
            let _ = Ledger::change(|ledger| ledger.addresses.insert(address.clone()));
        }
        CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
    }
}

/// Asks a person at the terminal about addresses that this user did not choose, and remembers them if the answer is
/// yes. Elsewhere nothing is asked, and [`check`] refuses the address.
pub(crate) fn ask(common: &Common, definition: &AgentDefinition) -> Result<(), TrustError> {
    if check(definition).is_ok() || !common.can_ask() {
        return Ok(());
    }
    for receiver in receivers(definition).iter().filter(|receiver| !receiver.is_chosen()) {
        let (action, question) = match &receiver.kind {
            ReceiverKind::Model { .. } => {
                ("asks its model at".to_owned(), "Send your key and the conversation there?")
            }
            ReceiverKind::Server { name, variables } => {
                (format!("sends {} to the MCP server {name} at", variables.join(", ")), "Send it there?")
            }
        };
        if !ask::about_address(&action, &receiver.url, question).map_err(TrustError::NoAnswer)? {
            return Ok(());
        }
    }
    allow(definition);
    Ok(())
}

/// Fails if a secret would be sent to an address that this user did not choose.
pub(crate) fn check(definition: &AgentDefinition) -> Result<(), TrustError> {
    let receivers = receivers(definition);
    let Some(Receiver { url, kind, .. }) = receivers.iter().find(|receiver| !receiver.is_chosen()) else {
        return Ok(());
    };
    let (message, hint) = match kind {
        ReceiverKind::Model { is_main: false } => (
            format!(
                "the session asks a model of a sub-agent or a fallback at {url}, and you did not choose that address for your key"
            ),
            "continue it on a terminal, which asks, or unset the variable of the key".to_owned(),
        ),
        ReceiverKind::Model { is_main: true } => (
            format!("the session asks its model at {url}, and you did not choose that address for your key"),
            format!(
                "`--base-url {}` sends the key there; `--model PROVIDER:MODEL` uses another model",
                quoted(url)
            ),
        ),
        ReceiverKind::Server { name, variables } => (
            format!(
                "the session sends {} to the MCP server {name:?} at {url}, and you did not choose that address",
                variables.join(", ")
            ),
            "continue it on a terminal, which asks, or unset the variable".to_owned(),
        ),
    };
    Err(TrustError::Refused { message, hint })
}

/// An address that secrets of this user would be sent to.
struct Receiver {
    /// Scheme, host and port: the path does not choose who gets the secret.
    address: String,
    url: String,
    kind: ReceiverKind,
}

enum ReceiverKind {
    /// A model, of the agent itself or of a sub-agent.
    Model { is_main: bool },
    /// An MCP server, with the variables that it gets.
    Server { name: String, variables: Vec<String> },
}

impl Receiver {
    fn is_chosen(&self) -> bool {
        CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&self.address)
            || Ledger::read().is_ok_and(|ledger| ledger.addresses.contains(&self.address))
    }
}

/// Returns the addresses that secrets would be sent to, except the providers' own.
fn receivers(definition: &AgentDefinition) -> Vec<Receiver> {
    let mut all = Vec::new();
    for model in definition.model_receivers() {
        let has_secret = model.variables.iter().any(|variable| keys::key(variable).is_some());
        if let (true, Some(address)) = (has_secret, origin(&model.url)) {
            let kind = ReceiverKind::Model { is_main: model.is_main };
            all.push(Receiver { address, url: model.url, kind });
        }
    }
    for server in definition.mcp_servers() {
        let Some(url) = &server.url else { continue };
        let set = server.variables().into_iter().filter(|name| keys::key(name).is_some());
        let variables: Vec<String> = set.map(str::to_owned).collect();
        if let (false, Some(address)) = (variables.is_empty(), origin(url)) {
            let kind = ReceiverKind::Server { name: server.name.clone(), variables };
            all.push(Receiver { address, url: url.clone(), kind });
        }
    }
    all
}

fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#', '\\']).next()?;
    Some(format!("{}://{}", scheme.to_lowercase(), host.to_lowercase()))
}
