//! A bare repository on disk.
//!
//! It is written under another name beside its path, and renamed once it is complete and synced. So there is
//! either a complete repository or none.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Objects, WorkspaceError};
use backstitch_filesystem::format::fetch;

use super::ExportError;
use super::clean::Content;
use super::pack::PackWriter;

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

pub(super) fn write(
    objects: &dyn Objects,
    contents: &[Content],
    repository: &Path,
    branch: &str,
    head: Option<ObjectId>,
) -> Result<(), ExportError> {
    let failed = |source| ExportError::Io { path: repository.display().to_string(), source };
    // An empty directory may exist, such as one made by `mktemp -d`.
    let taken = fs::symlink_metadata(repository).is_ok() && fs::remove_dir(repository).is_err();
    if taken {
        return Err(ExportError::Exists { path: repository.display().to_string() });
    }
    let partial = partial_path(repository);
    let written = fill(objects, contents, &partial, branch, head, &failed).and_then(|()| {
        fs::rename(&partial, repository).and_then(|()| sync_parent(repository)).map_err(failed)
    });
    written.inspect_err(|_| _ = fs::remove_dir_all(&partial))
}

/// The directory in which this process writes a repository before it gets its name.
pub fn partial_path(repository: &Path) -> PathBuf {
    let mut name = repository.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    repository.with_file_name(name)
}

fn fill(
    objects: &dyn Objects,
    contents: &[Content],
    partial: &Path,
    branch: &str,
    head: Option<ObjectId>,
    failed: &dyn Fn(io::Error) -> ExportError,
) -> Result<(), ExportError> {
    let packs = partial.join("objects/pack");
    let heads = partial.join("refs/heads");
    let reference = heads.join(branch);
    let mut directories = vec![packs.clone(), partial.join("objects/info"), partial.join("refs/tags")];
    directories.extend(reference.parent().map(Path::to_path_buf));
    for directory in &directories {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    if !contents.is_empty() {
        pack(objects, contents, &packs, failed)?;
    }
    let mut files: Vec<(PathBuf, String)> = vec![
        (partial.join("config"), CONFIG.to_owned()),
        (partial.join("description"), "A session of Backstitch.\n".to_owned()),
        (partial.join("HEAD"), format!("ref: refs/heads/{branch}\n")),
    ];
    files.extend(head.map(|head| (reference, format!("{head}\n"))));
    for (path, text) in files {
        write_synced(&path, text.as_bytes()).map_err(failed)?;
    }
    for directory in [&packs, &heads, &partial.join("objects"), &partial.join("refs"), &partial.to_path_buf()]
    {
        sync_directory(directory).map_err(failed)?;
    }
    Ok(())
}

fn pack(
    objects: &dyn Objects,
    contents: &[Content],
    packs: &Path,
    failed: &dyn Fn(io::Error) -> ExportError,
) -> Result<(), ExportError> {
    let count = u32::try_from(contents.len()).map_err(|_| WorkspaceError::Limit {
        reason: "there are too many objects for one pack".to_owned(),
    })?;
    let temporary = packs.join("new.pack");
    let file = File::create_new(&temporary).map_err(failed)?;
    let mut writer = PackWriter::new(BufWriter::new(file), count).map_err(failed)?;
    for content in contents {
        match content {
            Content::Made(object) => writer.add(object).map_err(failed)?,
            Content::Stored(id, kind) => writer.add(&fetch(objects, *id, *kind)?).map_err(failed)?,
        }
    }
    let (output, index) = writer.finish().map_err(failed)?;
    let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    write_synced(&packs.join(format!("{}.idx", index.name())), &index.to_bytes()).map_err(failed)?;
    fs::rename(&temporary, packs.join(format!("{}.pack", index.name()))).map_err(failed)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    // Only where a directory can be opened as a file.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
