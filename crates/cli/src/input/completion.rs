//! Completion of paths after an `@`, with Tab.

use std::path::Path;

use super::found;

/// Number of paths that are searched.
const MOST_SEARCHED: usize = 20_000;

/// Number of paths that are offered.
const MOST_OFFERED: usize = 30;

/// Paths for what was typed after an `@`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathCompletions {
    /// Where the word with the `@` begins in the line.
    pub(crate) start: usize,
    /// The words that may replace it, each with the path that is shown for it.
    pub(crate) words: Vec<(String, String)>,
}

/// Completes the path at the end of a line. `None` if there is no `@` of a path, or the path leads out of the directory.
pub(crate) fn complete_path(line: &str, directory: &Path) -> Option<PathCompletions> {
    let (start, typed) = word_at_end(line)?;
    if typed.starts_with(['/', '~']) || typed.split('/').any(|part| part == "..") {
        return None;
    }
    let paths = found::below(directory, MOST_SEARCHED).paths;
    let ranked = found::ranked(typed, &paths, MOST_OFFERED);
    let replaced = |path: &String| {
        let needs_quotes = path.contains(char::is_whitespace);
        // A directory is completed further.
        match (needs_quotes, path.ends_with('/')) {
            (false, true) => format!("@{path}"),
            (false, false) => format!("@{path} "),
            (true, true) => format!("@\"{path}"),
            (true, false) => format!("@\"{path}\" "),
        }
    };
    let word = &line[start..];
    let mut words: Vec<(String, String)> = ranked.iter().map(|path| (replaced(path), path.clone())).collect();
    // Of several paths the editor inserts what they have in common, which is not always a longer form of what was typed.
    let is_longer = words.iter().all(|(replaced, _)| replaced.starts_with(word));
    if words.len() > 1 && !is_longer {
        words.iter_mut().for_each(|(replaced, _)| word.clone_into(replaced));
    }
    Some(PathCompletions { start, words })
}

/// Returns where the last word with an `@` begins, and the path in it.
fn word_at_end(line: &str) -> Option<(usize, &str)> {
    let is_first =
        |start: usize| line[..start].chars().next_back().is_none_or(|one| one.is_whitespace() || one == '(');
    if let Some(start) = line.rfind("@\"").filter(|start| is_first(*start)) {
        let typed = &line[start + 2..];
        if !typed.contains('"') {
            return Some((start, typed));
        }
    }
    let word = line
        .rfind(|one: char| one.is_whitespace() || one == '(')
        .map_or(0, |end| end + line[end..].chars().next().map_or(1, char::len_utf8));
    line[word..].strip_prefix('@').map(|typed| (word, typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed_where_an_at_sign_begins_a_word() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["src/main.rs", "src/map.rs", "docs/main.md", "two words.txt"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let words = |line: &str| {
            let found = complete_path(line, directory.path())?;
            Some((found.start, found.words.into_iter().map(|(word, _)| word).collect::<Vec<_>>()))
        };
        let one = |start: usize, word: &str| Some((start, vec![word.to_owned()]));
        assert_eq!(words("see @src/mai"), one(4, "@src/main.rs "));
        assert_eq!(words("(@map"), one(1, "@src/map.rs "));
        assert_eq!(words("@do"), one(0, "@docs/"));
        assert_eq!(words("@\"two w"), one(0, "@\"two words.txt\" "));
        assert_eq!(words("@words"), one(0, "@\"two words.txt\" "));
        let several = words("@main").unwrap().1;
        assert_eq!(several, ["@main", "@main"], "what was typed stays");
        assert_eq!(words("@src/ma").unwrap().1, ["@src/map.rs ", "@src/main.rs "]);
        assert_eq!(words("mail me@exam"), None);
        assert_eq!(words("@/etc/pass"), None);
        assert_eq!(words("@../x"), None);
        assert_eq!(words("done"), None);
        assert_eq!(words("@zzz"), Some((0, Vec::new())));
    }
}
