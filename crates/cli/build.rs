//! Finds out what `--version` says: the commit, the features and the target of this build.
//!
//! The commit is that of `BACKSTITCH_COMMIT`, else that of the published package that the sources came in, else that of the
//! repository around them. Builds for development do not look at the repository: each commit would build the command again.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BACKSTITCH_COMMIT");
    let given = env::var("BACKSTITCH_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(published).or_else(checked_out).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=BACKSTITCH_COMMIT={commit}");
    println!("cargo::rustc-env=BACKSTITCH_FEATURES={}", features());
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=BACKSTITCH_TARGET={target}");
}

/// Returns the commit that cargo writes into a package.
fn published() -> Option<String> {
    let note = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, after) = note.split_once("\"sha1\"")?;
    after.split('"').nth(1).map(str::to_owned)
}

/// Returns the commit of the repository that this crate lies in, for optimized builds.
fn checked_out() -> Option<String> {
    if env::var("PROFILE").ok()? != "release" || !Path::new("../../.git").exists() {
        return None;
    }
    // It changes with each commit and with each checkout.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let ran = Command::new("git").args(arguments).output().ok().filter(|ran| ran.status.success())?;
    Some(String::from_utf8(ran.stdout).ok()?.trim().to_owned())
}

/// Returns the features of this build that users choose, sorted.
fn features() -> String {
    let names =
        env::vars().filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase));
    let mut names: Vec<String> =
        names.filter(|name| name != "default").map(|name| name.replace('_', "-")).collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
