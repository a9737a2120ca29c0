//! The sandbox of a new session: what it can be on this system, which paths it allows, and which it hides.

use std::path::PathBuf;

use backstitch::ports::Sandbox;
use backstitch::stores::state_directory;

use crate::common::Common;
use crate::config::{Config, user_directory, user_file};
use crate::usage::Usage;

/// Resolves the paths of a sandbox for a new session, hides the places of secrets, and compares it with what the system
/// can enforce. A limit that the user has set and that cannot be enforced is refused; what is missing of the default is
/// printed, before anything runs. `asks` says that calls are asked about for that reason.
pub(crate) fn begin(
    common: &Common,
    sandbox: &mut Sandbox,
    (is_default, asks): (bool, bool),
) -> Result<(), Usage> {
    hide_secrets(&common.config, sandbox);
    match backstitch::host::probe().missing(sandbox) {
        Some(missing) if !is_default => {
            return Err(Usage(format!(
                "the sandbox cannot be enforced: {missing}. `--sandbox off` runs commands without one"
            )));
        }
        Some(missing) if !common.quiet => {
            let advice = if asks {
                "so you are asked before each change and each command, unless `--approve auto` says otherwise"
            } else {
                "`--approve ask` asks you before each command"
            };
            eprintln!("the sandbox is not complete: {missing}; {advice}");
        }
        _ => {}
    }
    backstitch::host::resolve_writable(sandbox);
    for path in sandbox.missing.iter().flatten().filter(|_| !common.quiet) {
        eprintln!(
            "{} does not exist, so commands cannot write it in this session, although `write` allows it",
            path.display()
        );
    }
    Ok(())
}

/// Hides the places of secrets of this user, what the settings hide from every agent, and the settings, the trust and the
/// stores of the command, which may be elsewhere than in the home directory.
pub(crate) fn hide_secrets(config: &Config, sandbox: &mut Sandbox) {
    if sandbox.is_off() {
        return;
    }
    sandbox.hide.extend(config.hidden().cloned());
    sandbox.hide.extend(user_directory().into_iter().chain(user_file()).chain(state_directory().ok()));
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    backstitch::host::hide_secrets(sandbox, home.as_deref());
}
