//! Trust: Codex skips hooks, without a message, until their hashes are stored in its settings.
//!
//! Only Codex knows the hash of a hook, so it is asked. It lists the hooks of a project only if the project is trusted, which is
//! the decision of the person; so for a project it is asked with settings of its own, in which that project is trusted, and
//! the person's settings only get the hashes.

use std::path::{Path, PathBuf};

use backstitch_runtime::EngineError;
use serde::{Deserialize, Serialize};

use super::hooks::{ListedHook, TrustStatus};
use super::server::{AppServer, AppServerSpec};
use crate::program::Program;
use crate::settings::{
    Memory, Scope, SettingsError, TrustFile, TrustedHook, codex_config, create_private, is_own,
};

/// Codex cannot be made to trust hooks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookTrustError {
    /// It cannot be asked for their hashes.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its settings cannot be edited.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// It does not read the file that holds them.
    #[error("Codex does not list the hooks in {}", settings.display())]
    NotListed {
        /// The file.
        settings: PathBuf,
    },
    /// There is no state directory for settings in which the project is trusted.
    #[error("neither XDG_STATE_HOME nor HOME names a directory for settings of its own")]
    NoStateDirectory,
}

/// Whether Codex runs the hooks of the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookTrust {
    /// It runs all of them.
    Trusted,
    /// It skips so many of them.
    Untrusted(usize),
    /// It does not read them, because it does not trust the project.
    UntrustedProject,
    /// It could not be asked, or does not list them.
    Unknown(String),
}

/// Name of what is remembered about a settings file whose hooks are trusted.
const MEMORY: &str = "-trust";

/// The lines that were added to the settings of Codex.
#[derive(Debug, Serialize, Deserialize)]
struct AddedTrust {
    v: u32,
    config: PathBuf,
    /// Whether there were no settings before.
    was_missing: bool,
    hooks: Vec<TrustedHook>,
}

/// Makes Codex trust the hooks of the guard in a settings file. Returns the settings with the hashes.
pub async fn trust(
    settings: &Path,
    scope: Scope,
    project: &Path,
    memory: &Memory,
) -> Result<PathBuf, HookTrustError> {
    let config = codex_config()?;
    let listed = match scope {
        Scope::User => list_hooks(AppServerSpec::new(project), project).await?,
        Scope::Project => {
            let home = OwnHome::new(project, memory)?;
            list_hooks(AppServerSpec::new(project).with_home(&home.path), project).await?
        }
    };
    let own = own(listed, settings).into_iter();
    let hooks: Vec<_> = own.map(|ListedHook { key, hash, .. }| TrustedHook { key, hash }).collect();
    if hooks.is_empty() {
        return Err(HookTrustError::NotListed { settings: settings.to_owned() });
    }
    let memory = memory.of(settings, MEMORY);
    let before: Option<AddedTrust> = memory.get();
    let mut file = TrustFile::read(&config)?;
    let was_missing = before.as_ref().map_or(!file.exists(), |before| before.was_missing);
    before.iter().flat_map(|before| &before.hooks).for_each(|hook| file.remove(hook));
    hooks.iter().try_for_each(|hook| file.add(hook))?;
    // Remembered first: lines that nobody remembers would stay.
    memory.set(&AddedTrust { v: 1, config: config.clone(), was_missing, hooks })?;
    file.write(false)?;
    Ok(config)
}

/// Removes what [`trust()`] has added for a settings file. Returns the settings if there was something.
pub fn distrust(settings: &Path, memory: &Memory) -> Result<Option<PathBuf>, SettingsError> {
    let memory = memory.of(settings, MEMORY);
    let Some(added) = memory.get::<AddedTrust>() else { return Ok(None) };
    let mut file = TrustFile::read(&added.config)?;
    added.hooks.iter().for_each(|hook| file.remove(hook));
    let changed = file.exists() && file.write(added.was_missing)?;
    memory.forget();
    Ok(changed.then_some(added.config))
}

/// Asks Codex whether it trusts the hooks of the guard in a settings file.
pub async fn list_trust(settings: &Path, scope: Scope, project: &Path) -> HookTrust {
    let listed = match list_hooks(AppServerSpec::new(project), project).await {
        Ok(listed) => own(listed, settings),
        Err(error) => return HookTrust::Unknown(error.to_string()),
    };
    let untrusted = listed.iter().filter(|hook| hook.trust != TrustStatus::Trusted).count();
    match (listed.len(), untrusted) {
        (0, _) if scope == Scope::Project => HookTrust::UntrustedProject,
        (0, _) => HookTrust::Unknown(format!("it does not list the hooks in {}", settings.display())),
        (_, 0) => HookTrust::Trusted,
        (_, untrusted) => HookTrust::Untrusted(untrusted),
    }
}

async fn list_hooks(spec: AppServerSpec, project: &Path) -> Result<Vec<ListedHook>, EngineError> {
    let mut server = AppServer::start(spec).await?;
    let hooks = server.hooks(project).await;
    server.close().await;
    hooks
}

/// Keeps the hooks of the guard in a settings file.
fn own(listed: Vec<ListedHook>, settings: &Path) -> Vec<ListedHook> {
    let same =
        |source: &Path| source == settings || source.canonicalize().ok() == settings.canonicalize().ok();
    let is_wanted =
        |hook: &ListedHook| is_own(Program::Codex, &hook.command) && hook.source.as_deref().is_none_or(same);
    listed.into_iter().filter(is_wanted).collect()
}

/// A directory with settings in which one project is trusted. It is removed at the end.
struct OwnHome {
    path: PathBuf,
}

impl OwnHome {
    fn new(project: &Path, memory: &Memory) -> Result<Self, HookTrustError> {
        let directory = memory.directory.as_ref().ok_or(HookTrustError::NoStateDirectory)?;
        let path = directory.join(format!("codex-{}", std::process::id()));
        let failed = |source| SettingsError::Io { path: path.clone(), action: "created", source };
        create_private(&path).map_err(failed)?;
        let home = Self { path: path.clone() };
        let mut settings = toml_edit::DocumentMut::new();
        settings["check_for_update_on_startup"] = toml_edit::value(false);
        settings["analytics"]["enabled"] = toml_edit::value(false);
        settings["projects"][&project.to_string_lossy().into_owned()]["trust_level"] =
            toml_edit::value("trusted");
        std::fs::write(path.join("config.toml"), settings.to_string()).map_err(failed)?;
        Ok(home)
    }
}

impl Drop for OwnHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
