//! `apply` and `apply --undo`, killed at random crash points: the next command leaves contents and modes exact.
//!
//! All random choices follow from a seed. `BACKSTITCH_APPLY_KILLS` is the number of rounds, and each round kills an apply, its undo
//! and now and then the command that completes one of them.
#![cfg(feature = "crash-points")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use backstitch::rng::{Rng, Seed};
use serde_json::json;

use crate::stage::{Stage, last_line};

const ROUNDS: u64 = 6;

/// The project.
const BEFORE: &str = "umask 022; echo same > same.txt; echo old > edited.txt; echo old > deleted.txt; echo file > becomes-directory
    mkdir -p becomes-file/deep becomes-link; for n in 1 2 3 4; do echo $n > becomes-file/deep/$n; echo $n > becomes-link/$n; done
    mkdir -p shared deleted/deep; echo x > shared/x; echo x > deleted/deep/x; chmod 750 deleted/deep; ln -s same.txt link
    mkdir sealed; echo x > sealed/x; chmod 555 sealed";

/// What the session changes.
const CHANGES: &str = "umask 022; echo new > edited.txt; chmod 640 edited.txt; rm -r deleted.txt deleted becomes-file becomes-link becomes-directory
    mkdir -p new/deep/er new/empty becomes-directory/deep; for n in 1 2 3; do echo $n > new/deep/er/$n; echo $n > becomes-directory/deep/$n; done
    chmod 775 new; chmod 711 new/deep; chmod 1777 new/empty; echo file > becomes-file; ln -s new becomes-link
    chmod 750 shared; echo y > shared/y; ln -sfn edited.txt link; chmod 755 sealed; echo y > sealed/y; chmod 555 sealed
    mkdir closed; echo z > closed/z; chmod 500 closed";

type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Mode and content of everything below a directory.
fn picture(directory: &Path) -> Picture {
    let mut found = Picture::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path, (metadata.permissions().mode(), content));
        }
    }
    found
}

struct Trial {
    stage: Stage,
    session: String,
}

impl Trial {
    fn new() -> Self {
        let stage = Stage::new();
        let files = stage.path("files");
        let made = std::process::Command::new("sh").args(["-euc", BEFORE]).current_dir(files).status();
        assert!(made.unwrap().success());
        let call = json!({"calls": [{"name": "shell", "arguments": {"command": CHANGES}}]});
        let model = crate::stage::scripted(&stage, &json!([call, {"text": "Done."}]));
        let ran = stage.run(&["run", "Sew", "--isolated", "--model", &model, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let session = last_line(&ran.output)["session"].as_str().unwrap().to_owned();
        Self { stage, session }
    }

    fn picture(&self) -> Picture {
        picture(&self.stage.path("files"))
    }

    /// Runs a command to its end, and returns the crash points that it reaches, each with the number of the hit.
    fn reached(&self, command: &[&str]) -> Vec<String> {
        let list = self.stage.path("reached");
        let counting = Stage::beside(&self.stage).with_variable("BACKSTITCH_REACHED", list.to_str().unwrap());
        let ran = counting.run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut hits = BTreeMap::new();
        let named = fs::read_to_string(&list).unwrap();
        fs::remove_file(list).unwrap();
        let numbered = named.lines().map(|point| {
            let hit = hits.entry(point.to_owned()).or_insert(0);
            *hit += 1;
            format!("{point}#{hit}")
        });
        numbered.collect()
    }

    /// Kills a command at a random point. Then a command completes what it had begun, and it runs again if it had not.
    fn kill(&self, command: &[&str], points: &[String], wanted: &Picture, rng: &mut Rng) {
        let at = &points[rng.below(points.len() as u64) as usize];
        let what = format!("{command:?} killed at {at}");
        let dying = Stage::beside(&self.stage).with_variable("BACKSTITCH_ABORT_AT", at);
        assert_eq!(dying.run(command).code, None, "{what}");
        if rng.below(4) == 0 {
            // Whether it reaches the point depends on how much is left to do.
            let point = &points[rng.below(points.len() as u64) as usize];
            Stage::beside(&self.stage).with_variable("BACKSTITCH_ABORT_AT", point).run(&["ls"]);
        }
        self.stage.run(&["ls"]).worked_quietly();
        if self.picture() != *wanted {
            self.stage.run(command).worked_quietly();
        }
        let found = self.picture();
        let differ = |(path, entry): &(&PathBuf, &(u32, Vec<u8>))| wanted.get(*path) != Some(*entry);
        let wrong: Vec<_> = found.iter().filter(differ).collect();
        let missing: Vec<_> = wanted.keys().filter(|path| !found.contains_key(*path)).collect();
        assert!(wrong.is_empty() && missing.is_empty(), "{what}: wrong {wrong:?}, missing {missing:?}");
    }
}

#[test]
fn a_killed_apply_and_a_killed_undo_leave_contents_and_modes_exact() {
    let trial = Trial::new();
    let (apply, undo) = (["apply", trial.session.as_str()], ["apply", trial.session.as_str(), "--undo"]);
    let before = trial.picture();
    let to_apply = trial.reached(&apply);
    let after = trial.picture();
    assert!(after.len() > before.len() && to_apply.len() > 20, "{to_apply:?}");
    let to_undo = trial.reached(&undo);
    assert_eq!(trial.picture(), before, "undone");
    let rounds = std::env::var("BACKSTITCH_APPLY_KILLS").ok().and_then(|text| text.parse().ok());
    for seed in 0..rounds.unwrap_or(ROUNDS) {
        let mut rng = Seed::new(seed).rng();
        trial.kill(&apply, &to_apply, &after, &mut rng);
        trial.kill(&undo, &to_undo, &before, &mut rng);
    }
}
