//! Checks of source files: which module uses which, and how things are named.
//!
//! A crate whose top modules use each other in a cycle can only be understood as a whole. [`module_cycles`]
//! finds such cycles, so that a test can keep a crate free of them. It reads text and knows no types: paths
//! that start with `crate` or that reach the root by `super`, names that the root imports, groups of both. It
//! does not see names from a glob of the root or from a macro. [`identifiers`] and [`signatures`] find the names.

mod code;
mod names;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use code::production_code;
pub(crate) use names::{Signature, identifiers, signatures};
use uses::{RootNames, root_names, used_names};

/// A source file of a crate.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    /// Its path below the crate's `src`, with `/`.
    pub(crate) path: String,
    /// Its production code: no comments, no literals, no tests.
    pub(crate) code: String,
}

impl SourceFile {
    /// A file with the production code of this text.
    pub(crate) fn new(path: impl Into<String>, text: &str) -> Self {
        Self { path: path.into(), code: production_code(text) }
    }
}

/// Reads the production code of all files of a crate.
pub(crate) fn source_files(src: &Path) -> Vec<SourceFile> {
    let mut paths = Vec::new();
    collect(src, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let below = path.strip_prefix(src).expect("invariant: the file was found below");
        let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
        SourceFile::new(names.join("/"), &text)
    };
    paths.into_iter().map(read).collect()
}

/// Reads the production code of a workspace: of its crates, of its measuring programs and of its examples, without files that
/// hold only tests. The paths of the files start at its root.
pub(crate) fn workspace_files(root: &Path) -> Vec<SourceFile> {
    let crates = root.join("crates");
    let entries = fs::read_dir(&crates).unwrap_or_else(|error| panic!("{}: {error}", crates.display()));
    let names = entries.map(|entry| entry.expect("the folder can be read").file_name());
    let mut folders: Vec<String> =
        names.map(|name| format!("crates/{}/src", name.to_string_lossy())).collect();
    folders.extend(["bench/src".to_owned(), "examples".to_owned()]);
    folders.sort();
    let files = folders.iter().flat_map(|folder| {
        let files = source_files(&root.join(folder)).into_iter();
        files.map(move |file| SourceFile { path: format!("{folder}/{}", file.path), ..file })
    });
    files.filter(|file| !file.path.contains("/tests/") && !file.path.ends_with("/tests.rs")).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Top modules, the other top modules that each uses, and the files with these uses.
pub(crate) type ModuleUses = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Returns the uses between top modules.
pub(crate) fn module_uses(files: &[SourceFile]) -> ModuleUses {
    uses_below(files, &[])
}

/// Returns the uses between the modules of a folder. The paths of the files start there, and `root` is the path of the folder
/// from the root of the crate.
pub(crate) fn uses_below(files: &[SourceFile], root: &[&str]) -> ModuleUses {
    let is_root = |file: &&SourceFile| matches!(file.path.as_str(), "lib.rs" | "main.rs" | "mod.rs");
    let modules: BTreeSet<String> =
        files.iter().filter(|file| !is_root(file)).map(|file| module_of(&file.path)).collect();
    let mut names = RootNames::new();
    for root in files.iter().filter(is_root) {
        names.extend(root_names(&root.code, &modules));
    }
    let mut uses = ModuleUses::new();
    for file in files.iter().filter(|file| !is_root(file)) {
        let module = module_of(&file.path);
        let used = used_names(&file.code, depth_of(&file.path), root);
        let targets: BTreeSet<&String> = used
            .iter()
            .filter_map(|name| modules.get(name).or_else(|| names.get(name)))
            .filter(|target| **target != module)
            .collect();
        let entry = uses.entry(module.clone()).or_default();
        for target in targets {
            entry.entry(target.clone()).or_default().push(file.path.clone());
        }
    }
    uses
}

/// Returns the cycles between the top modules of a crate: each is a maximal set of modules that all use each
/// other, directly or indirectly.
pub(crate) fn module_cycles(src: impl AsRef<Path>) -> Vec<Vec<String>> {
    cycles(&module_uses(&source_files(src.as_ref())))
}

/// Returns the cycles between the modules of a folder of a crate, as [`module_cycles`] does for the whole crate.
pub(crate) fn folder_cycles(src: impl AsRef<Path>, folder: &str) -> Vec<Vec<String>> {
    let root: Vec<&str> = folder.split('/').collect();
    cycles(&uses_below(&source_files(&src.as_ref().join(folder)), &root))
}

/// Returns the cycles between modules, as [`module_cycles`] does.
pub(crate) fn cycles(uses: &ModuleUses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|module| (module, reachable(uses, module))).collect();
    let mut cycles = BTreeSet::new();
    for (module, others) in &reached {
        let back = |other: &&String| reached.get(other).is_some_and(|reached| reached.contains(module));
        let cycle: Vec<String> = others.iter().copied().filter(back).cloned().collect();
        if cycle.len() > 1 {
            cycles.insert(cycle);
        }
    }
    cycles.into_iter().collect()
}

fn reachable<'a>(uses: &'a ModuleUses, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for target in uses.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(target) {
                open.push(target);
            }
        }
    }
    reached
}

/// The top module that a file belongs to.
fn module_of(path: &str) -> String {
    let first = path.split('/').next().unwrap_or(path);
    first.strip_suffix(".rs").unwrap_or(first).to_owned()
}

/// The depth of the module of a file: 1 for a top module.
fn depth_of(path: &str) -> usize {
    let names = path.split('/').count();
    if path.ends_with("/mod.rs") { names - 1 } else { names }
}
