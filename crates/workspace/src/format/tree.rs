//! Directories in git's object format.
//!
//! A tree is a list of `mode SP name NUL id`, sorted by name, a directory's name as if it ended in `/`. There is one encoding
//! of a directory, and reading accepts that one only, so that equal directories are equal ids.

use std::cmp::Ordering;

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::path::{Name, is_name};
use super::{damaged, fetch};

/// What an entry of a tree is, in git's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mode {
    /// `100644`
    File,
    /// `100755`
    Executable,
    /// `120000`
    Link,
    /// `40000`
    Directory,
}

impl Mode {
    const ALL: [Self; 4] = [Self::File, Self::Executable, Self::Link, Self::Directory];

    /// The mode as git writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Directory => "40000",
        }
    }

    /// The mode that is written so.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str().as_bytes() == text)
    }

    /// The mode of a file with these permissions.
    pub(crate) fn of_file(permissions: u32) -> Self {
        if permissions & 0o100 == 0 { Self::File } else { Self::Executable }
    }

    /// The permissions that this mode stands for, unless the manifest says otherwise.
    pub(crate) fn permissions(self) -> u32 {
        match self {
            Self::File => 0o644,
            Self::Executable | Self::Directory => 0o755,
            Self::Link => 0o777,
        }
    }
}

/// A name in a directory, with what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) name: Name,
    pub(crate) mode: Mode,
    pub(crate) id: ObjectId,
}

/// A tree that is being written. Entries come in any order.
#[derive(Debug, Default)]
pub(crate) struct TreeBuilder<'a> {
    entries: Vec<(&'a [u8], Mode, ObjectId)>,
}

impl<'a> TreeBuilder<'a> {
    pub(crate) fn push(&mut self, name: &'a [u8], mode: Mode, id: ObjectId) {
        self.entries.push((name, mode, id));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The tree as an object.
    pub(crate) fn build(mut self) -> Object {
        let sorted = self.entries.is_sorted_by(|left, right| order(*left, *right).is_lt());
        if !sorted {
            self.entries.sort_unstable_by(|left, right| order(*left, *right));
        }
        let mut bytes = Vec::with_capacity(self.entries.iter().map(|(name, ..)| name.len() + 28).sum());
        for (name, mode, id) in &self.entries {
            bytes.extend_from_slice(mode.as_str().as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        Object::new(ObjectKind::Tree, bytes)
    }
}

/// The tree with no entries.
pub(crate) fn empty() -> Object {
    TreeBuilder::default().build()
}

fn order(left: (&[u8], Mode, ObjectId), right: (&[u8], Mode, ObjectId)) -> Ordering {
    let end = |mode| if mode == Mode::Directory { b'/' } else { 0 };
    let common = left.0.len().min(right.0.len());
    left.0[..common].cmp(&right.0[..common]).then_with(|| {
        let next = |name: &[u8], mode| name.get(common).copied().unwrap_or(end(mode));
        next(left.0, left.1).cmp(&next(right.0, right.1)).then(left.0.len().cmp(&right.0.len()))
    })
}

/// The entries of a stored tree, in git's order.
pub(crate) fn load(objects: &dyn Objects, id: ObjectId) -> Result<Vec<TreeEntry>, WorkspaceError> {
    let object = fetch(objects, id, ObjectKind::Tree)?;
    decode(object.bytes()).map_err(|reason| damaged(id, reason))
}

/// The entries of a tree, in git's order.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<TreeEntry>, &'static str> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (mode, after) = split(rest, b' ').ok_or("it ends inside of an entry")?;
        let mode = Mode::parse(mode).ok_or("an entry has a mode that is not known")?;
        let (name, after) = split(after, 0).ok_or("it ends inside of an entry")?;
        let (id, after) = after.split_first_chunk::<20>().ok_or("it ends inside of an entry")?;
        if !is_name(name) {
            return Err("an entry has a name that is none");
        }
        let id = ObjectId::from_bytes(*id);
        if let Some(last) = entries.last()
            && order((&last.name, last.mode, last.id), (name, mode, id)).is_ge()
        {
            return Err("its entries are not in order");
        }
        entries.push(TreeEntry { name: name.into(), mode, id });
        rest = after;
    }
    // A file and a directory of one name need not stand next to each other.
    let mut names: Vec<&[u8]> = entries.iter().map(|entry| &*entry.name).collect();
    names.sort_unstable();
    match names.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err("a name stands in it twice"),
        false => Ok(entries),
    }
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, Mode)]) -> Object {
        let id = Object::blob(*b"hello\n").id();
        let mut builder = TreeBuilder::default();
        entries.iter().for_each(|(name, mode)| builder.push(name.as_bytes(), *mode, id));
        builder.build()
    }

    #[test]
    fn a_directory_is_sorted_as_if_it_ended_in_a_slash() {
        let names = |object: &Object| {
            let entries = decode(object.bytes()).unwrap();
            entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect::<Vec<_>>()
        };
        let files = [("a0", Mode::File), ("a.c", Mode::File), ("a-", Mode::File), ("a", Mode::File)];
        assert_eq!(names(&tree(&files)), ["a", "a-", "a.c", "a0"]);
        let mixed = [("a0", Mode::File), ("a.c", Mode::File), ("a-", Mode::File), ("a", Mode::Directory)];
        assert_eq!(names(&tree(&mixed)), ["a-", "a.c", "a", "a0"]);
        assert_eq!(empty().id().to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let one = tree(&[("b", Mode::File)]).bytes().to_vec();
        for end in 1..one.len() {
            assert!(decode(&one[..end]).is_err(), "{end}");
        }
        let before = tree(&[("a", Mode::File)]).bytes().to_vec();
        assert!(decode(&[&before[..], &one].concat()).is_ok());
        assert!(decode(&[&one[..], &before].concat()).is_err());
        assert!(decode(&[&one[..], &one].concat()).is_err());
        let twice =
            [tree(&[("a", Mode::File)]), tree(&[("a.c", Mode::File)]), tree(&[("a", Mode::Directory)])];
        assert!(decode(&twice.map(|tree| tree.bytes().to_vec()).concat()).is_err());
        for name in ["", ".", "..", "a/b"] {
            assert!(decode(tree(&[(name, Mode::File)]).bytes()).is_err(), "{name:?}");
        }
        for mode in ["0100644", "100664", "160000", "040000", ""] {
            assert!(decode(&[mode.as_bytes(), &one[6..]].concat()).is_err(), "{mode}");
        }
    }
}
