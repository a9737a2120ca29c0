//! Trust: Codex skips hooks, without a message, until their hashes are stored in its settings.
//!
//! Only Codex knows the hash of a hook, so it is asked. It lists the hooks of a project only if the project is trusted, which is
//! the decision of the person; so for a project it is asked with settings of its own, in which that project is trusted, and
//! the person's settings only get the hashes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use backstitch::stores::{make_private, state_directory};
use backstitch_bridge::codex::{AppServer, AppServerSpec, ListedHook, TrustStatus};
use serde::{Deserialize, Serialize};

use super::super::file::Memory;
use super::super::program::{Program, Scope, codex_home};
use super::super::settings::is_own;
use super::trust_file::{TrustFile, TrustedHook};

/// Whether Codex runs the hooks of this guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum HookTrust {
    /// It runs all of them.
    Trusted,
    /// It skips so many of them.
    Untrusted(usize),
    /// It does not read them, because it does not trust the project.
    UntrustedProject,
    /// It could not be asked.
    Unknown(String),
}

/// The lines that this command has added to the settings of Codex.
#[derive(Debug, Serialize, Deserialize)]
struct AddedTrust {
    v: u32,
    config: PathBuf,
    /// Whether there were no settings before.
    was_missing: bool,
    hooks: Vec<TrustedHook>,
}

/// Makes Codex trust the hooks of this guard in a settings file. Returns the settings with the hashes.
pub(in super::super) async fn trust(
    settings: &Path,
    scope: Scope,
    project: &Path,
) -> anyhow::Result<PathBuf> {
    let config =
        codex_home().context("HOME names no directory for the settings of Codex")?.join("config.toml");
    let listed = match scope {
        Scope::User => listed(AppServerSpec::new(project), project).await?,
        Scope::Project => {
            let home = OwnHome::new(project)?;
            listed(AppServerSpec::new(project).with_home(&home.path), project).await?
        }
    };
    let hooks: Vec<TrustedHook> = own(listed, settings)
        .into_iter()
        .map(|ListedHook { key, hash, .. }| TrustedHook { key, hash })
        .collect();
    if hooks.is_empty() {
        bail!("Codex does not list the hooks in {}", settings.display());
    }
    let memory = memory(settings);
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

/// Removes what [`trust`] has added for a settings file. Returns the settings if there was something.
pub(in super::super) fn distrust(settings: &Path) -> anyhow::Result<Option<PathBuf>> {
    let memory = memory(settings);
    let Some(added) = memory.get::<AddedTrust>() else { return Ok(None) };
    let mut file = TrustFile::read(&added.config)?;
    added.hooks.iter().for_each(|hook| file.remove(hook));
    let changed = file.exists() && file.write(added.was_missing)?;
    memory.forget();
    Ok(changed.then_some(added.config))
}

/// Asks Codex whether it trusts the hooks of this guard in a settings file.
pub(in super::super) async fn listed_trust(settings: &Path, scope: Scope, project: &Path) -> HookTrust {
    let listed = match listed(AppServerSpec::new(project), project).await {
        Ok(listed) => own(listed, settings),
        Err(error) => return HookTrust::Unknown(format!("{error:#}")),
    };
    let untrusted = listed.iter().filter(|hook| hook.trust != TrustStatus::Trusted).count();
    match (listed.len(), untrusted) {
        (0, _) if scope == Scope::Project => HookTrust::UntrustedProject,
        (0, _) => HookTrust::Unknown(format!("it does not list the hooks in {}", settings.display())),
        (_, 0) => HookTrust::Trusted,
        (_, untrusted) => HookTrust::Untrusted(untrusted),
    }
}

fn memory(settings: &Path) -> Memory {
    Memory::of(settings, "-trust")
}

async fn listed(spec: AppServerSpec, project: &Path) -> anyhow::Result<Vec<ListedHook>> {
    let mut server = AppServer::start(spec).await?;
    let hooks = server.hooks(project).await;
    server.close().await;
    Ok(hooks?)
}

/// Keeps the hooks of this guard in a settings file.
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
    fn new(project: &Path) -> anyhow::Result<Self> {
        let path = state_directory()?.join("guard").join(format!("codex-{}", std::process::id()));
        make_private(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        let home = Self { path };
        let mut settings = toml_edit::DocumentMut::new();
        settings["check_for_update_on_startup"] = toml_edit::value(false);
        settings["analytics"]["enabled"] = toml_edit::value(false);
        settings["projects"][&project.to_string_lossy().into_owned()]["trust_level"] =
            toml_edit::value("trusted");
        std::fs::write(home.path.join("config.toml"), settings.to_string())?;
        Ok(home)
    }
}

impl Drop for OwnHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
