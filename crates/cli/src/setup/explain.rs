//! `explain`: prints the page of an error code. The pages of `docs/errors/` are compiled in, through a link in this crate, so that
//! its package holds them.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use backstitch::code::{ErrorCode, with_error_codes};
use backstitch_lisp::did_you_mean;
use clap::Args;
use serde_json::json;

use crate::terminal::{self, Pager, Role, Table, Text};
use crate::usage::Usage;

macro_rules! pages {
    ($($code:ident = $word:literal: $summary:literal,)*) => {
        /// Pairs of an error code and its page.
        const PAGES: &[(&str, &str)] =
            &[$(($word, include_str!(concat!("../../errors/", $word, ".md"))),)*];
    };
}
with_error_codes!(pages);

/// Columns of a page on a wide terminal: longer lines are hard to read.
const MOST_COLUMNS: usize = 100;

/// Maximum number of suggestions for an unknown code.
const MOST_SUGGESTED: usize = 5;

#[derive(Args)]
pub(crate) struct Explain {
    /// Error code, as the last line of an error prints it. Default: list all codes.
    code: Option<String>,
}

impl Explain {
    pub(crate) fn run(self, as_json: bool) -> anyhow::Result<ExitCode> {
        let _pager = Pager::new();
        match &self.code {
            Some(word) => explain(word, as_json)?,
            None if as_json => ErrorCode::ALL.iter().for_each(|code| {
                println!("{}", json!({"v": 1, "code": code.as_str(), "summary": code.summary()}));
            }),
            None => table(),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn explain(word: &str, as_json: bool) -> Result<(), Usage> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    let page = PAGES.iter().find(|(known, _)| *known == word).map(|(_, page)| *page);
    let (Ok(code), Some(page)) = (word.parse::<ErrorCode>(), page) else {
        return Err(Usage(unknown(&word)));
    };
    if as_json {
        let (code, summary) = (code.as_str(), code.summary());
        println!("{}", json!({"v": 1, "code": code, "summary": summary, "page": page}));
    } else {
        print_page(page);
    }
    Ok(())
}

/// Prints all codes.
fn table() {
    let mut table = Table::new(["code", "meaning"]);
    for code in ErrorCode::ALL {
        table.row([Text::new().add(Role::Id, code.as_str()), code.summary().into()]);
    }
    table.print();
}

/// Prints a page: on a terminal with headings, and paragraphs as wide as that.
fn print_page(page: &str) {
    if !std::io::stdout().is_terminal() {
        print!("{page}");
        return;
    }
    let columns = terminal::columns().min(MOST_COLUMNS);
    let mut paragraph = String::new();
    let mut is_code = false;
    let print_paragraph = |paragraph: &mut String| {
        if !paragraph.is_empty() {
            let text = std::mem::take(paragraph);
            terminal::wrapped(&text, columns).iter().for_each(|line| println!("{line}"));
        }
    };
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        let is_joined = !is_code && !is_fence && !line.is_empty() && !line.starts_with(['#', '|', '-']);
        if is_joined {
            let gap = if paragraph.is_empty() { "" } else { " " };
            paragraph = paragraph + gap + line;
            continue;
        }
        print_paragraph(&mut paragraph);
        if is_fence {
            is_code = !is_code;
        } else if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            terminal::line(&Text::new().add(Role::Heading, heading.trim_start_matches('#').trim_start()));
        } else if is_code {
            terminal::line(&Text::new().plain("  ").add(Role::Accent, line));
        } else {
            paragraph = line.to_owned();
            if line.is_empty() {
                println!();
            }
        }
    }
    print_paragraph(&mut paragraph);
}

/// Formats the error for an unknown code, with similar codes.
fn unknown(word: &str) -> String {
    let words = || ErrorCode::ALL.iter().map(|code| code.as_str());
    let parts: Vec<_> = words().filter(|known| !word.is_empty() && known.contains(word)).collect();
    let near = match parts[..] {
        [] => did_you_mean(word, words()),
        _ => {
            let shown: Vec<_> = parts.iter().take(MOST_SUGGESTED).map(|word| format!("`{word}`")).collect();
            Some(format!("did you mean {}?", shown.join(" or ")))
        }
    };
    let near = near.map(|near| format!(" {near}")).unwrap_or_default();
    format!("there is no error code {word:?};{near} `backstitch explain` lists all codes")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The codes that have a page in the documentation.
    fn files() -> BTreeSet<String> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let words = names.map(|name| name.into_string().unwrap().strip_suffix(".md").unwrap().to_owned());
        words.filter(|word| word != "README").collect()
    }

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let codes: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.to_string()).collect();
        let pages: BTreeSet<_> = PAGES.iter().map(|(word, _)| (*word).to_owned()).collect();
        assert_eq!(codes, pages);
        assert_eq!(codes, files());
        assert_eq!(PAGES.len(), pages.len(), "a page is listed twice");
    }

    #[test]
    fn every_page_says_what_happened_why_what_to_do_and_what_was_kept() {
        let contents = include_str!("../../../../docs/errors/README.md");
        for (word, page) in PAGES {
            let code: ErrorCode = word.parse().unwrap();
            let mut rest = *page;
            let begin = format!("# {word}\n\n{}\n", code.summary());
            for heading in [&*begin, "## Why\n", "## What to do\n", "## What was kept\n"] {
                let (before, after) = rest.split_once(heading).unwrap_or_else(|| panic!("{word}: {heading}"));
                assert!(
                    heading == begin || before.trim().len() > 10 || heading == "## Why\n",
                    "{word}: {heading}"
                );
                rest = after;
            }
            assert!(rest.trim().len() > 10, "{word}");
            let row = format!("| [`{word}`]({word}.md) | {} |\n", code.summary());
            assert!(contents.contains(&row), "{word} is not in the README");
        }
    }

    #[test]
    fn an_unknown_code_names_near_ones() {
        assert!(unknown("stor_full").contains("`store_full`"), "{}", unknown("stor_full"));
        assert!(unknown("full").contains("`store_full`"), "{}", unknown("full"));
        assert!(!unknown("xyzzy").contains("did you mean"), "{}", unknown("xyzzy"));
        assert!(unknown("xyzzy").contains("`backstitch explain`"));
    }
}
