//! Paths that may be written, and links that a process puts in their place.

use std::fs;
use std::path::PathBuf;

use backstitch_core::ports::{Sandbox, SandboxRefusal};
use backstitch_runtime::resolve_writable;

use crate::disk::Disk;
use crate::sandbox::{Scene, is_unsupported};

/// A scene with a home directory whose secrets nobody may write.
async fn scene() -> Scene {
    with_keys(Scene::new().await)
}

fn with_keys(scene: Scene) -> Scene {
    fs::create_dir_all(scene.at("home/.ssh")).unwrap();
    fs::create_dir_all(scene.at("home/.cache/pip")).unwrap();
    fs::write(scene.at("home/.ssh/authorized_keys"), "mine\n").unwrap();
    scene
}

/// The sandbox with its paths as a session has resolved them at its start, and as a program in Rust gives them.
fn forms(sandbox: Sandbox) -> [(&'static str, Sandbox); 2] {
    let mut resolved = sandbox.clone();
    resolve_writable(&mut resolved);
    [("resolved", resolved), ("given", sandbox)]
}

/// Runs a command that replaces a writable path, and then writes through it. Returns the error of the second.
async fn replace(scene: &Scene, sandbox: &Sandbox, command: &str) -> Option<String> {
    let write = "echo PWNED >> ~/.ssh/authorized_keys; echo PWNED > ~/.ssh/new";
    let specs = vec![scene.shell(sandbox, command), scene.shell(sandbox, write)];
    let mut outcomes = scene.run_all(specs).await;
    let second = outcomes.pop().unwrap();
    let first = outcomes.pop().unwrap().unwrap();
    assert!(first.success(), "{first:?}");
    assert_eq!(fs::read_to_string(scene.at("home/.ssh/authorized_keys")).unwrap(), "mine\n");
    assert!(!scene.at("home/.ssh/new").exists());
    second.err()
}

#[tokio::test]
async fn a_writable_path_that_became_a_link_stops_the_next_command() {
    if is_unsupported() {
        return;
    }
    for network in [true, false] {
        let first = scene().await;
        fs::create_dir(first.at("files/cache")).unwrap();
        let sandbox = Sandbox { network, ..Sandbox::workspace().write(first.at("files/cache")) };
        for (form, sandbox) in forms(sandbox) {
            let error = replace(&first, &sandbox, "rm -rf cache; ln -s ~/.ssh cache").await.unwrap();
            let words = if form == "resolved" { "is one now" } else { "leads through a link" };
            assert!(error.contains(words) && error.contains("files/cache"), "{form}: {error}");
            fs::remove_file(first.at("files/cache")).unwrap();
            fs::create_dir(first.at("files/cache")).unwrap();
        }
    }
}

#[tokio::test]
async fn a_link_above_a_writable_path_stops_the_next_command() {
    if is_unsupported() {
        return;
    }
    let scene = scene().await;
    fs::create_dir_all(scene.at("files/build/deep")).unwrap();
    fs::create_dir(scene.at("home/.ssh/deep")).unwrap();
    let sandbox = Sandbox::workspace().write(scene.at("files/build/deep"));
    let (_, resolved) = forms(sandbox)[0].clone();
    let error = replace(&scene, &resolved, "rm -rf build; ln -s ~/.ssh build").await.unwrap();
    assert!(
        error.contains("files/build was a directory when the session started and is a link now"),
        "{error}"
    );
}

#[tokio::test]
async fn a_path_that_did_not_exist_at_the_start_is_never_writable() {
    if is_unsupported() {
        return;
    }
    let scene = scene().await;
    let (_, resolved) = forms(Sandbox::workspace().write(scene.at("files/later")))[0].clone();
    assert_eq!(
        (resolved.write.len(), resolved.missing.as_deref()),
        (0, Some(&[scene.at("files/later")][..]))
    );
    assert_eq!(replace(&scene, &resolved, "ln -s ~/.ssh later").await, None);
    // As a program in Rust gives it.
    fs::remove_file(scene.at("files/later")).unwrap();
    let given = Sandbox::workspace().write(scene.at("files/later"));
    let error = replace(&scene, &given, "ln -s ~/.ssh later").await.unwrap();
    assert!(error.contains("leads through a link"), "{error}");
    // One that a person creates later is writable for the next session, and that is said.
    let outside = Sandbox::workspace().write(scene.at("home/.later"));
    let (_, resolved) = forms(outside)[0].clone();
    fs::create_dir(scene.at("home/.later")).unwrap();
    let outcome = scene.run(scene.shell(&resolved, "echo x > ~/.later/file")).await;
    assert_eq!(outcome.refused, [SandboxRefusal::Missing(scene.at("home/.later/file"))], "{outcome:?}");
    let text = outcome.refused[0].to_string();
    assert!(text.contains("did not exist when the session started"), "{text}");
}

#[tokio::test]
async fn nested_writable_paths_lead_nowhere_else() {
    if is_unsupported() {
        return;
    }
    let sandbox = |scene: &Scene| {
        Sandbox::workspace().write(scene.at("home/.cache")).write(scene.at("home/.cache/pip"))
    };
    for form in 0..2 {
        let scene = scene().await;
        let (_, sandbox) = forms(sandbox(&scene))[form].clone();
        let error =
            replace(&scene, &sandbox, "mv ~/.cache/pip ~/.cache/old; ln -s ~/.ssh ~/.cache/pip").await;
        assert!(error.unwrap().contains(".cache/pip"));
    }
}

#[tokio::test]
async fn a_workspace_that_became_a_link_stops_the_next_command() {
    if is_unsupported() {
        return;
    }
    let disk = Disk::with(|options| {
        let root = options.root.parent().unwrap().join("projects/x");
        fs::create_dir_all(&root).unwrap();
        options.root = root;
    });
    let scene = with_keys(Scene::over(disk).await);
    let sandbox = Sandbox::workspace().write(scene.at("projects"));
    let (_, resolved) = forms(sandbox)[0].clone();
    let error = replace(&scene, &resolved, "mv ../x ../y; ln -s ~/.ssh ../x").await.unwrap();
    assert!(error.contains("projects/x") && error.contains("is one now"), "{error}");
}

#[tokio::test]
async fn a_writable_path_that_is_gone_is_named() {
    if is_unsupported() {
        return;
    }
    let scene = scene().await;
    let (_, resolved) = forms(Sandbox::workspace().write(scene.at("home/.cache")))[0].clone();
    fs::remove_dir_all(scene.at("home/.cache")).unwrap();
    let error = scene.run_all(vec![scene.shell(&resolved, "true")]).await.remove(0).unwrap_err();
    assert!(error.contains("home/.cache") && error.contains("is gone now"), "{error}");
}

#[tokio::test]
async fn links_are_followed_when_a_session_starts() {
    if is_unsupported() {
        return;
    }
    let scene = scene().await;
    std::os::unix::fs::symlink(scene.at("home/.cache"), scene.at("cache")).unwrap();
    let given = Sandbox::workspace().write(scene.at("cache")).write(scene.at("home/.cache"));
    let (_, resolved) = forms(given)[0].clone();
    assert_eq!(resolved.write, [scene.at("home/.cache")] as [PathBuf; 1]);
    let outcome = scene.run(scene.shell(&resolved, "echo x > $BASE/cache/file")).await;
    assert!(outcome.success(), "{outcome:?}");
}
