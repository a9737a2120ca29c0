//! Each provider is one folder, and no code outside of the folders and the list names a provider.

use std::path::Path;

use backstitch_providers::Provider;

use super::source::{SourceFile, source_files};

fn files() -> Vec<SourceFile> {
    source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/src"))
}

/// The words of a file's code, with `::` between the words of a path.
fn paths(file: &SourceFile) -> Vec<String> {
    let is_path = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let words = file.code.split(|character: char| !is_path(character));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn only_the_list_and_the_folders_name_a_provider() {
    let variants: Vec<String> = Provider::ALL.iter().map(|provider| format!("{provider:?}")).collect();
    let folders = folders();
    let mut listed = 0;
    for file in files() {
        let is_own = folders.iter().any(|folder| file.path.starts_with(folder.as_str()));
        for path in paths(&file) {
            let is_variant = variants.iter().any(|variant| path.split("::").any(|word| word == variant));
            listed += usize::from(is_variant && file.path == "provider.rs");
            let is_allowed = is_own || file.path == "provider.rs";
            assert!(!is_variant || is_allowed, "{} names {path}", file.path);
        }
    }
    assert_eq!(listed, variants.len(), "each provider stands once in the list");
}

/// The folders of providers.
fn folders() -> Vec<String> {
    let folder = |file: &SourceFile| Some(file.path.strip_prefix("dialects/")?.split_once('/')?.0.to_owned());
    let mut folders: Vec<String> =
        files().iter().filter_map(folder).map(|name| format!("dialects/{name}/")).collect();
    folders.dedup();
    assert_eq!(folders.len(), Provider::ALL.len(), "{folders:?}");
    folders
}

#[test]
fn validators_share_no_code_with_what_they_check() {
    let mut seen = 0;
    for file in files() {
        let is_table = file.path.ends_with("/rules.rs");
        if !is_table && !file.path.starts_with("rules/") {
            continue;
        }
        seen += 1;
        for path in paths(&file) {
            // Without a path after it, either is a visibility.
            match path.split_once("::") {
                Some(("crate", rest)) => assert!(rest.starts_with("rules"), "{}: {path}", file.path),
                Some(("super", _)) => assert!(file.path.starts_with("rules/"), "{}: {path}", file.path),
                _ => {}
            }
        }
    }
    assert_eq!(seen, Provider::ALL.len() + 2, "a file of each provider, and the engine");
}
