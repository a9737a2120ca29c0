//! Unified diffs with colours.

use super::style::{Role, Text};

/// Returns the lines of a unified diff, coloured by what they mean.
pub(crate) fn lines(unified: &str) -> Vec<Text> {
    let lines = unified.strip_suffix('\n').unwrap_or(unified).split('\n');
    lines.map(|line| Text::new().add(role(line), line)).collect()
}

/// Returns what a line of a unified diff means.
pub(crate) fn role(line: &str) -> Role {
    match line.as_bytes() {
        [b'+', ..] => Role::Added,
        [b'-', ..] => Role::Removed,
        [b'@', b'@', ..] => Role::Id,
        [b'\\', ..] => Role::Dim,
        _ => Role::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_colored_by_what_they_mean() {
        let lines = lines("@@ -1 +1 @@\n-old\u{1b}[2J\n+new\r\n same\n");
        let texts: Vec<_> = lines.iter().map(Text::text).collect();
        assert_eq!(texts, ["@@ -1 +1 @@", "-old\\u001b[2J", "+new\\u000d", " same"]);
        assert_eq!(lines[1], Text::new().add(Role::Removed, "-old\u{1b}[2J"));
    }
}
