//! Untrusted patterns: globs and regular expressions, within limits.
//!
//! Both are compiled by an engine that takes linear time, so a pattern can be wrong but not slow. The size of
//! a compiled pattern is limited.

use backstitch_core::ports::FilesystemError;
use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};

const PATTERN_BYTES: usize = 4_096;
const COMPILED_BYTES: usize = 8 * 1024 * 1024;
const NESTING: u32 = 100;

fn unusable(pattern: &str, reason: impl Into<String>) -> FilesystemError {
    FilesystemError::Pattern { pattern: pattern.chars().take(200).collect(), reason: reason.into() }
}

fn check_length(pattern: &str) -> Result<(), FilesystemError> {
    if pattern.len() > PATTERN_BYTES {
        Err(unusable(pattern, format!("it is longer than {PATTERN_BYTES} bytes")))
    } else {
        Ok(())
    }
}

/// Compiles a regular expression for lines of files.
pub(super) fn line_regex(pattern: &str, ignore_case: bool) -> Result<Regex, FilesystemError> {
    check_length(pattern)?;
    compile(pattern, ignore_case).map_err(|error| unusable(pattern, error.to_string()))
}

fn compile(expression: &str, ignore_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(expression)
        .case_insensitive(ignore_case)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .nest_limit(NESTING)
        .build()
}

/// A compiled glob for paths.
#[derive(Debug)]
pub(super) struct PathPattern {
    regex: Regex,
    /// Leading names without special characters.
    literal: Vec<String>,
    has_slash: bool,
}

impl PathPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, FilesystemError> {
        check_length(pattern)?;
        if pattern.is_empty() {
            return Err(unusable(pattern, "it is empty"));
        }
        if pattern.starts_with('/') || pattern.split('/').any(|segment| segment == "..") {
            return Err(unusable(pattern, "it leads out of the searched directory"));
        }
        let pattern = pattern.trim_start_matches("./");
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| unusable(pattern, error.kind().to_string()))?;
        // The expression is compiled here and not by the glob library, which panics for a large one.
        let regex = compile(glob.regex(), false);
        let regex = regex.map_err(|_| unusable(pattern, "it is too large when compiled"))?;
        let special = |segment: &&str| segment.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let mut segments: Vec<&str> = pattern.split('/').collect();
        segments.pop();
        let literal =
            segments.into_iter().take_while(|segment| !special(segment)).map(str::to_owned).collect();
        Ok(Self { regex, literal, has_slash: pattern.contains('/') })
    }

    /// Leading directories: every match is below them.
    pub(super) fn literal(&self) -> &[String] {
        &self.literal
    }

    /// Returns whether it matches a path.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.regex.is_match(path.as_bytes())
    }

    /// Returns whether it matches a path, or only the last name if the pattern contains no `/`.
    pub(super) fn selects(&self, path: &str) -> bool {
        match (self.has_slash, path.rsplit_once('/')) {
            (false, Some((_, name))) => self.matches(name),
            (false, None) | (true, _) => self.matches(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths_as_a_shell_does() {
        for (pattern, path, wanted) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "a/b.rs", false),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "a/b/c.rs", true),
            ("./src/*", "src/x", true),
            ("src/**", "src/a/b", true),
            ("src/**", "src", false),
            ("{a,b}/?.txt", "b/x.txt", true),
            ("[a-c]", "d", false),
            ("ä*", "äö", true),
            ("\\*", "*", true),
        ] {
            assert_eq!(PathPattern::new(pattern).unwrap().matches(path), wanted, "{pattern} {path}");
        }
        assert_eq!(PathPattern::new("a/b/*/c").unwrap().literal(), ["a", "b"]);
        assert_eq!(PathPattern::new("a/b").unwrap().literal(), ["a"]);
        assert!(PathPattern::new("{a/b,c}").unwrap().literal().is_empty());
    }

    #[test]
    fn hostile_patterns_are_refused() {
        let long = "x".repeat(PATTERN_BYTES + 1);
        let nested = "{a,".repeat(1_000) + &"}".repeat(1_000);
        for pattern in ["", "/etc/*", "../*", "a/../b", "[", "{a", "a\\", &long, &nested] {
            let result = PathPattern::new(pattern);
            assert!(matches!(result, Err(FilesystemError::Pattern { .. })), "{pattern:.20}");
        }
        let huge = r"\w{1000}{1000}";
        let deep = "(".repeat(1_000) + &")".repeat(1_000);
        for pattern in ["(", "*", r"(?=a)", r"\1", huge, &deep, &long] {
            let result = line_regex(pattern, false);
            assert!(matches!(result, Err(FilesystemError::Pattern { .. })), "{pattern:.20}");
        }
    }
}
