//! Names that a file uses from the root of its crate.

use std::collections::{BTreeMap, BTreeSet};

/// Names at the root, and the top modules that they come from.
pub(super) type RootNames = BTreeMap<String, String>;

/// Splits code into tokens: words, `::`, and other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            let ends = |character: char| !(character.is_alphanumeric() || character == '_');
            rest.find(ends).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The names that a file at this depth uses from a module, whose path from the root of the crate is `root`.
pub(super) fn used_names(code: &str, depth: usize, root: &[&str]) -> BTreeSet<String> {
    let tokens = tokens(code);
    let mut used = BTreeSet::new();
    let below = |path: Vec<&str>| Some((*path.strip_prefix(root)?.first()?).to_owned());
    // Whether each open brace is that of an inline module.
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let depth = depth + braces.iter().filter(|is_module| **is_module).count();
        let previous = at.checked_sub(1).map(|before| tokens[before]);
        match tokens[at] {
            "{" => braces.push(at >= 2 && tokens[at - 2] == "mod"),
            "}" => drop(braces.pop()),
            // A visibility does not count as a use.
            "crate" if tokens.get(at + 1) == Some(&"::") && previous != Some("in") => {
                used.extend(tree(&tokens[at + 2..]).into_iter().filter_map(|(path, _)| below(path)));
            }
            "super" if previous != Some("::") => {
                let mut climbed = 1;
                while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2) == Some(&"super") {
                    climbed += 1;
                    at += 2;
                }
                if climbed == depth && tokens.get(at + 1) == Some(&"::") {
                    used.extend(tree(&tokens[at + 2..]).into_iter().map(|(path, _)| path[0].to_owned()));
                }
            }
            _ => {}
        }
        at += 1;
    }
    used
}

/// The names that the root of a crate imports from its modules.
pub(super) fn root_names(code: &str, modules: &BTreeSet<String>) -> RootNames {
    let tokens = tokens(code);
    let mut names = RootNames::new();
    for start in (0..tokens.len()).filter(|at| tokens[*at] == "use") {
        for (path, name) in tree(&tokens[start + 1..]) {
            let path = if matches!(path[0], "crate" | "self") { &path[1..] } else { &path[..] };
            if let Some(module) = path.first().filter(|module| modules.contains(**module)) {
                names.insert(name.to_owned(), (*module).to_owned());
            }
        }
    }
    names
}

/// The paths of a tree of imports, each with the name that it introduces.
fn tree<'a>(tokens: &[&'a str]) -> Vec<(Vec<&'a str>, &'a str)> {
    let mut paths = Vec::new();
    branch(tokens, &mut 0, &[], &mut paths);
    paths.retain(|(path, _)| !path.is_empty());
    paths
}

fn branch<'a>(
    tokens: &[&'a str],
    at: &mut usize,
    above: &[&'a str],
    paths: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let mut path = above.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match *token {
            "{" => {
                while tokens.get(*at).is_some_and(|token| *token != "}") {
                    branch(tokens, at, &path, paths);
                    *at += usize::from(tokens.get(*at) == Some(&","));
                }
                *at += 1;
                return;
            }
            "*" => break,
            name => path.push(name),
        }
        if tokens.get(*at) != Some(&"::") {
            break;
        }
        *at += 1;
    }
    let mut name = path.last().copied().unwrap_or_default();
    if tokens.get(*at) == Some(&"as") {
        name = tokens.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
    }
    paths.push((path, name));
}
