//! The port's operations on the in-memory filesystem. Each checks everything before it changes anything.

use std::io;
use std::sync::Arc;

use backstitch_core::ports::{
    Access, DirectoryEntry, FileKind, Filesystem, FilesystemError, FilesystemLimits, Recursion, Stat,
    WriteMode,
};

use super::MemoryFilesystem;
use super::filesystem::{found_file, found_node};
use super::node::{File, FileNode, Lookup};
use crate::{FilePath, InvalidPath};

impl Filesystem for MemoryFilesystem {
    fn access(&self) -> Access {
        self.access
    }

    fn limits(&self) -> FilesystemLimits {
        self.limits
    }

    fn stat(&self, path: &FilePath) -> Result<Stat, FilesystemError> {
        self.check(path)?;
        Ok(match found_node(self.lock().find(path), path)? {
            FileNode::File(file) => Stat {
                kind: FileKind::File,
                bytes: file.bytes.len() as u64,
                executable: file.executable,
                modified: file.modified,
            },
            FileNode::Directory(_) => {
                Stat { kind: FileKind::Directory, bytes: 0, executable: false, modified: None }
            }
        })
    }

    fn read_bytes(&self, path: &FilePath) -> Result<Vec<u8>, FilesystemError> {
        self.check(path)?;
        let file = found_file(self.lock().find(path), path)?;
        self.check_size(path, file.bytes.len() as u64, 0)?;
        Ok(file.bytes.to_vec())
    }

    fn write_bytes(&self, path: &FilePath, bytes: &[u8], mode: WriteMode) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        let mut files = self.lock();
        let before = match (files.find(path), mode) {
            (Lookup::File(_) | Lookup::Directory(_), WriteMode::Create) if !path.is_root() => {
                return Err(FilesystemError::Exists { path: path.to_string() });
            }
            (Lookup::Directory(_), _) => return Err(FilesystemError::IsDirectory { path: path.to_string() }),
            (Lookup::BelowFile, _) => return Err(FilesystemError::NotDirectory { path: path.to_string() }),
            (Lookup::File(file), _) => Some(file.clone()),
            (Lookup::Nothing, _) => None,
        };
        let kept: &[u8] = match (&before, mode) {
            (Some(file), WriteMode::Append) => &file.bytes,
            (Some(_) | None, WriteMode::Create | WriteMode::Overwrite | WriteMode::Append) => &[],
        };
        let length = kept.len() as u64 + bytes.len() as u64;
        let replaced = before.as_ref().map_or(0, |file| file.bytes.len() as u64);
        self.check_size(path, length, files.bytes() - replaced + length)?;
        let executable = before.as_ref().is_some_and(|file| file.executable);
        let file = File::new([kept, bytes].concat().into(), executable, self.now());
        files.put(path, FileNode::File(Arc::new(file)));
        Ok(())
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirectoryEntry>, FilesystemError> {
        self.check(path)?;
        let FileNode::Directory(directory) = found_node(self.lock().find(path), path)? else {
            return Err(FilesystemError::NotDirectory { path: path.to_string() });
        };
        let entries = directory.iter().map(|(name, node)| {
            let (kind, bytes) = match node {
                FileNode::File(file) => (FileKind::File, file.bytes.len() as u64),
                FileNode::Directory(_) => (FileKind::Directory, 0),
            };
            DirectoryEntry { name: name.to_string(), kind, bytes }
        });
        Ok(entries.collect())
    }

    fn delete(&self, path: &FilePath, recursion: Recursion) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        if path.is_root() {
            return Err(FilesystemError::Outside { path: path.to_string() });
        }
        let mut files = self.lock();
        if let FileNode::Directory(directory) = found_node(files.find(path), path)?
            && recursion == Recursion::None
            && !directory.is_empty()
        {
            return Err(FilesystemError::NotEmpty { path: path.to_string() });
        }
        files.take(path);
        Ok(())
    }

    fn make_directory(&self, path: &FilePath) -> Result<(), FilesystemError> {
        self.check_write(path)?;
        let mut files = self.lock();
        match files.find(path) {
            Lookup::Directory(_) => {}
            Lookup::Nothing => files.put(path, FileNode::Directory(Arc::default())),
            Lookup::File(_) => return Err(FilesystemError::Exists { path: path.to_string() }),
            Lookup::BelowFile => return Err(FilesystemError::NotDirectory { path: path.to_string() }),
        }
        Ok(())
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<(), FilesystemError> {
        self.check_write(from)?;
        self.check_write(to)?;
        let Some(above) = to.parent().filter(|_| !from.is_root()) else {
            return Err(FilesystemError::Outside { path: ".".to_owned() });
        };
        let mut files = self.lock();
        let node = found_node(files.find(from), from)?;
        match (files.find(to), files.find(&above)) {
            (Lookup::File(_) | Lookup::Directory(_), _) => {
                return Err(FilesystemError::Exists { path: to.to_string() });
            }
            (Lookup::BelowFile, _) => return Err(FilesystemError::NotDirectory { path: to.to_string() }),
            (Lookup::Nothing, Lookup::Directory(_)) => {}
            (Lookup::Nothing, _) => return Err(FilesystemError::NotFound { path: above.to_string() }),
        }
        if to.is_below(from) {
            let source =
                io::Error::new(io::ErrorKind::InvalidInput, "a directory cannot be moved into itself");
            return Err(FilesystemError::Io { path: to.to_string(), source });
        }
        if to.segments().count() + node.height() > self.limits.path_depth {
            let path = to.to_string();
            return Err(InvalidPath { path, reason: "the moved directory would be nested too deeply" }.into());
        }
        files.take(from);
        files.put(to, node);
        Ok(())
    }
}
