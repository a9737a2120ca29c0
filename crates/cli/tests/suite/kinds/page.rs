//! The tables of `docs/security.md`, and the tests that the page names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A kind of process, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Command,
    CommandTool,
    Setup,
    Server,
    Engine,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Command, Self::CommandTool, Self::Setup, Self::Server, Self::Engine];

    /// The name of its column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::CommandTool => "command tool",
            Self::Setup => "setup",
            Self::Server => "MCP server",
            Self::Engine => "engine",
        }
    }
}

/// What a cell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Refused,
    Open,
    /// Open with the network, and refused without it.
    WithNetwork,
    /// Open in the mode `workspace`, and refused in `read-only`.
    InWorkspaceMode,
    /// Open where the system allows no namespaces, and out of sight in them.
    WithoutNamespaces,
}

/// The settings and the system with which a process runs.
#[derive(Clone, Copy)]
pub(super) struct Conditions {
    pub(super) mode: &'static str,
    pub(super) network: bool,
    pub(super) namespaces: bool,
}

impl Cell {
    fn parse(text: &str) -> Self {
        match text {
            "refused" => Self::Refused,
            "**open**" => Self::Open,
            "with the network" => Self::WithNetwork,
            "in `workspace`" => Self::InWorkspaceMode,
            "without namespaces" => Self::WithoutNamespaces,
            other => panic!("an unknown cell of the page: {other}"),
        }
    }

    pub(super) fn is_open(self, conditions: Conditions) -> bool {
        match self {
            Self::Refused => false,
            Self::Open => true,
            Self::WithNetwork => conditions.network,
            Self::InWorkspaceMode => conditions.mode == "workspace",
            Self::WithoutNamespaces => !conditions.namespaces,
        }
    }
}

/// The table of objects and kinds of processes.
pub(super) struct Table(BTreeMap<(String, String), Vec<Cell>>);

impl Table {
    pub(super) fn read() -> Self {
        let page = page();
        let mut lines = page.lines().skip_while(|line| !line.starts_with("| object | attempt | command |"));
        let head = columns(lines.next().expect("the table of kinds"));
        let kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
        assert_eq!(head[2..].iter().map(|name| name.replace('`', "")).collect::<Vec<_>>(), kinds);
        let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(|line| {
            let mut row = columns(line);
            let cells: Vec<_> = row.drain(2..).map(|cell| Cell::parse(&cell)).collect();
            assert_eq!(cells.len(), Kind::ALL.len(), "{line}");
            ((row[0].clone(), row[1].clone()), cells)
        });
        Self(rows.collect())
    }

    pub(super) fn cell(&self, object: &str, attempt: &str, kind: Kind) -> Option<Cell> {
        let row = self.0.get(&(object.to_owned(), attempt.to_owned()))?;
        row.get(kind as usize).copied()
    }

    /// The rows, as object and attempt.
    fn rows(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.keys()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/security.md")).unwrap()
}

fn columns(line: &str) -> Vec<String> {
    line.trim().trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
}

/// The names of tests on the page: words of code with `::`, of which the first is the crate or a module of the runtime's tests.
fn named_tests(page: &str) -> Vec<String> {
    let words = page.split('`').skip(1).step_by(2);
    let is_test = |word: &&str| {
        let is_path = word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_:".contains(&byte));
        is_path && word.contains("::") && !word.starts_with("backstitch::")
    };
    words.filter(is_test).map(str::to_owned).collect()
}

/// Whether a test, or a module of tests, exists. Its name may begin with that of a crate; without one it is of the runtime.
fn exists(name: &str) -> bool {
    let mut parts: Vec<_> = name.split("::").collect();
    let named = root().join("crates").join(parts[0]);
    let suite = if named.join("tests/suite").is_dir() {
        parts.remove(0);
        named.join("tests/suite")
    } else {
        root().join("crates/runtime/tests/suite")
    };
    let module = |parts: &[&str]| {
        let path = suite.join(parts.join("/"));
        [path.with_extension("rs"), path.join("mod.rs")].into_iter().find(|path| path.is_file())
    };
    if module(&parts).is_some() {
        return true;
    }
    let Some((test, modules)) = parts.split_last() else { return false };
    let text = module(modules).and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    text.contains(&format!("fn {test}("))
}

#[test]
fn every_test_that_the_page_names_exists() {
    let names = named_tests(&page());
    assert!(names.len() > 40, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(!exists("sandbox::no_such_test") && !exists("cli::nowhere::no_such_test"));
}

#[test]
fn every_default_names_its_test() {
    let page = page();
    let section = page.split("\n## ").find(|section| section.starts_with("Defaults\n")).unwrap();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        assert!(!named_tests(columns(row).last().unwrap()).is_empty(), "{row}");
    }
}

#[test]
fn every_row_of_the_table_is_tried() {
    for (object, attempt) in Table::read().rows() {
        let row = format!("row(\"{object}\", \"{attempt}\"");
        assert!(super::PROBE.contains(&row), "no attempt belongs to {row}");
    }
}
