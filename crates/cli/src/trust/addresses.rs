//! Addresses that keys may be sent to.
//!
//! A key is sent to the provider's own address, and to those that the user chose: by an option, in the environment,
//! in the user's settings, or in files that the user trusts. The address of a recorded session was chosen when the
//! session was started, and is remembered in the state directory. The address of an imported session was chosen by
//! another user: it gets no key before this user names it, or says yes to it on a terminal.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use backstitch::agent_file::{AgentDefinition, ModelProvider, key_variables};

use super::ask;
use super::error::TrustError;
use super::ledger::Ledger;
use crate::common::{Common, quoted};
use crate::keys;

/// The addresses that were chosen while this process runs.
static CHOSEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Remembers that the user chose the address of an agent, if a key would be sent there.
pub(crate) fn allow(definition: &AgentDefinition) {
    let Some(address) = address_of(definition) else { return };
    // Where nothing can be recorded, the address is allowed for this command only.
    if Ledger::read().is_ok_and(|ledger| !ledger.addresses.contains(&address)) {
        let _ = Ledger::change(|ledger| ledger.addresses.insert(address.clone()));
    }
    CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
}

/// Asks a person at the terminal about an address that this user did not choose, and remembers it if the answer is yes.
/// Elsewhere nothing is asked, and [`check`] refuses the address.
pub(crate) fn ask(common: &Common, definition: &AgentDefinition) -> Result<(), TrustError> {
    if check(definition).is_ok() || !ask::is_possible(common) {
        return Ok(());
    }
    let url = definition.base_url.as_deref().unwrap_or_default();
    if ask::about_address(url).map_err(TrustError::NoAnswer)? {
        allow(definition);
    }
    Ok(())
}

/// Fails if a key would be sent to an address that this user did not choose.
pub(crate) fn check(definition: &AgentDefinition) -> Result<(), TrustError> {
    let Some(address) = address_of(definition) else { return Ok(()) };
    let is_chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&address);
    if is_chosen || Ledger::read().is_ok_and(|ledger| ledger.addresses.contains(&address)) {
        return Ok(());
    }
    let url = definition.base_url.as_deref().unwrap_or_default();
    let message =
        format!("the session asks its model at {url}, and you did not choose that address for your key");
    let hint = format!(
        "`--base-url {}` sends the key there; `--model PROVIDER:MODEL` uses another model",
        quoted(url)
    );
    Err(TrustError::Refused { message, hint })
}

/// Returns the address that a key would be sent to, if it is not the provider's own.
fn address_of(definition: &AgentDefinition) -> Option<String> {
    let ModelProvider::Wire(provider) = definition.model.as_ref()?.provider else { return None };
    let url = definition.base_url.as_deref()?;
    key_variables(provider).iter().find_map(|variable| keys::key(variable))?;
    // The path does not choose who gets the key.
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#', '\\']).next()?;
    Some(format!("{}://{}", scheme.to_lowercase(), host.to_lowercase()))
}
