//! Measures captures and restores beside a bare walk and beside git, in one run and one directory.
//!
//! `cargo run --release -p backstitch-workspace --example measure -- [directory] [files] [rounds]` prints JSON lines. Times are
//! medians over the rounds; machines are noisy, so ratios inside of a run are what counts. Our figures leave out storing the
//! objects of a capture, which is the store's part; restores are durable when they return. Git syncs what it writes.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measuring program prints, and stops where it cannot go on"
)]

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod unix {
    use std::collections::HashMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use backstitch_core::journal::WorkspaceRoot;
    use backstitch_core::object::{Object, ObjectId};
    use backstitch_core::ports::{Objects, Workspace as _};
    use backstitch_core::session::BoxError;
    use backstitch_workspace::{HostWorkspace, OpenOptions};

    #[derive(Default)]
    struct Memory(Mutex<HashMap<ObjectId, Object>>);

    impl Objects for Memory {
        fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
            Ok(self.0.lock().unwrap().get(&id).cloned())
        }

        fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
            Ok(self.0.lock().unwrap().contains_key(&id))
        }
    }

    /// Wall and processor time of what was done.
    type Taken = (Duration, Duration);

    fn timed<T>(act: impl FnOnce() -> T) -> (T, Taken) {
        let cpu = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let (started, cpu_before) = (Instant::now(), cpu());
        let value = act();
        (value, (started.elapsed(), cpu().saturating_sub(cpu_before)))
    }

    struct Run {
        root: PathBuf,
        files: usize,
        objects: Arc<Memory>,
        taken: HashMap<(&'static str, &'static str), Vec<Taken>>,
        round: usize,
    }

    impl Run {
        fn path(&self, number: usize) -> PathBuf {
            self.root.join(format!("d{}/e{}/file{number}.txt", number % 20, number / 20 % 20))
        }

        fn write(&self, number: usize, round: usize) {
            let path = self.path(number);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let line = format!(
                "file {number} in round {round}: a line of text that is about as long as lines are\n"
            );
            fs::write(path, line.repeat(10 + number % 40)).unwrap();
        }

        fn change(&mut self, count: usize) {
            self.round += 1;
            // Far apart, so that most are in directories of their own.
            (0..count).for_each(|at| self.write((at * 97 + self.round * 31) % self.files, self.round));
        }

        fn note(&mut self, system: &'static str, metric: &'static str, taken: Taken) {
            self.taken.entry((system, metric)).or_default().push(taken);
        }

        fn git(&mut self, metric: &'static str, commands: &[&[&str]]) {
            let ((), (wall, _)) = timed(|| {
                for arguments in commands {
                    let status = Command::new("git")
                        .args([
                            "-c",
                            "user.name=m",
                            "-c",
                            "user.email=m@m",
                            "-c",
                            "gc.auto=0",
                            "-c",
                            "core.fsync=all",
                        ])
                        .args(*arguments)
                        .current_dir(&self.root)
                        .status()
                        .unwrap();
                    assert!(status.success());
                }
            });
            // What children used is not in this process's time.
            self.note("git", metric, (wall, Duration::ZERO));
        }

        fn capture(&mut self, workspace: &HostWorkspace, metric: &'static str) -> WorkspaceRoot {
            let (captured, taken) = timed(|| workspace.capture().unwrap());
            self.objects
                .0
                .lock()
                .unwrap()
                .extend(captured.objects.into_iter().map(|object| (object.id(), object)));
            self.note("backstitch", metric, taken);
            captured.root
        }

        fn print(&self) {
            let mut keys: Vec<_> = self.taken.keys().collect();
            keys.sort();
            for key in keys {
                let median = |pick: fn(&Taken) -> Duration| {
                    let mut times: Vec<_> = self.taken[key].iter().map(pick).collect();
                    times.sort();
                    times[times.len() / 2].as_secs_f64() * 1_000.0
                };
                let (system, metric) = key;
                for (name, value) in [("wall", median(|taken| taken.0)), ("cpu", median(|taken| taken.1))] {
                    if *system == "git" && name == "cpu" {
                        continue;
                    }
                    let params = format!(r#"{{"files":{},"clock":"{name}"}}"#, self.files);
                    println!(
                        r#"{{"system":"{system}","metric":"{metric}","params":{params},"value":{value:.3},"unit":"ms"}}"#
                    );
                }
            }
        }
    }

    fn walk(directory: &Path) -> u64 {
        let mut count = 0;
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let found = entry.metadata().unwrap();
            count += 1;
            if found.is_dir() && entry.file_name() != ".git" {
                count += walk(&entry.path());
            }
        }
        count
    }

    pub(super) fn main() {
        let mut arguments = std::env::args().skip(1);
        let above = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
        let files = arguments.next().map_or(10_000, |text| text.parse().unwrap());
        let rounds = arguments.next().map_or(11, |text| text.parse().unwrap());
        let keep = tempfile::tempdir_in(above).unwrap();
        let root = keep.path().join("work");
        fs::create_dir(&root).unwrap();
        let mut run = Run { root, files, objects: Arc::default(), taken: HashMap::new(), round: 0 };
        (0..files).for_each(|number| run.write(number, 0));
        run.git("init", &[&["init", "-q"]]);
        run.git("first add and commit", &[&["add", "-A"], &["commit", "-qm", "first"]]);
        let mut options = OpenOptions::new(&run.root, keep.path().join("store"), run.objects.clone());
        options.locks = Some(keep.path().join("locks"));
        let (workspace, taken) = timed(|| HostWorkspace::open(options.clone()).unwrap());
        run.note("backstitch", "open", taken);
        run.capture(&workspace, "first capture");
        std::thread::sleep(Duration::from_millis(200));
        run.capture(&workspace, "second capture");
        for _ in 0..rounds {
            let (_, taken) = timed(|| walk(&run.root));
            run.note("limit", "walk and stat", taken);
            run.capture(&workspace, "capture, 0 changed");
            run.change(1);
            let (_, taken) = timed(|| walk(&run.root));
            run.note("limit", "walk and stat", taken);
            run.capture(&workspace, "capture, 1 changed");
            run.git("add and commit, 1 changed", &[&["add", "-A"], &["commit", "-qm", "one"]]);
            run.change(100);
            let base = run.capture(&workspace, "capture, 100 changed");
            run.git("add and commit, 100 changed", &[&["add", "-A"], &["commit", "-qm", "many"]]);

            run.change(100);
            let (restored, taken) = timed(|| workspace.restore(base).unwrap());
            assert_eq!(restored.changed.len(), 100);
            run.note("backstitch", "restore, 100 changed", taken);
            run.change(100);
            run.git("reset --hard, 100 changed", &[&["reset", "-q", "--hard"]]);
            std::thread::sleep(Duration::from_millis(120));
            run.capture(&workspace, "capture after reset");
        }
        drop(workspace);
        let (workspace, taken) = timed(|| HostWorkspace::open(options).unwrap());
        run.note("backstitch", "open with a cache", taken);
        run.capture(&workspace, "first capture with a cache");
        run.print();
    }
}
