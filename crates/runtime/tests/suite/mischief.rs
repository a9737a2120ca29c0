//! Everything that a real program does to a real directory before its call fails is rolled back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstitch_core::execution::{SnapshotMetadata, snapshots_equivalent};
use backstitch_core::journal::Effect;
use backstitch_core::ports::{Filesystem, ProcessSpec, Recursion, Workspace, WriteMode};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult};
use backstitch_filesystem::{FileOperations, FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{CallOutcome, ToolRunner, Tools};
use backstitch_store::MemoryStore;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::disk::Disk;
use crate::findings::Finding;
use crate::harness::Harness;

/// How a call ends after its changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Error,
    Unsuccessful,
    Panic,
    Timeout,
    Cancelled,
    Expansion,
}

const ENDS: [End; 6] =
    [End::Error, End::Unsuccessful, End::Panic, End::Timeout, End::Cancelled, End::Expansion];

async fn come_to(end: End, cancel: CancellationToken) -> Result<ToolResult, ToolError> {
    match end {
        End::Error => Err(ToolError::new("no")),
        End::Unsuccessful => Ok(ToolResult::failed("no")),
        End::Panic => panic!("no"),
        End::Expansion => Err(ToolError::VisibilityExpansionRequired {
            sections: vec!["details".into()],
            reason: "they are closed".into(),
        }),
        End::Cancelled => {
            cancel.cancel();
            std::future::pending().await
        }
        End::Timeout => std::future::pending().await,
    }
}

/// Mode and content of everything below a directory, by path.
fn picture(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = match meta.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                kind if kind.is_dir() => Vec::new(),
                _ => fs::read(&path).unwrap(),
            };
            if meta.is_dir() {
                open.push(path.clone());
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, (meta.permissions().mode(), content));
        }
    }
    found
}

/// Runs git without automatic maintenance, which would continue after it, with a lock in the repository.
fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]);
    command.args(["-c", "maintenance.auto=false"]);
    let output = command.args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A directory with entries of every kind.
fn furnished() -> Disk {
    let disk = Disk::new();
    let write = |path: &str, text: &str| {
        fs::create_dir_all(disk.path(path).parent().unwrap()).unwrap();
        fs::write(disk.path(path), text).unwrap();
    };
    write("file.txt", "original");
    write("directory/below/deep.txt", "deep");
    write("directory/script", "#!/bin/sh\n");
    fs::set_permissions(disk.path("directory/script"), fs::Permissions::from_mode(0o755)).unwrap();
    write("secret", "for me alone");
    fs::set_permissions(disk.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(disk.path("empty")).unwrap();
    symlink("file.txt", disk.path("link")).unwrap();
    write(".gitignore", "ignored/\n*.log\n");
    write("ignored/artefact", "built");
    write("run.log", "ran");
    fs::create_dir(disk.path("nested")).unwrap();
    git(&disk.path("nested"), &["init", "-q"]);
    write("nested/inner.txt", "inner");
    git(&disk.path("nested"), &["add", "."]);
    git(&disk.path("nested"), &["commit", "-q", "-m", "first"]);
    disk
}

/// Changes that a shell can make, with their scripts.
const MISCHIEF: [(&str, &str); 12] = [
    ("wrote and deleted", "echo changed > file.txt; echo new > new.txt; rm directory/below/deep.txt"),
    ("deleted a directory", "rm -r directory empty"),
    (
        "changed modes",
        "chmod 600 file.txt; chmod 644 directory/script secret; chmod 700 directory; chmod 777 empty",
    ),
    ("made things unreadable", "chmod 000 file.txt directory/below"),
    ("replaced a file by a link", "rm file.txt; ln -s /etc/passwd file.txt; ln -sfn nowhere link"),
    ("replaced a directory by a link", "rm -r directory; ln -s / directory"),
    ("made a thousand files", "mkdir many; i=0; while [ $i -lt 1000 ]; do : > many/$i; i=$((i+1)); done"),
    (
        "changed a nested repository",
        "cd nested && echo more >> inner.txt && git -c user.name=a -c user.email=a@example.org -c maintenance.auto=false commit -qam second && git checkout -q -b other && rm -f .git/description",
    ),
    ("deleted a nested repository", "rm -rf nested/.git"),
    ("touched ignored files", "echo more >> ignored/artefact; rm run.log; echo new > ignored/other.log"),
    ("left special files", "mkfifo pipe; mkdir -p deep/er/and/er; ln file.txt hard"),
    ("replaced everything", "rm -rf -- * .gitignore; mkdir file.txt; echo file > directory"),
];

fn shell(name: &str, script: &'static str, end: End, cancel: &CancellationToken) -> Tool {
    let builder = Tool::builder(name, "Runs a command.").unwrap().effect(Effect::Workspace);
    let timeout = if end == End::Timeout { Duration::from_secs(1) } else { Duration::from_secs(60) };
    let cancel = cancel.clone();
    builder.timeout(timeout).handler(move |context: ToolContext, (): ()| {
        let cancel = cancel.clone();
        async move {
            context.session(|draft| draft.append(Finding("half done".into())).map(drop))??;
            // One change through the filesystem of the tool, the rest by a process.
            context.filesystem()?.write_bytes(&FilePath::new("own.txt")?, b"own", WriteMode::Create)?;
            let outcome = context.run_process(ProcessSpec::shell(script)).await?;
            assert!(outcome.success(), "{script}: {}", outcome.stderr.text());
            come_to(end, cancel).await
        }
    })
}

/// Runs a tool that fails, and asserts that only its error remains.
async fn assert_traceless(harness: &Harness, tool: Tool, end: End, cancel: CancellationToken, what: &str) {
    let name = tool.name().as_str().to_owned();
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([tool]).unwrap()).with_cancellation(cancel);
    let call = harness.call(&name, json!({})).await;
    let (before, messages) = {
        let state = harness.live.state().await;
        let messages = state.view.transcript().unwrap().all().len();
        (state.snapshot(SnapshotMetadata::default()).unwrap(), messages)
    };
    let ended = runner.run(call).await.unwrap();
    let state = harness.live.state().await;
    let transcript = state.view.transcript().unwrap();
    let said = &transcript.all().iter().skip(messages).cloned().collect::<Vec<_>>();
    match (end, &ended) {
        (End::Expansion, CallOutcome::VisibilityExpansion { .. }) => assert!(said.is_empty(), "{what}"),
        (End::Cancelled, CallOutcome::Cancelled(_)) | (_, CallOutcome::Failed(_)) => {
            assert_eq!(said.len(), 1, "{what}");
            assert!(said[0].message.option_result().unwrap().is_error, "{what}");
        }
        _ => panic!("{what}: {ended:?}"),
    }
    let mut after = state.snapshot(SnapshotMetadata::default()).unwrap();
    // The transcript has the error; all else is compared by content.
    after.session = before.session.clone();
    assert!(snapshots_equivalent(&before, &after).unwrap(), "{what}");
    assert_eq!(state.session.all::<Finding>().unwrap().len(), 0, "{what}");
}

#[tokio::test]
async fn whatever_a_shell_did_to_a_directory_is_undone() {
    let disk = furnished();
    let before = picture(&disk.path(""));
    let harness = disk.harness(vec![]).await;
    for (number, (what, script)) in MISCHIEF.into_iter().enumerate() {
        // Each change with two of the ends.
        for end in [ENDS[number % ENDS.len()], ENDS[(number + 1 + number / ENDS.len()) % ENDS.len()]] {
            let (cancel, what) = (CancellationToken::new(), format!("{what}, then {end:?}"));
            let tool = shell("shell", script, end, &cancel);
            assert_traceless(&harness, tool, end, cancel, &what).await;
            assert_eq!(picture(&disk.path("")), before, "{what}");
        }
    }
    git(&disk.path("nested"), &["fsck", "--strict"]);
    git(&disk.path("nested"), &["diff", "--exit-code"]);
}

#[tokio::test]
async fn whatever_a_tool_did_to_files_in_memory_is_undone() {
    let store = Arc::new(MemoryStore::new());
    let files = Arc::new(MemoryFilesystem::new());
    for path in ["file.txt", "directory/below/deep.txt", ".gitignore", "nested/.git/HEAD", "ignored/artefact"]
    {
        files.write_bytes(&FilePath::new(path).unwrap(), path.as_bytes(), WriteMode::Create).unwrap();
    }
    files.make_directory(&FilePath::new("empty").unwrap()).unwrap();
    let before = files.snapshot();
    let workspace = Arc::new(MemoryWorkspace::new(files.clone(), store.clone()));
    let harness = Harness::over(store, vec![], Some(workspace)).await;
    type Mischief = fn(&dyn Filesystem, &MemoryFilesystem);
    let mischief: [(&str, Mischief); 6] = [
        ("wrote", |files, _| files.write_bytes(&path("new/deep"), b"new", WriteMode::Create).unwrap()),
        ("deleted a directory", |files, _| files.delete(&path("directory"), Recursion::All).unwrap()),
        ("changed a mode", |_, memory| memory.set_executable(&path("file.txt"), true).unwrap()),
        ("made a thousand files", |files, _| {
            for number in 0..1_000 {
                files.write_bytes(&path(&format!("many/{number}")), b"x", WriteMode::Create).unwrap();
            }
        }),
        ("changed a nested repository", |files, _| {
            files.write_bytes(&path("nested/.git/HEAD"), b"elsewhere", WriteMode::Overwrite).unwrap();
            files.delete(&path("ignored"), Recursion::All).unwrap();
        }),
        ("replaced everything behind its back", |_, memory| memory.restore(Default::default())),
    ];
    for (what, mischief) in mischief {
        for end in ENDS {
            let (cancel, what) = (CancellationToken::new(), format!("{what}, then {end:?}"));
            let builder = Tool::builder("mess", "Makes a mess.").unwrap().effect(Effect::Workspace);
            let (memory, stop) = (files.clone(), cancel.clone());
            let timeout = Duration::from_millis(if end == End::Timeout { 100 } else { 300_000 });
            let tool = builder.timeout(timeout).handler(move |context: ToolContext, (): ()| {
                let (memory, stop) = (memory.clone(), stop.clone());
                async move {
                    context.session(|draft| draft.append(Finding("half done".into())).map(drop))??;
                    mischief(&*context.filesystem()?, &memory);
                    come_to(end, stop).await
                }
            });
            assert_traceless(&harness, tool, end, cancel, &what).await;
            assert_eq!(files.snapshot(), before, "{what}");
        }
    }
}

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_are_swapped_in_while_a_tool_writes_lead_nowhere() {
    let disk = Disk::new();
    fs::create_dir(disk.path("real")).unwrap();
    fs::write(disk.path("real/file"), "inside").unwrap();
    let outside = disk.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    symlink(&outside, disk.path("link")).unwrap();
    let before = (picture(&disk.path("")), picture(&outside));
    let root = disk.path("");
    let builder = Tool::builder("swap", "Writes while links are swapped.").unwrap().effect(Effect::Workspace);
    let tool = builder.timeout(Duration::from_secs(60)).handler(move |context: ToolContext, (): ()| {
        let root = root.clone();
        async move {
            let files = context.filesystem()?;
            tokio::task::spawn_blocking(move || {
                let done = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while !done.load(Ordering::SeqCst) {
                            // The directory and the link are exchanged atomically.
                            let (real, link) = (root.join("real"), root.join("link"));
                            renameat_with(CWD, real, CWD, link, RenameFlags::EXCHANGE).unwrap();
                        }
                    });
                    for number in 0..400 {
                        let name = path(&format!("real/{number}"));
                        let _ = files.write_bytes(&name, b"written", WriteMode::Create);
                        let _ = files.write_bytes(&path("real/file"), b"changed", WriteMode::Overwrite);
                        if let Ok(text) = files.read_text(&path("real/file")) {
                            assert_ne!(text, "outside", "nothing is read from outside");
                        }
                        let _ = files.delete(&name, Recursion::None);
                        let _ = files.rename(&path("real/file"), &path("real/file2"));
                        let _ = files.rename(&path("real/file2"), &path("real/file"));
                        let _ = files.list(&path("real")).map(|entries| {
                            assert!(entries.len() < 1_000, "nothing is listed from outside");
                        });
                    }
                    done.store(true, Ordering::SeqCst);
                });
            })
            .await
            .map_err(ToolError::from)?;
            Err(ToolError::new("enough"))
        }
    });
    let harness = disk.harness(vec![tool]).await;
    let end = harness.run("swap", json!({})).await;
    assert!(matches!(end, CallOutcome::Failed(_)), "{end:?}");
    assert_eq!(
        end.message().unwrap().message.option_result().unwrap().error_message.as_deref(),
        Some("enough")
    );
    assert_eq!((picture(&disk.path("")), picture(&outside)), before);
}

#[tokio::test]
async fn hostile_paths_are_refused_and_lead_nowhere() {
    let disk = Disk::new();
    let outside = disk.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, disk.path("out")).unwrap();
    symlink("..", disk.path("up")).unwrap();
    let builder = Tool::builder("try", "Tries.").unwrap().effect(Effect::Workspace);
    let tool = builder.handler(|context: ToolContext, (): ()| async move {
        let files = context.filesystem()?;
        let absolute = std::env::temp_dir().join("hostile");
        let plain = ["../x", "a/../../x", "/etc/passwd", absolute.to_str().unwrap(), "a\0b", "..", "a/.."];
        for text in plain {
            assert!(FilePath::new(text).is_err(), "{text:?}");
        }
        for text in ["out/x", "up/outside/x", "up/x", "out/../x2"] {
            let Ok(path) = FilePath::new(text) else { continue };
            assert!(files.write_bytes(&path, b"x", WriteMode::Create).is_err(), "{text}");
            assert!(files.make_directory(&path).is_err(), "{text}");
            assert!(files.read_bytes(&path).is_err(), "{text}");
        }
        Ok(ToolResult::ok("refused"))
    });
    let harness = disk.harness(vec![tool]).await;
    let end = harness.run("try", json!({})).await;
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    assert!(picture(&outside).is_empty());
    assert_eq!(disk.workspace.filesystem().list(&FilePath::root()).unwrap().len(), 2);
}
