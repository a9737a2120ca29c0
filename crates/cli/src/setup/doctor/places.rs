//! Checks of settings, trust, the store and the model.

use std::path::Path;

use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::ports::OpenError;
use backstitch::stores::side_files::SideFile;
use backstitch::stores::{OpenedStore, StoreAddress};
use backstitch::{isolated, stores};

use super::Finding;
use crate::common::{Common, counted};
use crate::config::{Config, user_file};
use crate::error::message_of;
use crate::keys;
use crate::open::trusted::add_project;
use crate::project;

/// What to do about a damaged store.
const DAMAGED: &str =
    "`backstitch verify` reports the extent, `backstitch salvage NEW_STORE` copies the intact part";

/// What to do about a path that is not a store of this program, or cannot be read.
const OTHER: &str = "`--store PATH` names another store";

/// Checks what belongs to the user and to the project of the current directory.
pub(super) fn check(common: &Common, findings: &mut Vec<Finding>) {
    let mut config = match Config::load() {
        Ok(config) => {
            findings.push(settings());
            config
        }
        Err(error) => {
            let text = with_causes(error);
            findings.push(Finding::broken(
                "settings",
                text,
                "correct it; `backstitch config path` names your file",
            ));
            Config::default()
        }
    };
    let here = match std::env::current_dir() {
        Ok(here) => here,
        Err(error) => {
            let text = format!("the current directory cannot be used: {error}");
            findings.push(Finding::broken("directory", text, "change to a directory that exists"));
            return;
        }
    };
    let root = project::root(&here);
    findings.extend(project_settings(&root, &mut config));
    findings.push(store(common, &here));
    #[cfg(feature = "postgres")]
    findings.extend(server(common));
    findings.extend(copies(common, &root));
    findings.extend(remainders(common));
    findings.extend(side_files(common));
    findings.extend(model(&config));
}

fn settings() -> Finding {
    match user_file() {
        Some(path) if path.exists() => Finding::fine("settings", path.display().to_string()),
        Some(path) => {
            Finding::fine("settings", format!("none of your own ({} does not exist)", path.display()))
        }
        None => Finding::notice(
            "settings",
            "neither XDG_CONFIG_HOME nor HOME is set, so there are none",
            "set HOME",
        ),
    }
}

/// Adds the settings of the project, if they are trusted.
fn project_settings(root: &Path, config: &mut Config) -> Option<Finding> {
    Some(match add_project(root, config) {
        Ok(None) => return None,
        Ok(Some((path, true))) => Finding::fine("project", format!("{} is trusted", path.display())),
        Ok(Some((path, false))) => {
            let text = format!("{} is not used, because it is not trusted", path.display());
            Finding::notice("project", text, "read it, then `backstitch trust` trusts it")
        }
        Err(error) => Finding::broken("project", message_of(&error), "correct the file, or remove it"),
    })
}

fn store(common: &Common, here: &Path) -> Finding {
    let found = match &common.store {
        Some(address) => Ok(Some(address.clone())),
        None => stores::existing(here).map(|found| found.map(StoreAddress::File)),
    };
    let address = match found {
        Ok(Some(address)) => address,
        Ok(None) => return new_store(),
        Err(error) => {
            return Finding::broken("store", with_causes(error), "`--store PATH` keeps it elsewhere");
        }
    };
    if address.is_missing() {
        return Finding::fine("store", format!("{address} does not exist yet; `backstitch run` creates it"));
    }
    check_store(&address)
}

/// Checks the settings of a server that the promises of its store depend on. That the store cannot be opened was said already.
#[cfg(feature = "postgres")]
fn server(common: &Common) -> Vec<Finding> {
    let checks = common.store.as_ref().and_then(|address| stores::check_server(address).ok());
    let finding = |check: stores::ServerCheck| {
        let text = format!("{}: {}", check.name, check.found);
        match check.problem {
            None => Finding::fine("server", text),
            Some(problem) if check.is_dangerous => Finding::broken("server", text, problem),
            Some(problem) => Finding::notice("server", text, problem),
        }
    };
    checks.unwrap_or_default().into_iter().map(finding).collect()
}

/// Lists the directories with copies of this project. `None` if there are no copies.
fn copies(common: &Common, root: &Path) -> Option<Finding> {
    let store = common.known_store()?;
    let mut found = Vec::new();
    for place in isolated::places(store.directory()?, root) {
        let copies = std::fs::read_dir(&place).map_or(0, |entries| entries.flatten().count());
        if copies > 0 {
            found.push(format!("{} in {}", counted(copies as u64, "isolated workspace"), place.display()));
        }
    }
    (!found.is_empty()).then(|| Finding::fine("copies", found.join(", ")))
}

/// Names what killed processes have left. `None` if there is nothing.
fn remainders(common: &Common) -> Option<Finding> {
    let store = common.known_store().and_then(|store| stores::open_read_only(&store).ok());
    let left = store.map(|store| wait_for(async move { store.admin.unfinished().await }));
    let mut found = left.and_then(Result::ok).unwrap_or_default();
    found.extend(backstitch::host::left_temporaries());
    let first = found.first()?.display();
    let text = match found.len() {
        1 => format!("a killed process has left {first}"),
        count => {
            format!("killed processes have left {first} and {}", counted(count as u64 - 1, "other path"))
        }
    };
    Some(Finding::notice("left", text, "`backstitch gc` removes it"))
}

/// Names what the command has written about sessions outside of the store's tables. `None` if there is nothing.
fn side_files(common: &Common) -> Option<Finding> {
    let store = common.known_store()?;
    let existing = SideFile::ALL.into_iter().filter_map(|file| {
        let path = file.path(store.directory()?).filter(|path| path.exists())?;
        Some(format!("{} in {}", file.name(), path.display()))
    });
    let existing: Vec<String> = existing.collect();
    (!existing.is_empty()).then(|| Finding::fine("side files", existing.join(", ")))
}

fn check_store(address: &StoreAddress) -> Finding {
    if let Some(name) = address.path().and_then(stores::network_file_system) {
        let text = format!("{address} is on a network file system ({name})");
        return Finding::broken(
            "store",
            text,
            "SQLite's log does not work there: `--store PATH` keeps it elsewhere",
        );
    }
    match stores::open_read_only(address) {
        Ok(store) => read(store, &address.to_string()),
        Err(OpenError::Older { .. }) => {
            Finding::notice("store", format!("{address} has an older schema"), "`backstitch gc` migrates it")
        }
        Err(error) => {
            let advice = if error.code() == ErrorCode::StoreDamaged { DAMAGED } else { OTHER };
            Finding::broken("store", format!("{address}: {}", with_causes(error)), advice)
        }
    }
}

/// Counts the sessions of a store, which reads a part of it.
fn read(opened: OpenedStore, shown: &str) -> Finding {
    let sessions = match wait_for(async move { opened.store.sessions().await }) {
        Ok(sessions) => sessions,
        Err(error) => return Finding::broken("store", with_causes(error), "end other processes"),
    };
    match sessions {
        Ok(sessions) => Finding::fine("store", format!("{shown} ({})", counted(sessions.len(), "session"))),
        Err(error) => Finding::broken("store", format!("{shown}: {}", with_causes(error)), DAMAGED),
    }
}

/// Waits for a future of a store.
fn wait_for<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().build()?.block_on(future))
}

/// Checks the place in which the first session of this project would create its store.
fn new_store() -> Finding {
    let state = match stores::state_directory() {
        Ok(state) => state,
        Err(error) => {
            return Finding::broken("store", with_causes(error), "set HOME, or use `--store PATH`");
        }
    };
    let existing = state.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    if let Some(name) = stores::network_file_system(existing) {
        let text = format!("{} is on a network file system ({name})", existing.display());
        return Finding::broken(
            "store",
            text,
            "set XDG_STATE_HOME to a local directory, or use `--store PATH`",
        );
    }
    let access = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    match access {
        Ok(()) => {
            Finding::fine("store", format!("none yet; `backstitch run` creates one in {}", state.display()))
        }
        Err(error) => Finding::broken(
            "store",
            format!("{} cannot be written: {error}", existing.display()),
            "make it writable, or use `--store PATH`",
        ),
    }
}

fn model(config: &Config) -> Vec<Finding> {
    let mut definition = AgentDefinition::default();
    if let Err(error) = config.complete(&mut definition, |_| false) {
        return vec![Finding::broken(
            "model",
            with_causes(error),
            "`backstitch config show --origin` names its place",
        )];
    }
    let Some(model) = &definition.model else {
        let advice = "`--model PROVIDER:MODEL` names one, `backstitch config set model PROVIDER:MODEL` for all sessions";
        return vec![Finding::notice("model", "none is set", advice)];
    };
    let access = match definition.access(&model.provider) {
        Ok(access) => access,
        Err(problem) => {
            let advice = "define it as `[[provider]]` in the settings";
            return vec![Finding::broken("model", problem.message, advice)];
        }
    };
    let url = definition.base_url.clone().or_else(|| access.as_ref()?.base_url.clone());
    let at = url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    let mut findings = vec![Finding::fine("model", format!("{model}{at}"))];
    let variables = access.map(|access| access.key_variables).unwrap_or_default();
    if !variables.is_empty() {
        let set = variables.iter().find(|variable| keys::key(variable).is_some());
        findings.push(match set {
            Some(variable) => Finding::fine("key", format!("{variable} is set")),
            None if definition.base_url.is_some() => Finding::notice(
                "key",
                "none is set",
                format!("if the server needs one, set {}", variables.join(" or ")),
            ),
            None => Finding::broken("key", "none is set", format!("set {}", variables.join(" or "))),
        });
    }
    findings
}

/// Formats an error with its causes. No part of it is repeated.
fn with_causes(error: impl std::error::Error + Send + Sync + 'static) -> String {
    message_of(&anyhow::Error::new(error))
}
