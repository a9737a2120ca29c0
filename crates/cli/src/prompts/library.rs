//! The commands and skills that there are, and whether each can be used.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::front_matter::FrontMatter;
use super::place::{PromptKind, PromptOwner, PromptPlace, places};
use super::skills;
use crate::common::Common;
use crate::project;
use crate::trust::Subject;

/// Maximum size of a file in bytes.
const LARGEST_FILE: usize = 64 * 1024;

/// Maximum number of files in a place.
const MOST_FILES: usize = 200;

/// Directories below a place of commands that are read.
const DEEPEST: usize = 3;

/// Maximum length of a name in bytes.
const LONGEST_NAME: usize = 64;

/// The name of the file that is a skill, in a directory of its own.
pub(super) const SKILL: &str = "SKILL.md";

/// Whether `--trust` was given to this command.
pub(super) static IS_TRUSTED: AtomicBool = AtomicBool::new(false);

/// Whether a file can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptState {
    Offered,
    /// It is a file of a project that the user does not trust as it is.
    NotTrusted,
    /// A file of this path has the same name and comes first.
    Shadowed(PathBuf),
    /// It cannot be read, for this reason.
    Wrong(String),
}

impl PromptState {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::NotTrusted => "not_trusted",
            Self::Shadowed(_) => "shadowed",
            Self::Wrong(_) => "wrong",
        }
    }
}

/// A command or a skill.
#[derive(Debug, Clone)]
pub(crate) struct PromptFile {
    pub(crate) kind: PromptKind,
    pub(crate) owner: PromptOwner,
    /// The name that a person types, without the slash.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) front: FrontMatter,
    /// The text for the model.
    pub(crate) body: String,
    pub(crate) state: PromptState,
}

/// All commands and skills for work in a project.
#[derive(Debug)]
pub(crate) struct PromptLibrary {
    /// The root of the project.
    pub(crate) root: PathBuf,
    /// The files, those whose names apply first.
    pub(crate) files: Vec<PromptFile>,
}

impl PromptLibrary {
    /// Reads the files of the user and of the project of a directory. Where the record of trust cannot be read, nothing of the
    /// project is trusted.
    pub(crate) fn load(common: &Common, directory: &Path) -> Self {
        IS_TRUSTED.store(common.trust, Ordering::Relaxed);
        let root = project::root(directory);
        let mut files = Vec::new();
        let mut subject = Subject::new(&root);
        for place in places(Some(&root)) {
            for found in found_in(&place, &root) {
                if let (PromptOwner::Project, Some(content)) = (place.owner, &found.content) {
                    subject.add_content(&found.path, content.as_bytes());
                }
                files.push(found.read(&place));
            }
        }
        if !common.trust && !subject.is_empty() {
            let unknown = subject.untrusted().ok();
            let is_unknown =
                |path: &Path| unknown.as_ref().is_none_or(|unknown| unknown.contains(&subject.name_of(path)));
            for file in files.iter_mut().filter(|file| file.owner == PromptOwner::Project) {
                if is_unknown(&file.path) {
                    file.state = PromptState::NotTrusted;
                }
            }
        }
        mark_shadowed(&mut files);
        Self { root, files }
    }

    /// Returns the file that can be used under a name.
    pub(crate) fn find(&self, kind: PromptKind, name: &str) -> Option<&PromptFile> {
        self.offered(kind).find(|file| file.name == name)
    }

    /// Returns the files of a kind that can be used.
    pub(crate) fn offered(&self, kind: PromptKind) -> impl Iterator<Item = &PromptFile> {
        self.files.iter().filter(move |file| file.kind == kind && file.state == PromptState::Offered)
    }

    /// Says which files of the project are not offered because they are not trusted; `None` if there are none.
    pub(crate) fn untrusted_line(&self) -> Option<String> {
        const SHOWN: usize = 5;
        let unknown = self.files.iter().filter(|file| file.state == PromptState::NotTrusted);
        let names: Vec<String> = unknown.map(PromptFile::written_name).collect();
        let more = match names.len() {
            0 => return None,
            few if few <= SHOWN => String::new(),
            many => format!(" and {} more", many - SHOWN),
        };
        let names = names.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
        Some(format!(
            "commands and skills of this project that are not trusted: {names}{more}; `backstitch commands` lists them, \
             `backstitch trust` trusts them"
        ))
    }

    /// Adds the files of a project to those that are trusted together, with the other files of its skills.
    pub(crate) fn add_to(subject: &mut Subject, root: &Path) {
        for place in places(Some(root)).into_iter().filter(|place| place.owner == PromptOwner::Project) {
            for found in found_in(&place, root) {
                if let Some(content) = &found.content {
                    subject.add_content(&found.path, content.as_bytes());
                    if place.kind == PromptKind::Skill {
                        skills::add_others(subject, &found.path);
                    }
                }
            }
        }
    }

    /// Returns the root of the project whose command or skill a file is; `None` for every other file.
    pub(crate) fn root_of(path: &Path) -> Option<PathBuf> {
        let holds = |root: &&Path| {
            let of_project =
                places(Some(root)).into_iter().filter(|place| place.owner == PromptOwner::Project);
            of_project.flat_map(|place| found_in(&place, root)).any(|found| found.path == path)
        };
        // A command may be in a directory below the place.
        path.ancestors().skip(1).take(3 + DEEPEST).find(holds).map(Path::to_owned)
    }
}

impl PromptFile {
    /// Returns the name as a person types it.
    pub(crate) fn written_name(&self) -> String {
        match self.kind {
            PromptKind::Command => format!("/{}", self.name),
            PromptKind::Skill => format!("/skill {}", self.name),
        }
    }
}

/// A file of a place, before it is parsed.
pub(super) struct FoundFile {
    name: String,
    pub(super) path: PathBuf,
    content: Option<String>,
    problem: Option<String>,
}

impl FoundFile {
    fn read(self, place: &PromptPlace) -> PromptFile {
        let (kind, owner) = (place.kind, place.owner);
        let content = self.content.unwrap_or_default();
        let parsed = match self.problem {
            Some(problem) => Err(problem),
            None => FrontMatter::split(&content).map_err(|error| error.to_string()),
        };
        let (front, body, mut state) = match parsed {
            Ok((front, body)) => (front, body.to_owned(), PromptState::Offered),
            Err(problem) => (FrontMatter::default(), String::new(), PromptState::Wrong(problem)),
        };
        // The name of a skill is in the file, that of a command is the name of the file.
        let own = front.name.clone().filter(|_| kind == PromptKind::Skill);
        let name = own.unwrap_or(self.name);
        if state == PromptState::Offered {
            let problem = name_problem(&name).or_else(|| match kind {
                PromptKind::Skill if front.description.is_none() => {
                    Some("it has no `description`, by which a model chooses it")
                }
                _ if body.trim().is_empty() => Some("it is empty"),
                _ => None,
            });
            state = problem.map_or(state, |problem| PromptState::Wrong(problem.to_owned()));
        }
        PromptFile { kind, owner, name: shown(&name), path: self.path, front, body, state }
    }
}

fn name_problem(name: &str) -> Option<&'static str> {
    let is_part = |one: char| one.is_ascii_alphanumeric() || "-_.:".contains(one);
    if name.len() > LONGEST_NAME {
        return Some("its name is longer than 64 characters");
    }
    let is_name = !name.is_empty() && name.chars().all(is_part);
    (!is_name).then_some("its name has other characters than letters, digits, `-`, `_` and `.`")
}

/// Returns a name that can be printed in a line.
fn shown(name: &str) -> String {
    let plain = |one: char| if one.is_control() || one.is_whitespace() { '?' } else { one };
    name.chars().take(LONGEST_NAME).map(plain).collect()
}

/// Finds the files of a place, by their names.
pub(super) fn found_in(place: &PromptPlace, root: &Path) -> Vec<FoundFile> {
    let mut paths = Vec::new();
    match place.kind {
        PromptKind::Command => add_markdown(&place.directory, DEEPEST, &mut paths),
        PromptKind::Skill => {
            let skills = entries_of(&place.directory).into_iter().map(|entry| entry.join(SKILL));
            paths.extend(skills.filter(|path| path.symlink_metadata().is_ok()).take(MOST_FILES));
        }
    }
    let inside = (place.owner == PromptOwner::Project).then_some(root);
    let found = |path: PathBuf| {
        let relative = path.strip_prefix(&place.directory).unwrap_or(&path);
        let relative = if place.kind == PromptKind::Skill {
            relative.parent().unwrap_or(relative).to_owned()
        } else {
            relative.with_extension("")
        };
        let name = relative.to_string_lossy().replace('/', ":");
        let (content, problem) = match read(&path, inside) {
            Ok(content) => (Some(content), None),
            Err(problem) => (None, Some(problem)),
        };
        FoundFile { name, path, content, problem }
    };
    paths.into_iter().map(found).collect()
}

/// Adds the Markdown files below a directory.
fn add_markdown(directory: &Path, deepest: usize, paths: &mut Vec<PathBuf>) {
    for entry in entries_of(directory) {
        if paths.len() >= MOST_FILES {
            return;
        }
        if entry.is_dir() {
            if deepest > 1 {
                add_markdown(&entry, deepest - 1, paths);
            }
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            paths.push(entry);
        }
    }
}

/// Returns the paths in a directory, in the order of their names. One that cannot be read has none.
pub(super) fn entries_of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(10 * MOST_FILES);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads a text file. With `inside`, it has to be there, after links are resolved.
pub(super) fn read(path: &Path, inside: Option<&Path>) -> Result<String, String> {
    let target = path.canonicalize().map_err(|error| error.to_string())?;
    let is_inside = |root: &Path| root.canonicalize().is_ok_and(|root| target.starts_with(root));
    if inside.is_some_and(|root| !is_inside(root)) {
        return Err("it leads out of the project".to_owned());
    }
    // A pipe would block when it is opened.
    if !target.is_file() {
        return Err("it is not an ordinary file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(&target).map_err(|error| error.to_string())?;
    file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > LARGEST_FILE {
        return Err("it is larger than 64 KiB".to_owned());
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| "it is not UTF-8 text".to_owned())
}

/// Marks all but the first file of each name that could be used.
fn mark_shadowed(files: &mut [PromptFile]) {
    let mut first: BTreeMap<(PromptKind, String), PathBuf> = BTreeMap::new();
    for file in files.iter_mut().filter(|file| file.state == PromptState::Offered) {
        match first.get(&(file.kind, file.name.clone())) {
            Some(path) => file.state = PromptState::Shadowed(path.clone()),
            None => {
                first.insert((file.kind, file.name.clone()), file.path.clone());
            }
        }
    }
}
