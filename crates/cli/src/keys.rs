//! Hides API keys from the commands that an agent runs.
//!
//! A child process may read the environment block with which its parent was started. A command that finds
//! keys in its environment therefore executes itself again without them. It passes the keys in an anonymous
//! file in memory, which is closed before anything else happens. Other processes of the same user cannot dump
//! or trace the process. This does not stop commands that run as root: they may read the memory of any
//! process.

#[cfg(target_os = "linux")]
pub(crate) use linux::{hide, key};

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use backstitch::agent_file::KEY_VARIABLES;
use backstitch::stores::StoreAddress;

use crate::config::Config;

/// Environment variable `PID:DESCRIPTOR` of the file that holds the keys. No other process can use it.
pub(crate) const HANDED: &str = "BACKSTITCH_HANDED_KEYS";

/// Variables whose values may be keys of a collector of traces.
#[cfg(feature = "otlp")]
const COLLECTOR_VARIABLES: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"];

/// Returns the variables with keys, for programs of the person, which need the environment as it was.
pub(crate) fn variables() -> Vec<(&'static str, String)> {
    names().iter().filter_map(|name| Some((name.as_str(), key(name)?))).collect()
}

/// Reads the address of a store, with the [password](with_password) of a server.
pub(crate) fn store_address(address: impl AsRef<Path>) -> StoreAddress {
    with_password(StoreAddress::new(address))
}

/// Adds the password of the environment, which commands of agents do not see, to the address of a server that has none.
pub(crate) fn with_password(address: StoreAddress) -> StoreAddress {
    #[cfg(feature = "postgres")]
    let address = match &address {
        StoreAddress::Server(_) => {
            address.with_password(key(backstitch::stores::PASSWORD_VARIABLE).as_deref())
        }
        _ => address,
    };
    address
}

/// Returns all keys that the environment held when the command was started.
pub(crate) fn all() -> Vec<String> {
    names().iter().filter_map(|name| key(name)).map(|key| key.trim().to_owned()).collect()
}

/// Returns the variables that may hold keys: those of the built-in providers, and those of providers and headers of MCP
/// servers that the user's settings define, and those of a collector. Wrong settings are reported by the commands that use them.
fn names() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let own = Config::load().map(|config| config.secret_variables()).unwrap_or_default();
        let mut names: Vec<_> = KEY_VARIABLES.iter().map(|name| (*name).to_owned()).chain(own).collect();
        #[cfg(feature = "postgres")]
        names.push(backstitch::stores::PASSWORD_VARIABLE.to_owned());
        #[cfg(feature = "otlp")]
        names.extend(COLLECTOR_VARIABLES.map(str::to_owned));
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    });
    &NAMES
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::{self, Read as _, Seek as _, Write as _};
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    use std::sync::OnceLock;

    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    use super::{HANDED, names};

    /// Name of the file in `/proc`.
    const NAME: &str = "backstitch-keys";

    static KEYS: OnceLock<BTreeMap<String, String>> = OnceLock::new();

    /// Removes the keys from the environment. If it holds any, the command is executed again.
    pub(crate) fn hide() -> io::Result<()> {
        match read_handed_over()? {
            Some(keys) => {
                let _ = KEYS.set(keys);
            }
            None if names().iter().any(|name| std::env::var_os(name).is_some()) => hand_over()?,
            None => {}
        }
        Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
    }

    /// Returns the key that an environment variable held when the command was started.
    pub(crate) fn key(name: &str) -> Option<String> {
        let handed = KEYS.get().and_then(|keys| keys.get(name).cloned());
        handed.or_else(|| std::env::var(name).ok()).filter(|key| !key.trim().is_empty())
    }

    fn hand_over() -> io::Result<()> {
        let keys = names().iter().filter_map(|name| Some((name.as_str(), std::env::var(name).ok()?)));
        let keys: BTreeMap<_, _> = keys.collect();
        // The descriptor stays open across `exec`.
        let mut file = File::from(memfd_create(NAME, MemfdFlags::empty())?);
        file.write_all(&serde_json::to_vec(&keys)?)?;
        let mut command = Command::new(std::env::current_exe()?);
        let mut arguments = std::env::args_os();
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        command.args(arguments).env(HANDED, format!("{}:{}", std::process::id(), file.as_raw_fd()));
        names().iter().for_each(|name| {
            command.env_remove(name);
        });
        Err(command.exec())
    }

    /// Returns the keys that this process passed to itself, if it was executed again.
    fn read_handed_over() -> io::Result<Option<BTreeMap<String, String>>> {
        let Some(handed) = std::env::var(HANDED).ok() else { return Ok(None) };
        let of_this =
            handed.split_once(':').filter(|(process, _)| *process == std::process::id().to_string());
        let Some(number) = of_this.and_then(|(_, number)| number.parse::<i32>().ok()) else {
            return Ok(None);
        };
        let link = std::fs::read_link(format!("/proc/self/fd/{number}"))?;
        if !link.to_string_lossy().starts_with(&format!("/memfd:{NAME}")) {
            return Ok(None);
        }
        #[expect(unsafe_code, reason = "an inherited descriptor has no owner yet, and has to be closed")]
        // SAFETY: the descriptor is open, and its name shows that it is the file that this process created
        // before it executed itself. This is called once, before anything else, so nothing else owns it.
        let mut file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        let mut text = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut text)?;
        // Another process that has the file open finds it empty.
        file.set_len(0)?;
        Ok(Some(serde_json::from_slice(&text)?))
    }
}

/// Does nothing: other systems do not expose the environment of a process like Linux does.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hide() -> std::io::Result<()> {
    Ok(())
}

/// Returns the key in an environment variable.
#[cfg(not(target_os = "linux"))]
pub(crate) fn key(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|key| !key.trim().is_empty())
}
