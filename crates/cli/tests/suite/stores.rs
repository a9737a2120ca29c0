//! The default location of stores, and sessions whose directories are moved.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::command::Ran;

/// The directories of a user: a state directory, and projects beside it.
struct User {
    directory: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let user = Self { directory: tempfile::tempdir().unwrap() };
        let write = json!({"name": "write_file", "arguments": {"path": "a.txt", "text": "one\n"}});
        user.script("script", &json!([{"calls": [write]}, {"text": "Done."}]));
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn script(&self, name: &str, replies: &Value) {
        let text = json!({"reply": replies}).to_string();
        std::fs::write(self.path(&format!("{name}.json")), text).unwrap();
    }

    fn project(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn repository(&self, name: &str) -> PathBuf {
        let path = self.project(name);
        git(&path, &["init", "-q"]);
        path
    }

    fn command(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
        command.current_dir(directory).args(arguments);
        command.env("XDG_STATE_HOME", self.path("state")).env_remove("BACKSTITCH_STORE");
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    fn run(&self, directory: &Path, arguments: &[&str]) -> Ran {
        ran(self.command(directory, arguments))
    }

    fn start(&self, directory: &Path) -> Ran {
        let model = format!("scripted:{}", self.path("script.json").display());
        self.run(directory, &["run", "Sew", "--model", &model])
    }

    fn sessions(&self, directory: &Path, more: &[&str]) -> Vec<Value> {
        let listed = self.run(directory, &[&["ls", "--json"], more].concat()).worked();
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn stores(&self) -> Vec<PathBuf> {
        let stores = std::fs::read_dir(self.path("state/backstitch/stores"));
        stores.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }
}

fn ran(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    ran(command).worked_quietly()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn each_project_has_a_store_of_its_own_outside_of_it() {
    let user = User::new();
    let (one, other) = (user.repository("one"), user.project("other"));
    let deep = one.join("deep/er");
    std::fs::create_dir_all(&deep).unwrap();
    user.start(&deep).worked_quietly();
    user.start(&other).worked_quietly();
    assert_eq!(user.stores().len(), 2);
    assert!(!one.join(".backstitch").exists() && !deep.join(".backstitch").exists());
    assert_eq!(
        git(&one, &["status", "--short", "--", ":!deep"]),
        "",
        "nothing of the store is in the project"
    );

    // The default session of a command is the latest one of this project.
    assert_eq!(user.sessions(&one, &[]).len(), 1);
    assert_eq!(user.sessions(&deep, &[])[0]["session"], user.sessions(&one, &[])[0]["session"]);
    assert_eq!(user.run(&other, &["resume"]).worked_quietly(), "Done.\n");
    let below = other.join("below");
    std::fs::create_dir(&below).unwrap();
    assert_eq!(
        user.sessions(&below, &[]).len(),
        1,
        "without a repository, the nearest directory that has one"
    );
    let nowhere = user.project("nowhere");
    assert!(user.run(&nowhere, &["ls"]).worked().contains("there are no sessions yet"));
    let refused = user.run(&nowhere, &["log"]).failed();
    assert!(refused.contains("--store") && refused.contains("ls --all"), "{refused}");

    let all = user.sessions(&nowhere, &["--all"]);
    let projects: Vec<_> = all.iter().map(|line| line["project"].as_str().unwrap()).collect();
    assert_eq!(projects, [one.to_str().unwrap(), other.to_str().unwrap()]);
    let text = user.run(&nowhere, &["ls", "--all"]).worked();
    assert!(text.contains(one.to_str().unwrap()) && text.contains(other.to_str().unwrap()), "{text}");
}

#[test]
fn a_command_of_the_agent_does_not_reach_the_store() {
    for command in ["git clean -fdxq", "rm -rf .backstitch *"] {
        let user = User::new();
        let project = user.repository("project");
        user.start(&project).worked_quietly();
        user.script(
            "script",
            &json!([{"calls": [{"name": "shell", "arguments": {"command": command}}]}, {"text": "Clean."}]),
        );
        assert_eq!(user.start(&project).worked_quietly(), "Clean.\n");
        assert_eq!(user.sessions(&project, &[]).len(), 2, "{command}");
        assert!(user.run(&project, &["verify"]).worked().contains("sound"));
    }
}

#[test]
fn directories_of_stores_are_private_under_any_umask() {
    for umask in ["000", "022", "077"] {
        let user = User::new();
        let project = user.project("project");
        let model = format!("scripted:{}", user.path("script.json").display());
        for store in [&[][..], &["--store", "../named/deep/store.db"]] {
            let mut command = Command::new("sh");
            let line = format!("umask {umask}; exec \"$0\" \"$@\"");
            command.args(["-c", &line, env!("CARGO_BIN_EXE_backstitch"), "run", "Sew", "--model", &model]);
            command.args(store).current_dir(&project).env("XDG_STATE_HOME", user.path("state"));
            ran(command).worked_quietly();
        }
        let made = ["state", "state/backstitch", "state/backstitch/stores", "named", "named/deep"];
        for path in made.iter().map(|name| user.path(name)).chain(user.stores()) {
            assert_eq!(mode(&path), 0o700, "{} with umask {umask}", path.display());
        }
        assert_eq!(mode(&user.stores()[0].join("project.json")), 0o600);
    }
}

#[test]
fn a_store_beside_the_files_is_used_and_kept_out_of_git() {
    let user = User::new();
    let project = user.repository("project");
    let model = format!("scripted:{}", user.path("script.json").display());
    user.run(&project, &["run", "Sew", "--model", &model, "--store", ".backstitch/store.db"])
        .worked_quietly();
    std::fs::remove_file(project.join(".backstitch/.gitignore")).unwrap();
    std::fs::set_permissions(project.join(".backstitch"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let deep = project.join("deep");
    std::fs::create_dir(&deep).unwrap();
    user.start(&deep).worked_quietly();
    assert!(user.stores().is_empty(), "the store that is there is used");
    assert_eq!(user.sessions(&deep, &[]).len(), 2);
    assert_eq!(mode(&project.join(".backstitch")), 0o700);

    git(&project, &["add", "-A"]);
    let staged = git(&project, &["status", "--short"]);
    assert!(!staged.contains("backstitch"), "{staged}");
    git(&project, &["clean", "-fdq"]);
    assert_eq!(user.sessions(&project, &[]).len(), 2);
}

#[test]
fn a_store_can_be_named() {
    let user = User::new();
    let project = user.project("project");
    let model = format!("scripted:{}", user.path("script.json").display());
    let mut command = user.command(&project, &["run", "Sew", "--model", &model]);
    command.env("BACKSTITCH_STORE", user.path("named/store.db"));
    ran(command).worked_quietly();
    assert!(user.stores().is_empty() && user.path("named/store.db").is_file());
    let named = user.path("named/store.db");
    assert_eq!(user.sessions(&project, &["--store", named.to_str().unwrap()]).len(), 1);
}

#[test]
fn a_state_directory_that_cannot_be_used_is_an_error_that_names_the_way_out() {
    let user = User::new();
    let project = user.project("project");
    let model = format!("scripted:{}", user.path("script.json").display());
    let arguments = ["run", "Sew", "--model", &model];
    let file = user.path("script.json");
    for state in [Some(file.as_path()), Some(Path::new("/proc/1/nothing")), None] {
        let mut command = user.command(&project, &arguments);
        match state {
            Some(state) => command.env("XDG_STATE_HOME", state),
            None => command.env_remove("XDG_STATE_HOME").env_remove("HOME"),
        };
        let refused = ran(command).failed();
        assert!(refused.contains("--store"), "{state:?}: {refused}");
    }
    assert!(!project.join("a.txt").exists());
}

#[test]
fn a_project_that_was_moved_is_found_and_nothing_is_made_where_it_was() {
    for repository in [true, false] {
        let user = User::new();
        let old = if repository { user.repository("old") } else { user.project("old") };
        user.start(&old).worked_quietly();
        let new = user.path("new");
        std::fs::rename(&old, &new).unwrap();
        let session = user.sessions(&new, &[])[0]["session"].as_str().unwrap().to_owned();
        let before = user.sessions(&new, &[])[0]["records"].clone();
        for arguments in
            [&["resume"][..], &["resume", &session], &["rewind", &session, "start"], &["undo", &session]]
        {
            let refused = user.run(&new, arguments).failed();
            assert!(refused.contains("--workspace DIR"), "{arguments:?}: {refused}");
            assert!(!old.exists(), "{arguments:?} made the directory again");
        }
        assert_eq!(user.sessions(&new, &[])[0]["records"], before, "nothing was recorded");

        std::fs::write(new.join("mine.txt"), "mine\n").unwrap();
        user.run(&new, &["rewind", &session, "start", "--workspace", "."]).worked_quietly();
        assert!(!new.join("a.txt").exists() && !old.exists());
        user.run(&new, &["undo", &session]).worked_quietly();
        assert_eq!(std::fs::read_to_string(new.join("a.txt")).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(new.join("mine.txt")).unwrap(), "mine\n");
        assert_eq!(user.run(&new, &["resume"]).worked_quietly(), "Done.\n");
        assert!(!old.exists());

        // Another project at the old path has a store of its own, and the moved one keeps its own.
        let another = user.project("old");
        user.start(&new).worked_quietly();
        user.start(&another).worked_quietly();
        assert_eq!((user.sessions(&new, &[]).len(), user.sessions(&another, &[]).len()), (2, 1));
    }
}

#[test]
fn a_session_continues_where_its_directory_is_now() {
    let user = User::new();
    let old = user.project("old");
    let write = json!({"name": "write_file", "arguments": {"path": "b.txt", "text": "two\n"}});
    user.script("script", &json!([{"calls": [write]}, {"text": "Done."}]));
    let model = format!("scripted:{}", user.path("script.json").display());
    let paused = user.run(&old, &["run", "Sew", "--model", &model, "--approve", "ask", "--json"]);
    assert_eq!(paused.code, Some(3), "{paused:?}");
    let paused: Value = serde_json::from_str(paused.output.lines().last().unwrap()).unwrap();
    let (session, call) = (paused["session"].as_str().unwrap(), paused["call"].as_str().unwrap());
    user.run(&old, &["resolve", session, call, "approve"]).worked();
    let new = user.path("new");
    std::fs::rename(&old, &new).unwrap();
    assert_eq!(user.run(&new, &["resume", "--workspace", "."]).worked_quietly(), "Done.\n");
    assert_eq!(std::fs::read_to_string(new.join("b.txt")).unwrap(), "two\n");
    assert!(!old.exists());
    // The new directory is used from then on, also after a rewind to a point before it was recorded.
    user.run(&new, &["rewind", session, "start"]).worked_quietly();
    assert!(!new.join("b.txt").exists() && !old.exists());
    user.run(&new, &["undo"]).worked_quietly();
    assert!(new.join("b.txt").exists() && !old.exists());
}

#[test]
fn a_store_in_a_project_of_another_person_is_not_used() {
    let user = User::new();
    let model = format!("scripted:{}", user.path("script.json").display());
    let theirs = user.repository("theirs");
    user.run(&theirs, &["run", "Sew", "--model", &model, "--store", ".backstitch/store.db"]).worked_quietly();
    // A clone: the same content in other files.
    let clone = user.repository("clone");
    std::fs::create_dir(clone.join(".backstitch")).unwrap();
    std::fs::copy(theirs.join(".backstitch/store.db"), clone.join(".backstitch/store.db")).unwrap();
    for arguments in [&["ls"][..], &["resume"], &["log"], &["run", "Sew", "--model", &model]] {
        let errors = user.run(&clone, arguments).called_wrongly();
        assert!(errors.contains("store.db in ") && errors.contains("code: not_trusted"), "{errors}");
    }
    assert_eq!(user.sessions(&clone, &["--trust"]).len(), 1);
    user.run(&clone, &["trust"]).worked();
    assert_eq!(user.sessions(&clone, &[]).len(), 1);
    std::fs::remove_file(clone.join(".backstitch/store.db")).unwrap();
    std::fs::copy(theirs.join(".backstitch/store.db"), clone.join(".backstitch/store.db")).unwrap();
    let errors = user.run(&clone, &["ls"]).called_wrongly();
    assert!(errors.contains("changed since you trusted it"), "{errors}");
}

#[test]
fn a_store_in_memory_ends_with_the_command() {
    let user = User::new();
    let project = user.project("project");
    let model = format!("scripted:{}", user.path("script.json").display());
    let ran = user.run(&project, &["run", "Sew", "--model", &model, "--store", "memory:"]);
    assert!(ran.worked_quietly().contains("Done."));
    assert_eq!(std::fs::read_to_string(project.join("a.txt")).unwrap(), "one\n");
    assert!(user.stores().is_empty() && !project.join("memory:").exists());
    assert_eq!(user.sessions(&project, &["--store", "memory:"]), Vec::<Value>::new());
    let verified = user.run(&project, &["verify", "--json", "--store", "memory:"]).worked_quietly();
    assert_eq!(serde_json::from_str::<Value>(&verified).unwrap()["sound"], true);
    // The copy would be lost before `apply` could use it.
    let isolated = ["run", "Sew", "--model", &model, "--isolated", "--store", "memory:"];
    let refused = user.run(&project, &isolated).called_wrongly();
    assert!(refused.contains("an isolated session needs a store that is a file"), "{refused}");
    // The settings of the user may name it too.
    std::fs::create_dir_all(user.path("config/backstitch")).unwrap();
    std::fs::write(user.path("config/backstitch/config.toml"), "store = \"memory:\"\n").unwrap();
    user.start(&project).worked_quietly();
    assert!(user.stores().is_empty() && !user.path("config/backstitch/memory:").exists());
}

#[test]
fn what_a_store_cannot_do_is_refused_with_a_hint() {
    let user = User::new();
    let project = user.project("project");
    let to = user.path("to.db");
    let to = to.to_str().unwrap();
    for arguments in [
        vec!["backup", to],
        vec!["salvage", to],
        vec!["query", "SELECT 1"],
        vec!["stats"],
        vec!["gc", "--keep-boundaries", "1"],
    ] {
        let refused = user.run(&project, &[&arguments[..], &["--store", "memory:"]].concat());
        assert_eq!(refused.code, Some(1), "{arguments:?}: {}", refused.errors);
        for part in
            ["a store in memory does not support", "hint: a store in a file supports it", "store_unsupported"]
        {
            assert!(refused.errors.contains(part), "{arguments:?}: {}", refused.errors);
        }
    }
    assert!(!Path::new(to).exists());
}

#[test]
fn a_store_of_an_unknown_kind_is_refused_without_its_password() {
    let user = User::new();
    let project = user.project("project");
    let model = format!("scripted:{}", user.path("script.json").display());
    for arguments in [vec!["ls"], vec!["verify"], vec!["run", "Sew", "--model", &model], vec!["backup", "x"]]
    {
        let address = ["--store", "mysql://me:secret@localhost/sessions"];
        let refused = user.run(&project, &[&arguments[..], &address].concat());
        assert_eq!(refused.code, Some(1), "{arguments:?}: {}", refused.errors);
        assert!(refused.errors.contains("begin with `mysql://` are not available"), "{}", refused.errors);
        assert!(refused.errors.contains("hint: name a file by its path"), "{}", refused.errors);
        assert!(refused.errors.contains("store_unsupported"), "{}", refused.errors);
        assert!(!refused.errors.contains("secret") && refused.output.is_empty(), "{}", refused.errors);
    }
    assert!(user.stores().is_empty() && std::fs::read_dir(&project).unwrap().next().is_none());
}
