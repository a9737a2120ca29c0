//! Removes everything that git does not accept from a root.
//!
//! Trees of roots contain no name that git refuses, so nearly all of them are used unchanged. Only a list of
//! submodules or attributes with content that git refuses is removed, which changes the trees of the
//! directories above it.

use std::collections::{BTreeMap, HashMap, HashSet};

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};
use backstitch_filesystem::format::names::{join, shown};
use backstitch_filesystem::format::{
    MAX_DEPTH, Manifest, Modes, TreeBuilder, TreeEntry, TreeMode, empty_tree, fetch, git_refuses,
    is_attributes, is_modules, load_tree,
};

use super::{LeftOutReason, OmittedEntry};

/// An object of a repository: either stored, or created for the repository.
pub(super) enum Content {
    Stored(ObjectId, ObjectKind),
    Made(Object),
}

/// Collects the objects of a repository.
pub(super) struct Clean<'a> {
    objects: &'a dyn Objects,
    contents: Vec<Content>,
    seen: HashSet<ObjectId>,
    /// Cleaned tree of each visited tree; `None` if it became empty.
    trees: HashMap<ObjectId, Option<ObjectId>>,
    modes: HashSet<(Vec<u8>, ObjectId)>,
    left_out: BTreeMap<(Vec<u8>, LeftOutReason), usize>,
}

impl<'a> Clean<'a> {
    pub(super) fn new(objects: &'a dyn Objects) -> Self {
        Self {
            objects,
            contents: Vec::new(),
            seen: HashSet::new(),
            trees: HashMap::new(),
            modes: HashSet::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// Adds a root, and returns the tree that git accepts.
    pub(super) fn root(&mut self, root: WorkspaceRoot, commit: usize) -> Result<ObjectId, WorkspaceError> {
        let manifest = Manifest::load(self.objects, root.manifest)?;
        for path in manifest.refused.keys() {
            self.leave(path, LeftOutReason::Name, commit);
        }
        for path in &manifest.empty_directories {
            self.leave(path, LeftOutReason::EmptyDirectory, commit);
        }
        if let Some(modes) = manifest.modes {
            self.modes(&[], modes, commit, 0)?;
        }
        match self.tree(&[], root.tree, commit, 0)? {
            Some(tree) => Ok(tree),
            None => Ok(self.add(empty_tree())),
        }
    }

    /// Adds an object that was created for the repository.
    pub(super) fn add(&mut self, object: Object) -> ObjectId {
        let id = object.id();
        if self.seen.insert(id) {
            self.contents.push(Content::Made(object));
        }
        id
    }

    pub(super) fn finish(self) -> (Vec<Content>, Vec<OmittedEntry>) {
        let left_out = self.left_out.into_iter();
        let left_out =
            left_out.map(|((path, reason), commit)| OmittedEntry { path: shown(&path), reason, commit });
        (self.contents, left_out.collect())
    }

    fn leave(&mut self, path: &[u8], reason: LeftOutReason, commit: usize) {
        self.left_out.entry((path.to_vec(), reason)).or_insert(commit);
    }

    fn add_stored(&mut self, id: ObjectId, kind: ObjectKind) {
        if self.seen.insert(id) {
            self.contents.push(Content::Stored(id, kind));
        }
    }

    /// Adds a tree, and returns its replacement, or `None` if nothing of it remains.
    fn tree(
        &mut self,
        path: &[u8],
        id: ObjectId,
        commit: usize,
        depth: usize,
    ) -> Result<Option<ObjectId>, WorkspaceError> {
        if let Some(known) = self.trees.get(&id) {
            return Ok(*known);
        }
        if depth > MAX_DEPTH {
            return Err(WorkspaceError::Limit { reason: format!("{} nests too deeply", shown(path)) });
        }
        let entries = load_tree(self.objects, id)?;
        let mut kept: Vec<TreeEntry> = Vec::with_capacity(entries.len());
        let mut same = true;
        for entry in entries {
            let at = join(path, &entry.name);
            let refused = match entry.mode {
                mode if git_refuses(&entry.name, mode) => Some(LeftOutReason::Name),
                _ if self.objects.is_redacted(entry.object).map_err(WorkspaceError::Objects)? => {
                    Some(LeftOutReason::Redacted)
                }
                TreeMode::File | TreeMode::Executable if !self.accepts(&entry)? => {
                    Some(LeftOutReason::Content)
                }
                _ => None,
            };
            if let Some(reason) = refused {
                same = false;
                self.leave(&at, reason, commit);
            } else if entry.mode == TreeMode::Directory {
                let below = self.tree(&at, entry.object, commit, depth + 1)?;
                same &= below == Some(entry.object);
                kept.extend(below.map(|id| TreeEntry { object: id, ..entry }));
            } else {
                self.add_stored(entry.object, ObjectKind::Blob);
                kept.push(entry);
            }
        }
        let result = if kept.is_empty() {
            None
        } else if same {
            self.add_stored(id, ObjectKind::Tree);
            Some(id)
        } else {
            let mut builder = TreeBuilder::default();
            kept.iter().for_each(|entry| builder.push(&entry.name, entry.mode, entry.object));
            Some(self.add(builder.build()))
        };
        self.trees.insert(id, result);
        Ok(result)
    }

    /// Returns whether git accepts the content of a file. Git checks it only for a few names.
    fn accepts(&self, entry: &TreeEntry) -> Result<bool, WorkspaceError> {
        let read = || fetch(self.objects, entry.object, ObjectKind::Blob);
        if is_modules(&entry.name) {
            return Ok(str::from_utf8(read()?.bytes()).is_ok_and(are_modules));
        }
        if is_attributes(&entry.name) {
            return Ok(are_attributes(read()?.bytes()));
        }
        Ok(true)
    }

    fn modes(
        &mut self,
        path: &[u8],
        id: ObjectId,
        commit: usize,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if depth > MAX_DEPTH || !self.modes.insert((path.to_vec(), id)) {
            return Ok(());
        }
        let modes = Modes::load(self.objects, id)?;
        if modes.own.is_some() {
            self.leave(path, LeftOutReason::Mode, commit);
        }
        for name in modes.files.keys() {
            self.leave(&join(path, name), LeftOutReason::Mode, commit);
        }
        for (name, id) in &modes.below {
            self.modes(&join(path, name), *id, commit, depth + 1)?;
        }
        Ok(())
    }
}

/// Returns whether the text is certainly a list of submodules that git accepts. Unusual lists are refused.
fn are_modules(text: &str) -> bool {
    let plain = |text: &str| {
        !text.starts_with('-')
            && !text.contains("..")
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "_./:@+~-".contains(character))
    };
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(name) = line.strip_prefix("[submodule \"") {
            return name.strip_suffix("\"]").is_some_and(|name| !name.is_empty() && plain(name));
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "url" => {
                let host = ["https://", "http://", "ssh://", "git://"]
                    .iter()
                    .find_map(|scheme| value.strip_prefix(scheme));
                plain(value)
                    && host.is_some_and(|host| host.starts_with(|first: char| first.is_ascii_alphanumeric()))
            }
            "update" => matches!(value, "checkout" | "rebase" | "merge" | "none"),
            "path" | "branch" | "ignore" | "shallow" => !value.is_empty() && plain(value),
            _ => false,
        }
    })
}

/// Returns whether git accepts the bytes as attributes, which depends on their size.
fn are_attributes(bytes: &[u8]) -> bool {
    bytes.len() < 100 * 1024 * 1024 && bytes.split(|byte| *byte == b'\n').all(|line| line.len() < 2_048)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_lists_of_submodules_are_taken() {
        assert!(are_modules(
            "# libraries\n[submodule \"lib/a\"]\n\tpath = lib/a\n\turl = https://example.org/a.git\n"
        ));
        for text in [
            "[submodule \"../x\"]\n",
            "[submodule \"a\"]\nurl = --upload-pack=x\n",
            "[submodule \"a\"]\nurl = ext::sh\n",
            "[submodule \"a\"]\nupdate = !rm -r x\n",
            "[submodule \"a\"]\nurl = https://\n",
            "[submodule \"a\"]\nurl = https://a%0ab/\n",
            "nonsense\n",
        ] {
            assert!(!are_modules(text), "{text}");
        }
    }
}
