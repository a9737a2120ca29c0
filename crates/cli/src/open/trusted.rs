//! Files of a project that are used only if the user trusts them: its settings, agent files in it, its MCP servers, a store in
//! it, and its commands and skills.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use backstitch::agent_file::{AgentFile, McpDefinition, McpFile};
use backstitch::providers::read_text;
use backstitch::stores::{self, StoreAddress};

use crate::common::Common;
use crate::config::{Config, ProjectSettings};
use crate::project;
use crate::prompts::{PromptLibrary, skills};
use crate::trust::{self, Subject, TrustState};

/// The file of a project that names MCP servers, in the form of other agents.
const SERVERS: &str = ".mcp.json";

/// Maximum size of that file, in bytes.
const LARGEST_SERVERS: u64 = 256 * 1024;

/// The settings and the agent file of a new session.
pub(crate) struct NewAgent {
    pub(crate) config: Config,
    pub(crate) file: AgentFile,
    /// Whether the settings of the project chose the file, and not the user.
    pub(crate) is_of_project: bool,
}

/// Finds the settings and the agent file for a session in a directory. `named` is the file that the user named.
pub(crate) fn new_agent(common: &Common, named: Option<&Path>, directory: &Path) -> anyhow::Result<NewAgent> {
    let own = Config::clone(&common.config);
    let root = root_of(directory);
    let mut subject = Subject::new(&root);
    let settings = ProjectSettings::read(&root)?;
    let all = match &settings {
        Some(settings) => {
            add_settings(&mut subject, settings)?;
            own.clone().with_project(settings.clone())
        }
        None => own.clone(),
    };
    let explicit = named.map(Path::to_owned).or_else(|| own.agent());
    let chosen = explicit.clone().or_else(|| all.agent());
    let providers = all.providers();
    let file = chosen.as_deref().map(|path| AgentFile::read_knowing(path, &providers)).transpose()?;
    let is_inside = chosen.as_ref().is_some_and(|path| subject.holds(path));
    if let (Some(file), true) = (&file, is_inside) {
        add_agent(&mut subject, file)?;
    }
    if trust::decide(common, &subject)? {
        let is_of_project = explicit.is_none() && file.is_some();
        return Ok(NewAgent { config: all, file: file.unwrap_or_default(), is_of_project });
    }
    if explicit.is_some() && is_inside {
        return Err(trust::refused(&subject, &subject.standing()?).into());
    }
    eprintln!("the settings of {} are not used, because they are not trusted", root.display());
    let file = file.filter(|_| explicit.is_some());
    Ok(NewAgent { config: own, file: file.unwrap_or_default(), is_of_project: false })
}

/// Returns the MCP servers in `.mcp.json` of the project, if the file is trusted. Where nobody can be asked, they are left
/// out with a note: the file is mostly written for other agents.
#[cfg(feature = "mcp")]
pub(crate) fn project_servers(common: &Common, directory: &Path) -> anyhow::Result<Vec<McpDefinition>> {
    let root = root_of(directory);
    let Some((path, file)) = read_servers(&root)? else { return Ok(Vec::new()) };
    let mut subject = Subject::new(&root);
    add_servers(&mut subject, &path, &file)?;
    let is_known = common.trust || subject.standing()? == TrustState::Trusted;
    if !is_known && (!common.can_ask() || !trust::decide(common, &subject)?) {
        let way = "`backstitch trust` trusts the files of the project";
        eprintln!("the MCP servers of {} are not used, because it is not trusted; {way}", path.display());
        return Ok(Vec::new());
    }
    file.notes.iter().for_each(|note| eprintln!("{}: {note}", path.display()));
    Ok(file.servers)
}

/// Returns the MCP servers of the project with their file, and whether it is trusted.
#[cfg(feature = "mcp")]
pub(crate) fn listed_servers(directory: &Path) -> anyhow::Result<Option<(PathBuf, McpFile, bool)>> {
    let root = root_of(directory);
    let Some((path, file)) = read_servers(&root)? else { return Ok(None) };
    let mut subject = Subject::new(&root);
    add_servers(&mut subject, &path, &file)?;
    let is_trusted = subject.standing()? == TrustState::Trusted;
    Ok(Some((path, file, is_trusted)))
}

/// Reads `.mcp.json` of a project. One that cannot be read is named, and has no servers.
fn read_servers(root: &Path) -> anyhow::Result<Option<(PathBuf, McpFile)>> {
    let path = root.join(SERVERS);
    let text = match read_text(&path, LARGEST_SERVERS) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            eprintln!("{} cannot be read: {error}", path.display());
            return Ok(None);
        }
    };
    match McpFile::parse(&text) {
        Ok(file) if file == McpFile::default() => Ok(None),
        Ok(file) => Ok(Some((path, file))),
        Err(error) => {
            eprintln!("{} cannot be read: {error}", path.display());
            Ok(None)
        }
    }
}

fn add_servers(subject: &mut Subject, path: &Path, file: &McpFile) -> anyhow::Result<()> {
    subject.add_file(path)?;
    subject.details.extend(file.servers.iter().map(McpDefinition::description));
    Ok(())
}

/// Returns the store in `.backstitch` of a directory or of one above it, if it is trusted.
pub(crate) fn store_beside(common: &Common, directory: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = stores::beside(directory) else { return Ok(None) };
    if trust::decide(common, &of_store(&path)?)? {
        return Ok(Some(path));
    }
    eprintln!("the store {} is not used, because it is not trusted", path.display());
    Ok(None)
}

/// Returns the store that a command in a directory would use, if there is one that is trusted. Nobody is asked.
pub(crate) fn known_store(common: &Common, directory: &Path) -> Option<StoreAddress> {
    if let Some(address) = &common.store {
        return Some(address.clone()).filter(|address| !address.is_missing());
    }
    let store = match stores::beside(directory) {
        Some(beside) => {
            let is_trusted = common.trust || of_store(&beside).ok()?.standing().ok()? == TrustState::Trusted;
            is_trusted.then_some(beside)
        }
        None => stores::of_project(directory).ok()?,
    };
    store.map(StoreAddress::File)
}

/// Trusts a store that this command has just created in a `.backstitch`, because the user named it.
pub(crate) fn trust_new_store(path: &Path) {
    let is_beside = path.parent().and_then(Path::file_name) == Some(stores::DIRECTORY.as_ref());
    if let (true, Ok(subject)) = (is_beside, of_store(path)) {
        // Where this cannot be recorded, the next command asks.
        let _ = subject.record();
    }
}

/// Returns what `trust` records for a path: a directory of a project, an agent file, settings, a store, a command or a skill.
pub(crate) fn subject_of(path: &Path) -> anyhow::Result<Subject> {
    let path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    let root = root_of(&path);
    if path.file_name() == Some(stores::FILE.as_ref()) {
        return of_store(&path);
    }
    if let Some(root) = PromptLibrary::root_of(&path).filter(|_| path.is_file()) {
        let mut subject = Subject::new(&root);
        subject.add_file(&path)?;
        skills::add_others(&mut subject, &path);
        return Ok(subject);
    }
    let mut subject = Subject::new(&root);
    if path.is_file() && path != root.join(ProjectSettings::FILE) && path != root.join(SERVERS) {
        add_agent(&mut subject, &AgentFile::read_knowing(&path, &Config::load()?.providers())?)?;
        return Ok(subject);
    }
    if let Some(settings) = ProjectSettings::read(&root)? {
        add_settings(&mut subject, &settings)?;
        if let Some(agent) = settings.agent() {
            let config = Config::load()?.with_project(settings.clone());
            let file = AgentFile::read_knowing(agent, &config.providers())?;
            if subject.holds(agent) {
                add_agent(&mut subject, &file)?;
            }
        }
    }
    if let Some((path, file)) = read_servers(&root)? {
        add_servers(&mut subject, &path, &file)?;
    }
    if path.is_dir()
        && let Some(store) = stores::beside(&root).filter(|store| subject.holds(store))
    {
        subject.add_store(&store)?;
    }
    if path.is_dir() {
        PromptLibrary::add_to(&mut subject, &root);
    }
    Ok(subject)
}

/// Returns what is trusted about an MCP server that an editor names: its definition, in the project of a directory.
#[cfg(feature = "acp")]
pub(crate) fn of_editor_server(directory: &Path, name: &str, definition: &[u8]) -> Subject {
    let mut subject = Subject::new(&root_of(directory));
    subject.add_definition(&format!("MCP server {name} of the editor"), definition);
    subject
}

/// Adds the settings of a project, if they are trusted. Returns their file, and whether it is trusted.
pub(crate) fn add_project(root: &Path, config: &mut Config) -> anyhow::Result<Option<(PathBuf, bool)>> {
    let Some(settings) = ProjectSettings::read(root)? else { return Ok(None) };
    let mut subject = Subject::new(root);
    subject.add_file(&settings.path)?;
    let (path, is_trusted) = (settings.path.clone(), subject.standing()? == TrustState::Trusted);
    if is_trusted {
        *config = std::mem::take(config).with_project(settings);
    }
    Ok(Some((path, is_trusted)))
}

fn root_of(path: &Path) -> PathBuf {
    // A workspace may not exist yet.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = if path.is_file() { path.parent().unwrap_or(&path) } else { &path };
    project::root(directory)
}

fn of_store(path: &Path) -> anyhow::Result<Subject> {
    let directory = path.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let mut subject = Subject::new(directory);
    subject.add_store(path)?;
    subject.details.push("its sessions name their own tools, models and addresses".to_owned());
    Ok(subject)
}

fn add_settings(subject: &mut Subject, settings: &ProjectSettings) -> anyhow::Result<()> {
    subject.add_file(&settings.path)?;
    subject.details.extend(settings.lines());
    Ok(())
}

fn add_agent(subject: &mut Subject, file: &AgentFile) -> anyhow::Result<()> {
    let mut files = file.files.iter();
    if let Some(first) = files.next() {
        subject.add_file(first)?;
    }
    for other in files {
        subject.add_reference(other)?;
    }
    subject.details.extend(file.definition.rights());
    Ok(())
}
