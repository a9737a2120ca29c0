//! Sessions that are killed, and continued by workers with other state directories and checkouts, as on other machines.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{last_line, signal, wait_until};

/// The most calls of an evaluation.
const CALLS: u32 = 5;

/// Number of kills of each session.
fn kills() -> u32 {
    std::env::var("BACKSTITCH_MOVE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(25)
}

/// Machines that share a store.
struct Machines {
    directory: tempfile::TempDir,
    store: String,
    #[cfg(feature = "postgres")]
    _server: Option<backstitch_testkit::postgres::TestServer>,
}

impl Machines {
    /// Machines with a store in a file.
    fn with_file() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store/store.db").to_str().unwrap().to_owned();
        std::fs::create_dir(directory.path().join("project")).unwrap();
        Self {
            directory,
            store,
            #[cfg(feature = "postgres")]
            _server: None,
        }
    }

    /// Machines with a store in a server.
    #[cfg(feature = "postgres")]
    fn with_server() -> Option<Self> {
        let server = backstitch_testkit::postgres::server()?;
        Some(Self { store: server.address(), _server: Some(server), ..Self::with_file() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn command(&self, machine: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BACKSTITCH_")) {
            command.env_remove(name);
        }
        command.current_dir(self.path("project")).args(arguments).args(["--store", &self.store]);
        command.env("XDG_STATE_HOME", self.path(machine)).env("XDG_CONFIG_HOME", self.path("config"));
        command.stdin(Stdio::null());
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command("home", &[arguments, &["--json"]].concat()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        last_line(&text)
    }

    /// Enqueues a session in the project, and returns its id.
    fn enqueue(&self, more: &[&str]) -> String {
        let model = format!("scripted:{}", self.path("script.json").display());
        let first =
            ["enqueue", "Do it", "--sandbox", "off", "--shell-effect", "workspace", "--model", &model];
        self.json(&[&first[..], more].concat())["session"].as_str().unwrap().to_owned()
    }

    fn events(&self, machine: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(&format!("{machine}.events"))).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Starts a worker, and returns it once it has taken a session.
    fn worker(&self, machine: &str, more: &[&str]) -> Child {
        let arguments = [&["worker", "--poll", "1", "--retries", "100", "--json"], more].concat();
        let file = |kind: &str| std::fs::File::create(self.path(&format!("{machine}.{kind}"))).unwrap();
        let mut command = self.command(machine, &arguments);
        let worker = command.stdout(file("events")).stderr(file("errors")).spawn().unwrap();
        wait_until("the claim", || self.events(machine).iter().any(|one| one["event"] == "taken"));
        worker
    }

    /// Returns why the session rested, each time that a worker released it.
    fn rests(&self, machine: &str) -> Vec<Value> {
        let events = self.events(machine).into_iter();
        events.filter(|one| one["event"] == "rested").map(|one| one["rest"].clone()).collect()
    }

    /// Lets a worker finish the session, and ends it.
    fn finish(&self, machine: &str, session: &str, more: &[&str]) {
        let mut worker = self.worker(machine, more);
        let mut decided = 0;
        wait_until("the answer", || {
            let rests = self.rests(machine);
            match rests.last() {
                Some(rest) if rest["kind"] == "finished" => return true,
                Some(_) if rests.len() > decided => {
                    self.retry_calls(session);
                    decided = rests.len();
                }
                _ => {}
            }
            false
        });
        signal(&worker, "TERM");
        worker.wait().unwrap();
    }

    /// Returns the directory that a session works in now.
    fn directory_of(&self, session: &str) -> PathBuf {
        let listed = self.json(&["ls"]);
        assert_eq!(listed["session"], session);
        PathBuf::from(listed["workspace"].as_str().unwrap())
    }

    /// Decides that a call runs again that was interrupted so often that a worker waits for a person.
    fn retry_calls(&self, session: &str) {
        let output = self.command("home", &["inbox", "--here", "--json"]).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        for pending in output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            for call in pending["decisions"].as_array().unwrap().iter().filter_map(|one| one["call"].as_str())
            {
                let done = self.command("home", &["resolve", session, call, "retry"]).output().unwrap();
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            }
        }
    }
}

/// Kinds, modes and contents of all files in a directory, by their paths.
fn picture(directory: &Path) -> BTreeMap<String, (u32, String)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode();
            let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                open.push(path.clone());
            }
            found.insert(name, (mode, std::fs::read_to_string(&path).unwrap_or_default()));
        }
    }
    found
}

/// Writes a script in which each call changes files in a way that shows if it happened twice, or by halves.
fn write_script(machines: &Machines, evaluations: u32) {
    let mut replies = Vec::new();
    for call in 0..evaluations * CALLS {
        let command = format!(
            "echo {call} >> log.txt; mkdir -p d/{call}; echo half > d/{call}/text; sleep 0.05; cp log.txt d/{call}/text; \
             chmod 600 d/{call}/text; rm -rf d/{}; mv -f last before 2> /dev/null; echo {call} > last",
            call.wrapping_sub(4)
        );
        replies.push(json!({"calls": [{"name": "shell", "arguments": {"command": command}}]}));
        if call % CALLS == CALLS - 1 {
            replies.push(json!({"text": "Done."}));
        }
    }
    std::fs::write(machines.path("script.json"), json!({"reply": replies}).to_string()).unwrap();
}

/// Kills the workers of a session at random, each time on another machine. Then the files are those of a session that nobody disturbed.
fn survives_kills(machines: &Machines) {
    // A worker that lives for half a second finishes fewer calls than this.
    write_script(machines, 2 + kills());
    std::fs::write(machines.path("project/given.txt"), "given\n").unwrap();
    let session = machines.enqueue(&[]);
    let seed = u64::from(std::process::id());
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (mut asked, mut moved) = (1, 0);
    let mut last = String::new();
    for kill in 0..kills() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A machine that is used again has an older checkout.
        let machine = format!("machine{}", (random >> 33) % 3);
        let checkouts = machines.path(&format!("{machine}.checkouts"));
        let mut worker = machines.worker(&machine, &["--checkouts", checkouts.to_str().unwrap()]);
        std::thread::sleep(Duration::from_micros((random >> 20) % 500_000));
        worker.kill().unwrap();
        worker.wait().unwrap();
        moved += u32::from(machine != last);
        let errors = std::fs::read_to_string(machines.path(&format!("{machine}.errors"))).unwrap();
        assert!(!errors.contains("error"), "kill {kill} with the seed {seed}: {errors}");
        match machines.rests(&machine).last() {
            Some(rest) if rest["kind"] == "finished" => {
                machines.json(&["enqueue", "More", "--session", &session]);
                asked += 1;
            }
            Some(rest) => {
                assert_eq!(rest["reason"], "effect_unknown", "kill {kill} with the seed {seed}: {rest}");
                machines.retry_calls(&session);
            }
            None => {}
        }
        last = machine;
    }
    let checkouts = machines.path("last.checkouts");
    machines.finish("last", &session, &["--checkouts", checkouts.to_str().unwrap()]);
    let directory = machines.directory_of(&session);
    assert!(directory.starts_with(&checkouts) && moved > 0, "{directory:?}");
    assert_eq!(picture(&machines.path("project")).len(), 1, "the project is not touched");

    let undisturbed = Machines::with_file();
    write_script(&undisturbed, 2 + kills());
    std::fs::write(undisturbed.path("project/given.txt"), "given\n").unwrap();
    let other = undisturbed.enqueue(&[]);
    undisturbed.finish("home", &other, &[]);
    for _ in 1..asked {
        undisturbed.json(&["enqueue", "More", "--session", &other]);
        undisturbed.finish("home", &other, &[]);
    }
    assert_eq!(picture(&directory), picture(&undisturbed.path("project")), "the seed is {seed}");
    assert_eq!(machines.json(&["verify"])["sound"], true);
}

#[test]
fn what_a_killed_call_left_is_kept_if_nobody_else_had_the_session() {
    let machines = Machines::with_file();
    let commands = "git init -q; git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first";
    let done = Command::new("sh").args(["-euc", commands]).current_dir(machines.path("project")).status();
    assert!(done.unwrap().success());
    let (begun, end) = (machines.path("begun"), machines.path("end"));
    let command = format!(
        "echo half > half.txt; touch {}; while [ ! -e {} ]; do sleep 0.05; done; mv half.txt whole.txt",
        begun.display(),
        end.display()
    );
    let call = json!({"name": "shell", "arguments": {"command": command}});
    let script = json!({"reply": [{"calls": [call]}, {"text": "Done."}]});
    std::fs::write(machines.path("script.json"), script.to_string()).unwrap();
    let session = machines.enqueue(&[]);
    let checkouts = |machine: &str| machines.path(&format!("{machine}.checkouts")).display().to_string();
    let rescues = || {
        let log = machines.command("home", &["log", &session, "--all"]).output().unwrap();
        let log = String::from_utf8(log.stdout).unwrap();
        (log.matches("as found: rescue:").count(), log)
    };
    for known in [0, 1] {
        let mut worker = machines.worker("here", &["--checkouts", &checkouts("here")]);
        wait_until("the call", || begun.exists());
        worker.kill().unwrap();
        worker.wait().unwrap();
        std::fs::remove_file(&begun).unwrap();
        assert_eq!(rescues().0.min(1), known, "{}", rescues().1);
    }
    let known = rescues().0;
    std::fs::write(&end, "").unwrap();
    // The repository is not there, so the call cannot have changed it, and nobody has to be asked.
    machines.finish("there", &session, &["--checkouts", &checkouts("there")]);
    let (count, log) = rescues();
    assert_eq!(count, known, "{log}");
    assert!(log.contains("files moved: ") && log.contains("not in the store: .git"), "{log}");
    let files = picture(&machines.directory_of(&session));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["whole.txt"]);
    let printed = std::fs::read_to_string(machines.path("there.errors")).unwrap();
    assert!(printed.contains("missing unless the setup of the agent makes them: .git"), "{printed}");

    // The machine with the project has no checkout, and needs none.
    std::fs::rename(checkouts("there"), machines.path("elsewhere")).unwrap();
    let refused = machines.command("home", &["ask", &session, "More"]).output().unwrap();
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("it was the checkout of a worker: `backstitch enqueue --session"), "{refused}");
    machines.json(&["apply", &session]);
    assert_eq!(std::fs::read_to_string(machines.path("project/whole.txt")).unwrap(), "half\n");
}

#[test]
fn a_worker_refuses_a_directory_that_no_session_can_work_in() {
    let machines = Machines::with_file();
    write_script(&machines, 1);
    machines.enqueue(&[]);
    std::fs::write(machines.path("file"), "").unwrap();
    for place in ["file", "store/checkouts", "home/backstitch"] {
        let place = machines.path(place).display().to_string();
        let worker = machines.command("home", &["worker", "--checkouts", &place]).output().unwrap();
        let errors = String::from_utf8(worker.stderr).unwrap();
        assert!(worker.status.code() == Some(1) && errors.contains("code: workspace"), "{place}: {errors}");
    }
    assert_eq!(machines.json(&["queue"])["state"], "ready", "nothing was taken");
}

#[test]
fn a_session_that_is_killed_at_random_continues_with_equal_files() {
    survives_kills(&Machines::with_file());
}

#[test]
#[cfg(feature = "postgres")]
fn a_session_in_a_server_that_is_killed_at_random_continues_with_equal_files() {
    if let Some(machines) = Machines::with_server() {
        survives_kills(&machines);
    }
}

#[test]
#[cfg(feature = "postgres")]
fn a_session_is_at_home_on_one_machine_and_in_checkouts_on_others() {
    let Some(machines) = Machines::with_server() else { return };
    write_script(&machines, 4);
    let session = machines.enqueue(&[]);
    machines.finish("home", &session, &[]);
    let project = machines.path("project");
    let files = picture(&project);
    assert_eq!(machines.directory_of(&session), project, "it works in its own directory");
    machines.json(&["enqueue", "More", "--session", &session]);
    machines.finish("home", &session, &[]);
    assert_ne!(picture(&project), files, "also later");

    // On another machine, a directory with the same path holds other files.
    let files = picture(&project);
    machines.json(&["enqueue", "More", "--session", &session]);
    machines.finish("away", &session, &[]);
    let checkout = machines.directory_of(&session);
    assert!(checkout.starts_with(machines.path("away/backstitch/copies/checkouts")), "{checkout:?}");
    assert_eq!(picture(&project), files, "the other directory is not touched");
    let printed = std::fs::read_to_string(machines.path("away.errors")).unwrap();
    assert!(printed.contains("were written to"), "{printed}");

    // The session stays in checkouts, since its directory has older files now.
    machines.json(&["enqueue", "More", "--session", &session]);
    machines.finish("home", &session, &[]);
    assert!(machines.directory_of(&session).starts_with(machines.path("home/backstitch/copies/checkouts")));
    assert_eq!(picture(&project), files);
}
