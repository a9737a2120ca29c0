//! The conformance suite of filesystems and workspaces, on a host directory.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::ports::{Access, Filesystem, Workspace};
use backstitch_filesystem::FilePath;
use backstitch_testkit::filesystem::tree::Leaf;
use backstitch_testkit::filesystem::{Setup, Subject};
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

struct OnHost {
    workspace: HostWorkspace,
    root: PathBuf,
    _keep: TempDir,
}

impl Subject for OnHost {
    fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.workspace.filesystem()
    }

    fn workspace(&self) -> &dyn Workspace {
        &self.workspace
    }

    fn set_executable(&self, path: &FilePath, executable: bool) {
        let mode = if executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(self.root.join(path.as_str()), std::fs::Permissions::from_mode(mode))
            .unwrap();
    }

    fn place(&self, path: &FilePath, leaf: &Leaf) {
        let place = self.root.join(path.as_str());
        match leaf {
            Leaf::EmptyDirectory => std::fs::create_dir_all(place).unwrap(),
            Leaf::File { bytes, executable } => {
                std::fs::create_dir_all(place.parent().unwrap()).unwrap();
                std::fs::write(place, bytes).unwrap();
                self.set_executable(path, *executable);
            }
        }
    }
}

fn open(setup: Setup) -> Box<dyn Subject> {
    let keep = tempfile::tempdir().unwrap();
    let root = keep.path().join("work");
    std::fs::create_dir(&root).unwrap();
    let open = |access| {
        let mut options = OpenOptions::new(&root, keep.path().join("store"), setup.objects.clone());
        options.locks = Some(keep.path().join("locks"));
        options.limits = setup.limits;
        options.access = access;
        HostWorkspace::open(options).unwrap()
    };
    let workspace = open(Access::ReadWrite);
    let subject = OnHost { workspace, root: root.clone(), _keep: tempfile::tempdir().unwrap() };
    for (path, leaf) in &setup.tree {
        subject.place(&FilePath::new(path).unwrap(), leaf);
    }
    drop(subject);
    let workspace = open(setup.access);
    Box::new(OnHost { workspace, root, _keep: keep })
}

backstitch_testkit::filesystem_conformance!(open);
