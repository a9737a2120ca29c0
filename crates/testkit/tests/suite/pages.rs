//! The pages say what the sources say: links, the maps of crates and modules, paths, and operations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::source::{ModuleUses, SourceFile, module_uses, source_files};

/// The crates with a map of their modules.
const MAPPED: [&str; 12] = [
    "acp",
    "core",
    "filesystem",
    "repl",
    "store",
    "workspace",
    "providers",
    "runtime",
    "bridge",
    "backstitch",
    "server",
    "cli",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sources_of(member: &str) -> Vec<SourceFile> {
    source_files(&root().join("crates").join(member).join("src"))
}

/// Returns the modules of a map, line by line. A module may use those of earlier lines.
fn map_of(page: &str, member: &str) -> Vec<Vec<String>> {
    let heading = format!("\n### `{member}`\n");
    let (_, section) =
        page.split_once(&heading).unwrap_or_else(|| panic!("architecture.md has no map of {member}"));
    let (_, block) = section.split_once("```text\n").expect("the map is a block of text");
    let (map, _) = block.split_once("\n```").expect("the block ends");
    let names = |line: &str| -> Vec<String> {
        let (names, _) = line.split_once("  ").unwrap_or((line, ""));
        names.split(", ").map(|name| name.trim_end_matches('/').to_owned()).collect()
    };
    // Indented lines describe the module above them.
    map.lines().filter(|line| !line.starts_with(' ')).map(names).collect()
}

/// Returns how a map differs from the imports.
fn differences(map: &[Vec<String>], uses: &ModuleUses) -> Vec<String> {
    let line_of = |module: &String| map.iter().position(|line| line.contains(module));
    let mut found = Vec::new();
    for module in map.iter().flatten() {
        if !uses.contains_key(module) {
            found.push(format!("`{module}` does not exist"));
        }
        if map.iter().flatten().filter(|other| *other == module).count() > 1 {
            found.push(format!("`{module}` is there twice"));
        }
    }
    for (module, used) in uses {
        let Some(line) = line_of(module) else {
            found.push(format!("`{module}` is missing"));
            continue;
        };
        for (target, files) in used {
            if line_of(target).is_some_and(|above| above >= line) {
                let files = files.join(", ");
                found.push(format!("`{module}` uses `{target}`, which is not above it: {files}"));
            }
        }
    }
    found
}

#[test]
fn each_map_has_all_modules_of_its_crate_below_those_that_they_use() {
    let page = read("docs/architecture.md");
    for member in MAPPED {
        let mut uses = module_uses(&sources_of(member));
        // Programs of their own.
        uses.remove("bin");
        let found = differences(&map_of(&page, member), &uses);
        assert!(found.is_empty(), "the map of {member} in docs/architecture.md:\n{}", found.join("\n"));
    }
}

#[test]
fn a_wrong_map_is_found() {
    let page = "\n### `shop`\n\n```text\nhem, thread   below\n  Hem ─ Thread\ncoat/         above\n              both\n```\n";
    let map = map_of(page, "shop");
    assert_eq!(map, [vec!["hem".to_owned(), "thread".to_owned()], vec!["coat".to_owned()]]);
    let of = |files: &[(&str, &str)]| {
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, text)).collect();
        differences(&map, &module_uses(&files))
    };
    let right =
        [("lib.rs", ""), ("hem.rs", ""), ("thread.rs", ""), ("coat/mod.rs", "use crate::{hem, thread};")];
    assert_eq!(of(&right), Vec::<String>::new());
    assert_eq!(of(&right[..3]), ["`coat` does not exist"]);
    let with = |file| of(&[&right[..], &[file]].concat());
    assert_eq!(with(("sleeve.rs", "")), ["`sleeve` is missing"]);
    for way in ["use crate::coat::Coat;", "use crate::thread;"] {
        let found = of(&[("hem.rs", way), right[2], right[3]]);
        assert!(found[0].contains("which is not above it: hem.rs") && found.len() == 1, "{found:?}");
    }
}

/// The crates that a manifest depends on, but for tests.
fn dependencies_of(member: &str) -> Vec<String> {
    let manifest = read(format!("crates/{member}/Cargo.toml"));
    let is_plain =
        |section: &&str| section.starts_with("dependencies]") || section.contains("'.dependencies]");
    let lines = manifest.split("\n[").filter(is_plain).flat_map(str::lines);
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    let own = names.filter_map(|name| match name {
        "backstitch" => Some(name),
        _ => name.strip_prefix("backstitch-"),
    });
    own.map(str::to_owned).collect()
}

#[test]
fn the_table_of_crates_has_what_each_of_them_uses() {
    let page = read("docs/architecture.md");
    let (_, table) = page.split_once("| crate | what it holds | uses |\n").expect("the table is there");
    let mut above: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let member = cells[0].trim_matches('`');
        let used = cells.get(2).unwrap_or(&"").split(", ").map(|name| name.trim_matches('`').to_owned());
        let used: Vec<String> = used.filter(|name| !name.is_empty()).collect();
        assert!(
            used.iter().all(|name| above.contains_key(name.as_str())),
            "{member} uses one below it: {used:?}"
        );
        above.insert(member, used);
    }
    let crates = fs::read_dir(root().join("crates")).expect("the crates are there");
    let mut members: Vec<String> =
        crates.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    members.sort();
    assert_eq!(above.keys().copied().collect::<Vec<_>>(), members);
    for (member, used) in above {
        assert_eq!(used, dependencies_of(member), "{member}");
    }
}

/// Returns the paths that braces stand for: `{a,b}.rs` is `a.rs` and `b.rs`.
fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').flat_map(|choice| expand(&format!("{before}{choice}{after}"))).collect()
}

/// The pieces of a text between backticks, line by line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn paths_in_the_pages_about_the_structure_exist() {
    let mut checked = 0;
    for name in ["architecture", "decisions", "where"] {
        let page = read(format!("docs/{name}.md"));
        let is_path = |text: &&str| {
            let is_inside = text.contains("/src/") || text.contains("/tests/") || text.starts_with("docs/");
            is_inside && !text.contains(' ')
        };
        for path in quoted(&page).filter(is_path).flat_map(expand) {
            let exists = [root(), root().join("crates")].iter().any(|base| base.join(&path).exists());
            assert!(exists, "docs/{name}.md names {path}, which does not exist");
            checked += 1;
        }
    }
    assert!(checked > 100, "the pages name more paths than {checked}");
}

fn is_between_words(character: char) -> bool {
    !character.is_alphanumeric() && character != '_'
}

/// The methods and the types that the page about operations names exist.
#[test]
fn operations_exist() {
    let page = read("docs/library.md");
    let files: Vec<SourceFile> = ["core", "runtime", "backstitch"].map(sources_of).concat();
    let has_method = |owner: &str, method: &str| {
        let declares = [format!("impl {owner} {{"), format!("trait {owner}:")];
        let functions = [format!("fn {method}("), format!("fn {method}<")];
        let has = |code: &str, any: &[String]| any.iter().any(|text| code.contains(text));
        files.iter().any(|file| has(&file.code, &declares) && has(&file.code, &functions))
    };
    let words: BTreeSet<&str> = files.iter().flat_map(|file| file.code.split(is_between_words)).collect();
    let mut operations = 0;
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        for (owner, method) in quoted(cells[0]).filter_map(|text| text.split_once("::")) {
            assert!(
                has_method(owner, method),
                "docs/library.md names {owner}::{method}, which does not exist"
            );
            operations += 1;
        }
        for value in quoted(cells.last().expect("a row has cells")) {
            let name = value.rsplit("::").next().unwrap_or(value);
            let is_type = name.starts_with(char::is_uppercase);
            assert!(
                !is_type || words.contains(name),
                "docs/library.md names the type {value}, which does not exist"
            );
        }
    }
    assert!(operations > 40, "there are more operations than {operations}");
}

/// The Markdown files at or below a path.
fn pages_below(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let is_page =
        |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|extension| extension == "md");
    paths.filter(is_page).flat_map(|path| pages_below(&path)).collect()
}

/// The lines of a page outside of blocks of code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The names by which links lead to the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let lower = heading.trim().to_lowercase();
        let kept =
            lower.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        let name: String = kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let earlier = found.iter().filter(|other| **other == name).count();
        found.push(if earlier == 0 { name } else { format!("{name}-{earlier}") });
    }
    found
}

/// The targets of the links of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target).filter(|target| !target.contains("://") && !target.contains(' '))
}

#[test]
fn links_between_pages_lead_somewhere() {
    let start = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", "docs"];
    let pages: Vec<PathBuf> = start.iter().flat_map(|path| pages_below(&root().join(path))).collect();
    let mut broken = Vec::new();
    for page in &pages {
        let text = read(page);
        for (number, line) in prose(&text) {
            for link in links(line) {
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = match path {
                    "" => page.clone(),
                    path => page.parent().expect("a page is in a folder").join(path),
                };
                let is_page = target.extension().is_some_and(|extension| extension == "md");
                let leads = target.exists()
                    && (anchor.is_empty()
                        || !is_page
                        || anchors(&read(&target)).iter().any(|name| name == anchor));
                if !leads {
                    broken.push(format!("{}:{number}: {link}", page.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{} links lead nowhere:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn anchors_are_those_of_the_headings() {
    let page = "# A `hem`, sewn\n```sh\n# a comment\n```\n## Twice\n## Twice\n#nothing\n";
    assert_eq!(anchors(page), ["a-hem-sewn", "twice", "twice-1"]);
    assert_eq!(
        links("[a](b.md#c), `x` and [d](e) [f](https://example.org)").collect::<Vec<_>>(),
        ["b.md#c", "e"]
    );
}
