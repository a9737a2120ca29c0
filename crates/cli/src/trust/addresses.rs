//! Addresses that keys may be sent to.
//!
//! A key of a model is sent to the provider's own address, and to those that the user chose: by an option, in the environment,
//! in the user's settings, or in files that the user trusts. The address of a recorded session was chosen when the
//! session was started, and is remembered in the state directory. The address of an imported session was chosen by
//! another user: it gets no key before this user names it, or says yes to it on a terminal. The same holds for headers
//! of MCP servers, whose values are taken from this user's environment.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use backstitch::agent_file::AgentDefinition;

use super::ask;
use super::error::TrustError;
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
    if check(definition).is_ok() || !ask::is_possible(common) {
        return Ok(());
    }
    for receiver in receivers(definition).iter().filter(|receiver| !receiver.is_chosen()) {
        let (action, question) = match &receiver.server {
            None => ("asks its model at".to_owned(), "Send your key and the conversation there?"),
            Some((name, variables)) => {
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
    let Some(Receiver { url, server, .. }) = receivers.iter().find(|receiver| !receiver.is_chosen()) else {
        return Ok(());
    };
    let (message, hint) = match server {
        None => (
            format!("the session asks its model at {url}, and you did not choose that address for your key"),
            format!(
                "`--base-url {}` sends the key there; `--model PROVIDER:MODEL` uses another model",
                quoted(url)
            ),
        ),
        Some((name, variables)) => (
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
    /// The name of the MCP server and the variables that it gets, if it is one.
    server: Option<(String, Vec<String>)>,
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
    if let (Some(url), Some(address)) = (&definition.base_url, address_of_model(definition)) {
        all.push(Receiver { address, url: url.clone(), server: None });
    }
    for server in definition.mcp_servers() {
        let Some(url) = &server.url else { continue };
        let set = server.variables().into_iter().filter(|name| keys::key(name).is_some());
        let variables: Vec<String> = set.map(str::to_owned).collect();
        if let (false, Some(address)) = (variables.is_empty(), origin(url)) {
            all.push(Receiver { address, url: url.clone(), server: Some((server.name.clone(), variables)) });
        }
    }
    all
}

/// Returns the address that a key would be sent to, if it is not the provider's own.
fn address_of_model(definition: &AgentDefinition) -> Option<String> {
    let provider = definition.model.as_ref()?.provider;
    let url = definition.base_url.as_deref()?;
    provider.key_variables().iter().find_map(|variable| keys::key(variable))?;
    origin(url)
}

fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#', '\\']).next()?;
    Some(format!("{}://{}", scheme.to_lowercase(), host.to_lowercase()))
}
