//! The files of a project that need trust, and what is recorded about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use backstitch::digest::Digest;

use super::TrustError;
use super::ledger::Ledger;

/// Maximum size of a file, in bytes: that of the largest file which an agent file may refer to.
const LARGEST_FILE: u64 = 64 << 20;

/// Files of a project that are used only if they are trusted.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(super) root: PathBuf,
    /// What is recorded about each file, by its path relative to the root.
    pub(super) files: BTreeMap<String, String>,
    /// The files that name the others.
    pub(super) paths: Vec<PathBuf>,
    /// What a person should look at before the decision.
    pub(crate) details: Vec<String>,
}

/// Whether files are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrustState {
    Trusted,
    /// These were never trusted.
    New(Vec<String>),
    /// These changed since they were trusted.
    Changed(Vec<String>),
}

impl Subject {
    /// Creates a subject without files. A root that is a symbolic link is resolved.
    pub(crate) fn new(root: &Path) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { root, files: BTreeMap::new(), paths: Vec::new(), details: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether a path is in the project, as it is written or after its links are resolved.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let written = std::path::absolute(path).is_ok_and(|path| {
            without_steps_up(&path).starts_with(&self.root)
                || path.ancestors().any(|part| part.is_symlink() && self.has_parent_of(part))
        });
        // A link above the root does not lead out of it, and a link in the project chooses what a step up from it leads to.
        written
            || self.has_parent_of(path)
            || path.canonicalize().is_ok_and(|path| path.starts_with(&self.root))
    }

    fn has_parent_of(&self, path: &Path) -> bool {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        parent.canonicalize().is_ok_and(|parent| parent.starts_with(&self.root))
    }

    /// Adds a file with its content.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), TrustError> {
        self.add_reference(path)?;
        self.paths.push(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        Ok(())
    }

    /// Adds a file that another one refers to.
    pub(crate) fn add_reference(&mut self, path: &Path) -> Result<(), TrustError> {
        let digest =
            digest(path).map_err(|source| TrustError::Unreadable { path: path.to_owned(), source })?;
        self.add(path, digest);
        Ok(())
    }

    /// Adds a store. Its content changes with every session, so the file itself is identified: one that was
    /// replaced, as git does it, is another file.
    pub(crate) fn add_store(&mut self, path: &Path) -> Result<(), TrustError> {
        let found =
            fs::metadata(path).map_err(|source| TrustError::Unreadable { path: path.to_owned(), source })?;
        let born = found.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born = born.map(|born| born.as_nanos()).unwrap_or_default();
        self.add(path, format!("file {}:{}:{born}", found.dev(), found.ino()));
        self.paths.push(path.to_owned());
        Ok(())
    }

    /// Adds something that is not a file of the project, with its whole definition.
    #[cfg(feature = "acp")]
    pub(crate) fn add_definition(&mut self, name: &str, definition: &[u8]) {
        self.files.insert(name.to_owned(), Digest::of(definition).to_string());
    }

    /// Adds a file whose content was read already.
    pub(crate) fn add_content(&mut self, path: &Path, content: &[u8]) {
        self.add(path, Digest::of(content).to_string());
    }

    fn add(&mut self, path: &Path, recorded: String) {
        self.files.insert(self.name_of(path), recorded);
    }

    /// Returns the name under which a file is recorded: its path relative to the root.
    pub(crate) fn name_of(&self, path: &Path) -> String {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        resolved.strip_prefix(&self.root).unwrap_or(&resolved).to_string_lossy().into_owned()
    }

    /// Returns the names of the files that are not trusted as they are.
    pub(crate) fn untrusted(&self) -> Result<BTreeSet<String>, TrustError> {
        let ledger = Ledger::read()?;
        let recorded = ledger.of(&self.root);
        let is_known = |name: &String, now: &String| {
            let before = recorded.iter().find_map(|entry| entry.files.get(name));
            before.is_some_and(|before| before == now)
        };
        let unknown = self.files.iter().filter(|(name, now)| !is_known(name, now));
        Ok(unknown.map(|(name, _)| name.clone()).collect())
    }

    /// Compares the files with what is recorded.
    pub(crate) fn standing(&self) -> Result<TrustState, TrustError> {
        let ledger = Ledger::read()?;
        let recorded = ledger.of(&self.root);
        let known = |name: &String| recorded.iter().find_map(|entry| entry.files.get(name));
        let names = |is: &dyn Fn(&String, &String) -> bool| -> Vec<String> {
            self.files.iter().filter(|(name, now)| is(name, now)).map(|(name, _)| name.clone()).collect()
        };
        let changed = names(&|name, now| known(name).is_some_and(|before| before != now));
        if !changed.is_empty() {
            return Ok(TrustState::Changed(changed));
        }
        let new = names(&|name, _| known(name).is_none());
        Ok(if new.is_empty() { TrustState::Trusted } else { TrustState::New(new) })
    }

    /// Records that the files are trusted as they are.
    pub(crate) fn record(&self) -> Result<(), TrustError> {
        Ledger::change(|ledger| ledger.trust(&self.root, &self.files))
    }
}

/// Returns an absolute path as it is written, without `..` and what it takes back.
fn without_steps_up(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut before, part| {
        match part {
            Component::ParentDir => {
                before.pop();
            }
            part => before.push(part),
        }
        before
    })
}

fn digest(path: &Path) -> std::io::Result<String> {
    let refused = |kind, message: &str| Err(std::io::Error::new(kind, message.to_owned()));
    if !fs::metadata(path)?.is_file() {
        return refused(std::io::ErrorKind::InvalidInput, "it is not a regular file");
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return refused(std::io::ErrorKind::FileTooLarge, "it is larger than 64 MiB");
    }
    Ok(Digest::of(&bytes).to_string())
}
