//! What git executes in the repositories of a workspace is guarded, and ordinary work with git is not hurt.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use backstitch_core::ports::{
    FilesystemError, GuardMode, GuardOutcome, Recursion, RepositoryChange, Workspace as _, WriteMode,
};
use backstitch_workspace::HostWorkspace;

use crate::support::{Place, file_path as path};

/// The environment of scripts, without settings of this machine. Maintenance would outlast the script, with a lock in the repository.
const ENVIRONMENT: &str = "export HOME=$PWD/.. GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t \
     GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=init.defaultBranch \
     GIT_CONFIG_VALUE_0=main GIT_CONFIG_KEY_1=maintenance.auto GIT_CONFIG_VALUE_1=false; \
     exec > /dev/null 2>&1; ";

fn run(place: &Place, script: &str) {
    place.shell(&format!("{ENVIRONMENT}{script}"));
}

/// A project with a repository, and one commit.
fn project() -> Place {
    let place = Place::new();
    place.write("a", "a");
    place.git(&["init", "-q"]);
    commit(&place);
    place
}

fn commit(place: &Place) {
    place.git(&["add", "-A"]);
    place.git(&["commit", "-qm", "one"]);
}

/// Does what a call would do, and returns what was found after it.
fn call(place: &Place, workspace: &HostWorkspace, script: &str) -> Vec<RepositoryChange> {
    called(place, workspace, GuardMode::Restore, script)
}

fn called(place: &Place, workspace: &HostWorkspace, mode: GuardMode, script: &str) -> Vec<RepositoryChange> {
    place.store(workspace.capture().unwrap());
    workspace.guard_repositories().unwrap();
    run(place, script);
    place.store(workspace.capture().unwrap());
    let changes = workspace.check_repositories(mode).unwrap();
    // Everything was named once.
    assert_eq!(workspace.check_repositories(mode).unwrap(), []);
    changes
}

fn restored(changes: &[RepositoryChange]) -> Vec<&str> {
    let is_restored = |change: &&RepositoryChange| change.outcome == GuardOutcome::Restored;
    changes.iter().filter(is_restored).map(|change| change.path.as_str()).collect()
}

fn kept(changes: &[RepositoryChange]) -> Vec<String> {
    let is_kept = |change: &&RepositoryChange| change.outcome == GuardOutcome::Kept;
    changes
        .iter()
        .filter(is_kept)
        .map(|change| format!("{}: {}", change.path, change.keys.join(" ")))
        .collect()
}

#[test]
fn tools_for_files_refuse_repositories_whichever_way_one_comes() {
    let place = project();
    place.link("direct", ".git");
    place.link("file", ".git/config");
    place.git(&["init", "-q", "--separate-git-dir", "elsewhere", "sub"]);
    let workspace = place.open();
    let files = workspace.filesystem();
    let before = place.picture();
    for name in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/info/attributes",
        ".git/new/x",
        ".GIT/config",
        "new/.git/config",
        "new/.git",
        "direct/config",
        "direct/new/x",
        "file",
        "sub/.git",
        "elsewhere/config",
        "elsewhere/hooks/pre-commit",
    ] {
        for mode in [WriteMode::Create, WriteMode::Overwrite, WriteMode::Append] {
            let refused = files.write_bytes(&path(name), b"x", mode);
            // A link at the end is not followed by `create`.
            let exists = name == "file" && matches!(refused, Err(FilesystemError::Exists { .. }));
            assert!(
                exists || matches!(refused, Err(FilesystemError::Repository { .. })),
                "{name}: {refused:?}"
            );
        }
    }
    for refused in [
        files.delete(&path(".git"), Recursion::All),
        files.delete(&path("direct/config"), Recursion::None),
        files.delete(&path("elsewhere/config"), Recursion::None),
        files.rename(&path(".git"), &path("moved")),
        files.rename(&path("a"), &path("b/.git")),
        files.rename(&path("a"), &path("direct/hooks/pre-commit")),
        files.make_directory(&path(".git/hooks/x")),
        files.make_directory(&path("direct/x")),
    ] {
        assert!(matches!(refused, Err(FilesystemError::Repository { .. })), "{refused:?}");
    }
    assert_eq!(place.picture(), before);
    // Reading is allowed, and so is everything beside.
    assert!(files.read_bytes(&path(".git/config")).is_ok());
    files.write_bytes(&path(".gitignore"), b"x", WriteMode::Create).unwrap();
    files.write_bytes(&path("sub/b"), b"x", WriteMode::Create).unwrap();
}

#[test]
fn settings_and_hooks_that_run_programs_are_restored_and_named() {
    for (script, named) in [
        ("git config core.fsmonitor 'touch x'", ".git/config"),
        ("printf '[core]\\n\\thooksPath = x\\n' >> .git/config", ".git/config"),
        ("rm .git/config; ln -s ../a .git/config", ".git/config"),
        ("echo '[broken' >> .git/config", ".git/config"),
        ("printf '[core]\\nfsmonitor=x\\n' > .git/config.worktree", ".git/config.worktree"),
        ("echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("rm -r .git/hooks; mkdir h; echo x > h/pre-commit; ln -s ../h .git/hooks", ".git/hooks"),
        ("mkdir -p .git/hooks/a/b; echo x > .git/hooks/a/b/c", ".git/hooks/a/b/c"),
        ("echo '* filter=x' > .git/info/attributes", ".git/info/attributes"),
        ("mkdir e; echo ../e > .git/commondir", ".git/commondir"),
    ] {
        let place = project();
        let workspace = place.open();
        let before = fs::read(place.path(".git/config")).unwrap();
        let changes = call(&place, &workspace, script);
        assert_eq!(restored(&changes), [named], "{script}: {changes:?}");
        assert_eq!(fs::read(place.path(".git/config")).unwrap(), before, "{script}");
        assert!(!place.path(".git/hooks/pre-commit").exists(), "{script}");
        place.git(&["status"]);
    }
}

#[test]
fn what_was_there_before_stays_and_comes_again() {
    let place = project();
    place.git(&["config", "core.fsmonitor", "false"]);
    place.write(".git/hooks/pre-commit", "#!/bin/sh\n");
    place.mode(".git/hooks/pre-commit", 0o755);
    let workspace = place.open();
    assert_eq!(call(&place, &workspace, "true"), []);
    let changes = call(&place, &workspace, "rm -r .git/hooks; git config --unset core.fsmonitor");
    assert_eq!(restored(&changes), [".git/config", ".git/hooks/pre-commit"]);
    assert_eq!(changes[0].keys, ["core.fsmonitor"]);
    assert_eq!(fs::read_to_string(place.path(".git/hooks/pre-commit")).unwrap(), "#!/bin/sh\n");
    let mode = fs::metadata(place.path(".git/hooks/pre-commit")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    // A moved repository is the same one.
    let changes = call(&place, &workspace, "mkdir in; mv .git in/.git");
    assert_eq!(kept(&changes), [".git: "], "{changes:?}");
}

#[test]
fn ordinary_work_with_git_is_kept_and_only_named_where_settings_change() {
    let place = project();
    let other = Place::new();
    other.write("b", "b");
    other.git(&["init", "-q"]);
    commit(&other);
    let from = other.root.display();
    let workspace = place.open();
    for script in [
        "echo c > c; git add -A; git commit -qm two; git branch x; git checkout -q x; git tag t",
        "git checkout -q main; git merge -q x; git rebase -q main; git stash list; git gc -q",
        "git init -q new; cd new; git config user.email a@b; echo 1 > f; git add f",
        &format!("git clone -q {from} cloned"),
        "git worktree add -q tree x; cd tree; git status",
        "git init -q --bare bare.git",
        "git sparse-checkout set --no-cone '/*'; git sparse-checkout disable; git config --unset-all core.sparseCheckout || :",
    ] {
        let changes = call(&place, &workspace, script);
        assert_eq!(restored(&changes), [] as [&str; 0], "{script}: {changes:?}");
    }
    let changes = call(
        &place,
        &workspace,
        &format!("git remote add origin {from}; git fetch -q origin; git checkout -qb y origin/main"),
    );
    let keys = ".git/config: branch.y.merge branch.y.remote remote.origin.fetch remote.origin.url";
    assert_eq!(kept(&changes), [keys]);
    let changes = call(&place, &workspace, "git config user.name Ada");
    assert_eq!(kept(&changes), [".git/config: user.name"]);
    assert_eq!(place.git(&["config", "--local", "user.name"]), "Ada");
}

#[test]
fn submodules_and_worktrees_are_guarded_too() {
    let place = project();
    let other = Place::new();
    other.write("b", "b");
    other.git(&["init", "-q"]);
    commit(&other);
    let workspace = place.open();
    let add = format!("git -c protocol.file.allow=always submodule --quiet add {} sub", other.root.display());
    let changes = call(&place, &workspace, &add);
    assert_eq!(restored(&changes), [] as [&str; 0], "{changes:?}");
    call(&place, &workspace, "git worktree add -q tree");
    let changes = call(
        &place,
        &workspace,
        "git -C sub config core.sshCommand x; echo x > .git/modules/sub/hooks/post-checkout; \
         printf '[core]\\nfsmonitor = x\\n' > .git/worktrees/tree/config.worktree; echo ../../../e > .git/worktrees/tree/commondir; \
         echo 'gitdir: ../e' > sub/.git",
    );
    assert_eq!(
        restored(&changes),
        [
            ".git/modules/sub/config",
            ".git/modules/sub/hooks/post-checkout",
            ".git/worktrees/tree/commondir",
            ".git/worktrees/tree/config.worktree",
            "sub/.git"
        ],
        "{changes:?}"
    );
    place.git(&["-C", "sub", "status"]);
    place.git(&["-C", "tree", "status"]);
}

#[test]
fn new_repositories_lose_what_would_run_whatever_they_are_called() {
    let place = project();
    place.directory("outside-of-git");
    let workspace = place.open();
    for (script, at) in [
        (
            "git init -q n; git -C n config core.fsmonitor 'touch x'; git -C n config user.name N",
            "n/.git/config",
        ),
        ("git init -q --bare m; git -C m config core.fsmonitor 'touch x'", "m/config"),
        ("git init -q --separate-git-dir o p; git -C p config alias.st '!touch x'", "o/config"),
        ("git init -q q; echo x > q/.git/hooks/pre-commit", "q/.git/hooks/pre-commit"),
        ("git init -q --bare .git/evil; git -C .git/evil config core.fsmonitor x", ".git/evil/config"),
        ("mkdir r; printf 'gitdir: /tmp/elsewhere' > r/.git", "r/.git"),
        ("mkdir s; ln -s /tmp/elsewhere s/.git", "s/.git"),
    ] {
        let changes = call(&place, &workspace, script);
        assert_eq!(restored(&changes), [at], "{script}: {changes:?}");
    }
    assert!(place.path("n/.git").exists() && !place.path("r/.git").exists());
    assert_eq!(place.git(&["-C", "n", "config", "--local", "user.name"]), "N");
    place.git(&["-C", "n", "status"]);
}

#[test]
fn a_repository_in_the_place_of_another_runs_nothing_new() {
    let place = project();
    let workspace = place.open();
    let evil = "git init -q evil; git -C evil config core.fsmonitor 'touch x'; mv .git away; ";
    for (more, undo) in [
        ("mv evil/.git .git", "rm -rf .git evil; mv away .git"),
        ("ln -s evil/.git .git", "rm -rf .git evil; mv away .git"),
        ("echo 'gitdir: evil/.git' > .git", "rm -rf .git evil; mv away .git"),
    ] {
        let changes = call(&place, &workspace, &format!("{evil}{more}"));
        assert!(!restored(&changes).is_empty(), "{more}: {changes:?}");
        run(&place, "git status; test ! -e x");
        run(&place, undo);
    }
}

#[test]
fn what_a_person_approved_stays_and_is_named() {
    let place = project();
    let workspace = place.open();
    let changes = called(&place, &workspace, GuardMode::Keep, "git config core.hooksPath hooks");
    assert_eq!(kept(&changes), [".git/config: core.hookspath"]);
    assert_eq!(place.git(&["config", "core.hooksPath"]), "hooks");
    assert_eq!(call(&place, &workspace, "true"), []);
}

#[test]
fn the_next_process_restores_what_an_interrupted_call_changed() {
    let place = project();
    let workspace = place.open();
    place.store(workspace.capture().unwrap());
    workspace.guard_repositories().unwrap();
    run(&place, "git config core.fsmonitor 'touch x'; git config user.name N");
    drop(workspace);
    let mode = GuardMode::Recover { kept_since: None };
    let changes = place.open().check_repositories(mode).unwrap();
    assert_eq!(restored(&changes), [".git/config"]);
    let state = fs::read_dir(place.above.join("store/workspaces")).unwrap();
    for file in
        state.map(|file| file.unwrap().path()).filter(|file| file.extension().is_some_and(|end| end == "git"))
    {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_a_person_changed_after_an_interrupted_call_stays_and_is_named() {
    let place = project();
    let workspace = place.open();
    place.store(workspace.capture().unwrap());
    workspace.guard_repositories().unwrap();
    run(&place, "git config core.fsmonitor 'touch x'");
    drop(workspace);
    let changed = fs::metadata(place.path(".git/config")).unwrap();
    let dead = changed.ctime() * 1_000_000_000 + changed.ctime_nsec();
    // More than a tick of the system later.
    std::thread::sleep(std::time::Duration::from_millis(50));
    run(&place, "echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let mode = GuardMode::Recover { kept_since: Some(dead) };
    let changes = place.open().check_repositories(mode).unwrap();
    assert_eq!(restored(&changes), [".git/config"]);
    assert_eq!(kept(&changes), [".git/hooks/pre-commit: "]);
    assert_eq!(fs::read_to_string(place.path(".git/hooks/pre-commit")).unwrap(), "x\n");
}

#[test]
fn nothing_outside_of_the_workspace_is_written() {
    let place = Place::new();
    let outside = Place::new();
    outside.git(&["init", "-q"]);
    symlink(outside.path(".git"), place.path(".git")).unwrap();
    let workspace = place.open();
    place.store(workspace.capture().unwrap());
    workspace.guard_repositories().unwrap();
    outside.git(&["config", "core.fsmonitor", "x"]);
    let before = fs::read(outside.path(".git/config")).unwrap();
    assert_eq!(workspace.check_repositories(GuardMode::Restore).unwrap(), []);
    assert_eq!(fs::read(outside.path(".git/config")).unwrap(), before);
}

#[test]
fn moves_of_the_repository_are_found_and_a_refreshed_index_is_none() {
    let place = project();
    let workspace = place.open();
    let captured = workspace.capture().unwrap();
    let coverage = captured.coverage.as_ref().map(|object| object.id());
    place.store(captured.clone());
    let stored = captured.coverage.unwrap();
    place.objects.0.lock().unwrap().insert(stored.id(), stored);
    run(&place, "touch a; git status; git update-index -q --refresh; git gc -q; git pack-refs --all");
    assert_eq!(workspace.repository_moves(coverage).unwrap(), Vec::<String>::new());
    for script in [
        "echo 1 > b; git add b",
        "git rm -q --cached b",
        "git commit -q --allow-empty -m two",
        "git branch x",
        "git checkout -q x",
        "git worktree add -q tree main",
    ] {
        let captured = workspace.capture().unwrap();
        let coverage = captured.coverage.clone().unwrap();
        place.store(captured);
        place.objects.0.lock().unwrap().insert(coverage.id(), coverage.clone());
        assert_eq!(workspace.repository_moves(Some(coverage.id())).unwrap(), Vec::<String>::new());
        run(&place, script);
        assert_ne!(
            workspace.repository_moves(Some(coverage.id())).unwrap(),
            Vec::<String>::new(),
            "{script}"
        );
    }
}
