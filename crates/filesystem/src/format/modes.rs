//! Exact modes, where git's two are not enough.
//!
//! Modes are stored like files: one tree for each directory with an exception in it or below it. A change
//! therefore costs only its own size, even beside ten thousand read-only files of a nested repository. Such a
//! tree contains
//!
//! - `=`, a blob with a line for each exception, `mode SP name LF`, with the name percent-encoded and `.` for
//!   the directory itself;
//! - `+name`, the tree of a subdirectory.
//!
//! A file that is not listed has mode 0644, or 0755 if git's tree marks it as executable; a directory has
//! 0755.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::names::{Name, decode, encode, is_name};
use super::{TreeBuilder, TreeMode, damaged, fetch, load_tree};

const OWN: &[u8] = b"=";
const BELOW: u8 = b'+';
const PERMISSIONS: u32 = 0o7777;

/// Mode exceptions of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modes {
    /// Mode of the directory itself, if it is an exception.
    pub own: Option<u32>,
    /// Modes of files in the directory.
    pub files: BTreeMap<Name, u32>,
    /// Trees of modes of subdirectories.
    pub below: BTreeMap<Name, ObjectId>,
}

impl Modes {
    /// Encodes the exceptions as objects, the tree last. Returns none if there are no exceptions.
    pub fn to_objects(&self) -> Vec<Object> {
        let mut objects = Vec::new();
        let mut lines = String::new();
        let own = self.own.iter().map(|mode| (*mode, ".".to_owned()));
        for (mode, name) in own.chain(self.files.iter().map(|(name, mode)| (*mode, encode(name)))) {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{mode:04o} {name}");
        }
        let names: Vec<Vec<u8>> = self.below.keys().map(|name| [&[BELOW], &**name].concat()).collect();
        let mut builder = TreeBuilder::default();
        if !lines.is_empty() {
            objects.push(Object::blob(lines.into_bytes()));
            builder.push(OWN, TreeMode::File, objects[0].id());
        }
        for (name, id) in names.iter().zip(self.below.values()) {
            builder.push(name, TreeMode::Directory, *id);
        }
        if !builder.is_empty() {
            objects.push(builder.build());
        }
        objects
    }

    /// Loads the exceptions of a directory.
    pub fn load(objects: &dyn Objects, id: ObjectId) -> Result<Self, WorkspaceError> {
        let mut modes = Self::default();
        for entry in load_tree(objects, id)? {
            match (&*entry.name, entry.mode) {
                (OWN, TreeMode::File) => {
                    let blob = fetch(objects, entry.object, ObjectKind::Blob)?;
                    modes
                        .read(blob.bytes())
                        .ok_or_else(|| damaged(entry.object, "it is not a list of modes"))?;
                }
                ([BELOW, name @ ..], TreeMode::Directory) if is_name(name) => {
                    modes.below.insert(name.into(), entry.object);
                }
                _ => return Err(damaged(id, "it is not a tree of modes")),
            }
        }
        Ok(modes)
    }

    fn read(&mut self, bytes: &[u8]) -> Option<()> {
        let text = bytes.strip_suffix(b"\n")?;
        for line in text.split(|byte| *byte == b'\n') {
            let (mode, name) = line.split_at_checked(4)?;
            let mode = u32::from_str_radix(str::from_utf8(mode).ok()?, 8).ok()?;
            let name = name.strip_prefix(b" ")?;
            if mode > PERMISSIONS {
                return None;
            }
            if name == b"." {
                self.own = Some(mode);
                continue;
            }
            let name = decode(name).filter(|name| is_name(name))?;
            self.files.insert(name.into(), mode);
        }
        Some(())
    }
}
