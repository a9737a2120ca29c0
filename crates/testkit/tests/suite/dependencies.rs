//! Packages that the workspace may depend on: the rules of `deny.toml`, for machines without cargo-deny.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every package of the lock file, with the data of its manifest.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    metadata["packages"].as_array().expect("a list").clone()
}

/// The strings of a list in `deny.toml`.
fn list(name: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml is there");
    let (_, rest) = text.split_once(&format!("\n{name} = [")).expect("the list is there");
    let (list, _) = rest.split_once(']').expect("the list ends");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_package_has_a_licence_that_is_allowed() {
    let allowed = list("allow");
    for package in packages() {
        let (name, licence) = (&package["name"], package["license"].as_str());
        let is_allowed = licence.is_some_and(|licence| is_allowed(licence, &allowed));
        // A package without an expression has a licence file instead.
        assert!(is_allowed || package["license_file"].is_string(), "{name}: {licence:?} is not in deny.toml");
    }
}

#[test]
fn packages_come_from_one_registry_and_none_is_refused() {
    let refused = list("deny");
    for package in packages() {
        let name = package["name"].as_str().unwrap_or_default();
        assert!(!refused.iter().any(|refused| refused == name), "{name} is refused by deny.toml");
        let source = package["source"].as_str();
        let is_known = source.is_none_or(|source| source.contains("github.com/rust-lang/crates.io-index"));
        assert!(is_known, "{name} comes from {source:?}");
    }
}

/// Whether an SPDX expression allows a licence of the list: one side of every `OR`, both sides of every
/// `AND`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut at = 0;
    let holds = any_of(&words, &mut at, allowed);
    holds && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut holds = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        holds |= all_of(words, at, allowed);
    }
    holds
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut holds = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= one(words, at, allowed);
    }
    holds
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let holds = any_of(words, at, allowed);
        *at += 1;
        return holds;
    }
    // `MPL-2.0+` stands for that version or a later one.
    let mut licence = word.trim_end_matches('+').to_owned();
    if let (Some(&"WITH"), Some(exception)) = (words.get(*at), words.get(*at + 1)) {
        licence = format!("{licence} WITH {exception}");
        *at += 2;
    }
    allowed.contains(&licence)
}

#[test]
fn expressions_are_understood() {
    let allowed = ["MIT".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
    for (expression, holds) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("MIT/Apache-2.0", true),
        ("MIT AND GPL-3.0", false),
        ("(GPL-3.0 OR MIT) AND MIT", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("Apache-2.0", false),
        ("MIT+", true),
    ] {
        assert_eq!(is_allowed(expression, &allowed), holds, "{expression}");
    }
}
