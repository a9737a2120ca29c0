//! The sandbox of a new session: what it can be on this system, and which paths it allows.

use backstitch::ports::Sandbox;

use crate::common::Common;
use crate::usage::Usage;

/// Resolves the paths of a sandbox for a new session, and compares it with what the system can enforce. A limit that
/// the user has set and that cannot be enforced is refused; what is missing of the default is printed, before anything
/// runs.
pub(crate) fn begin(common: &Common, sandbox: &mut Sandbox, is_default: bool) -> Result<(), Usage> {
    match backstitch::host::probe().missing(sandbox) {
        Some(missing) if !is_default => {
            return Err(Usage(format!(
                "the sandbox cannot be enforced: {missing}. `--sandbox off` runs commands without one"
            )));
        }
        Some(missing) if !common.quiet => {
            eprintln!("the sandbox is not complete: {missing}; `--approve ask` asks you before each command");
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
