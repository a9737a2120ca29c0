//! Changes of the user's file: `config set` and `config unset`. Comments and the order of keys are kept.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use toml_edit::{ArrayOfTables, DocumentMut, Item, Key, Table, TableLike};

use super::error::ConfigError;
use super::layer::{Layer, Scope};

/// Returns the text of a file with a key set to a value. The value is TOML, or the text itself.
pub(crate) fn with_value(path: &Path, text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let parsed = value.trim().parse::<toml_edit::Value>();
    let as_text = toml_edit::Value::from(value);
    // `config set agent 12` names a file, although 12 is a number too.
    let (first, second) = match parsed {
        Ok(parsed) => (parsed, Some(as_text)),
        Err(_) => (as_text, None),
    };
    let changed = replaced(path, text, key, first)?;
    match Layer::parse(path, &changed, Scope::User) {
        Ok(_) => Ok(changed),
        Err(error) => {
            let second = second.map(|second| replaced(path, text, key, second)).transpose()?;
            let accepted = second.filter(|text| Layer::parse(path, text, Scope::User).is_ok());
            accepted.ok_or_else(|| in_key(key, error))
        }
    }
}

/// Returns the text of a file without a key; `None` if it does not have the key.
pub(crate) fn without(path: &Path, text: &str, key: &str) -> Result<Option<String>, ConfigError> {
    let mut document = document(path, text)?;
    let keys = keys(key)?;
    let Some((last, above)) = keys.split_last() else { return Ok(None) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in above {
        let Some(inner) = table.get_mut(key.get()).and_then(Item::as_table_like_mut) else { return Ok(None) };
        table = inner;
    }
    if table.remove(last.get()).is_none() {
        return Ok(None);
    }
    Ok(Some(document.to_string()))
}

/// Returns the text of a file with a table added to a list of tables, such as `[[mcp]]`.
pub(crate) fn with_table(path: &Path, text: &str, list: &str, table: Table) -> Result<String, ConfigError> {
    let mut document = document(path, text)?;
    let item = document.entry(list).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let all = item.as_array_of_tables_mut();
    all.ok_or_else(|| wrong(list, "it is not written as [[...]]: change it in the file"))?.push(table);
    let changed = document.to_string();
    Layer::parse(path, &changed, Scope::User).map_err(|error| in_key(list, error))?;
    Ok(changed)
}

/// Returns the text of a file without the table of this name in a list of tables; `None` if there is none.
pub(crate) fn without_table(
    path: &Path,
    text: &str,
    list: &str,
    name: &str,
) -> Result<Option<String>, ConfigError> {
    let mut document = document(path, text)?;
    let Some(item) = document.get_mut(list) else { return Ok(None) };
    let is_named = |table: &dyn TableLike| table.get("name").and_then(Item::as_str) == Some(name);
    let all = item.as_array_of_tables_mut();
    let all = all.ok_or_else(|| wrong(list, "it is not written as [[...]]: change it in the file"))?;
    let before = all.len();
    all.retain(|table| !is_named(table));
    if all.len() == before {
        return Ok(None);
    }
    if all.is_empty() {
        document.remove(list);
    }
    Ok(Some(document.to_string()))
}

fn replaced(path: &Path, text: &str, key: &str, value: toml_edit::Value) -> Result<String, ConfigError> {
    let mut document = document(path, text)?;
    let keys = keys(key)?;
    let Some((last, above)) = keys.split_last() else { return Ok(text.to_owned()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in above {
        let inner = table.entry(part.get()).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let inner = inner.as_table_like_mut();
        table = inner.ok_or_else(|| wrong(key, format!("`{}` is a value, and has no keys", part.get())))?;
    }
    match table.get_mut(last.get()) {
        Some(Item::Value(before)) => {
            // A comment at the end of the line is kept.
            let decor = before.decor().clone();
            *before = value;
            *before.decor_mut() = decor;
        }
        Some(Item::Table(_) | Item::ArrayOfTables(_)) => {
            return Err(wrong(key, "this is a table: name a key in it"));
        }
        _ => {
            table.insert(last.get(), Item::Value(value));
        }
    }
    Ok(document.to_string())
}

fn document(path: &Path, text: &str) -> Result<DocumentMut, ConfigError> {
    // The parser of the command has the better messages.
    Layer::parse(path, text, Scope::User)?;
    text.parse().map_err(|error| wrong(&path.to_string_lossy(), format!("it cannot be changed: {error}")))
}

fn keys(key: &str) -> Result<Vec<Key>, ConfigError> {
    Key::parse(key).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.lines().last().unwrap_or_default();
        wrong(key, format!("unknown setting; write model, or prices.\"openai:NAME\".input ({reason})"))
    })
}

fn wrong(key: &str, message: impl Into<String>) -> ConfigError {
    ConfigError::InKey { key: key.to_owned(), message: message.into() }
}

/// Names the key of the command line instead of a line that the file does not have yet.
fn in_key(key: &str, error: ConfigError) -> ConfigError {
    match error {
        ConfigError::InFile { problem, .. } => wrong(key, problem.message),
        other => other,
    }
}

/// Writes a file that only this user can read, atomically: to a temporary file that is then renamed. A
/// symbolic link is kept, and its target is replaced.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), ConfigError> {
    let written = || -> io::Result<()> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = path.parent().unwrap_or_else(|| Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = directory.join(format!(".{name}.{}", std::process::id()));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let done = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        done.and_then(|()| fs::rename(&temporary, &path)).inspect_err(|_| {
            // The error of the write is reported, and not that of the cleanup.
            let _ = fs::remove_file(&temporary);
        })
    };
    written().map_err(|source| ConfigError::Unwritable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, value: &str) -> Result<String, String> {
        with_value(Path::new("c.toml"), text, key, value).map_err(|error| error.to_string())
    }

    #[test]
    fn comments_and_order_are_kept() {
        let text = "# mine\nmax_turns = 3 # few\nmodel = \"openai:a\"\n\n[budget]\ntokens = 5\n";
        let changed = set(text, "max_turns", "9").unwrap();
        assert_eq!(changed, text.replace("= 3", "= 9"));
        assert_eq!(set(text, "model", "openai:b").unwrap(), text.replace("openai:a", "openai:b"));
        let more = set(text, "budget.turns", "4").unwrap();
        assert_eq!(more, format!("{text}turns = 4\n"));
        let price = set("", "prices.\"openai:a\"", "{ input = 1, output = 2.5 }").unwrap();
        assert!(price.contains("[prices]\n\"openai:a\" = { input = 1, output = 2.5 }"), "{price}");
        let removed = without(Path::new("c.toml"), text, "budget.tokens").unwrap().unwrap();
        assert!(!removed.contains("tokens") && removed.contains("# few"), "{removed}");
        assert_eq!(without(Path::new("c.toml"), text, "deadline").unwrap(), None);
    }

    #[test]
    fn tables_are_added_and_removed_by_name() {
        let path = Path::new("c.toml");
        let table = |name: &str| {
            let mut table = Table::new();
            table.insert("name", toml_edit::value(name));
            table.insert("url", toml_edit::value("https://example.com"));
            table
        };
        let text = "# mine\nmax_turns = 3\n";
        let one = with_table(path, text, "mcp", table("one")).unwrap();
        assert_eq!(one, format!("{text}\n[[mcp]]\nname = \"one\"\nurl = \"https://example.com\"\n"));
        let two = with_table(path, &one, "mcp", table("two")).unwrap();
        let twice = with_table(path, &two, "mcp", table("one")).unwrap_err().to_string();
        assert!(twice.contains("another server has the name `one`"), "{twice}");
        let left = without_table(path, &two, "mcp", "one").unwrap().unwrap();
        assert!(left.contains("two") && !left.contains("one"), "{left}");
        assert_eq!(without_table(path, &left, "mcp", "one").unwrap(), None);
        assert_eq!(without_table(path, &left, "mcp", "two").unwrap().unwrap(), text);
        assert_eq!(without_table(path, text, "mcp", "two").unwrap(), None);
        let inline = "mcp = [{ name = \"one\", url = \"https://example.com\" }]\n";
        assert!(with_table(path, inline, "mcp", table("two")).is_err());
    }

    #[test]
    fn values_are_toml_or_text_and_are_checked() {
        assert_eq!(set("", "agent", "12").unwrap(), "agent = \"12\"\n");
        assert_eq!(set("", "approve", "[\"shell\"]").unwrap(), "approve = [\"shell\"]\n");
        assert_eq!(set("", "pager", "false").unwrap(), "pager = false\n");
        let unknown = set("", "modle", "openai:a").unwrap_err();
        assert!(unknown.contains("did you mean `mode` or `model`"), "{unknown}");
        assert!(set("", "max_turns", "many").unwrap_err().starts_with("max_turns: "));
        assert!(set("", "max_turns.x", "1").is_err() && set("max_turns = 2", "max_turns.x", "1").is_err());
        assert!(set("[budget]\nturns = 1", "budget", "3").unwrap_err().contains("table"));
        for wrong in ["", "a b", "=", "\"", "a..b", "[x]", "\u{1b}"] {
            assert!(set("", wrong, "1").is_err(), "{wrong}");
        }
        assert!(set("model = 1", "max_turns", "1").unwrap_err().starts_with("c.toml:1: model"));
    }
}
