//! Patterns from outside: globs and regular expressions, within limits.
//!
//! Both are compiled by an engine that takes time linear in what it searches, so a pattern can be wrong but not slow. What a
//! compiled pattern may weigh is limited.

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
    match pattern.len() > PATTERN_BYTES {
        true => Err(unusable(pattern, format!("it is longer than {PATTERN_BYTES} bytes"))),
        false => Ok(()),
    }
}

/// A regular expression for the lines of files.
pub(super) fn line_regex(pattern: &str, ignore_case: bool) -> Result<Regex, FilesystemError> {
    check_length(pattern)?;
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .nest_limit(NESTING)
        .build()
        .map_err(|error| unusable(pattern, error.to_string()))
}

/// A pattern for paths.
#[derive(Debug)]
pub(super) struct PathPattern {
    regex: Regex,
    /// The names at its start in which nothing is special.
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
            return Err(unusable(pattern, "it leads out of the directory that is searched"));
        }
        let pattern = pattern.trim_start_matches("./");
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| unusable(pattern, error.kind().to_string()))?;
        // The expression is compiled here and not there, because there a large one panics.
        let regex = RegexBuilder::new(glob.regex())
            .size_limit(COMPILED_BYTES)
            .dfa_size_limit(COMPILED_BYTES)
            .nest_limit(NESTING)
            .build()
            .map_err(|_| unusable(pattern, "it is too large once it is compiled"))?;
        let special = |segment: &&str| segment.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let mut segments: Vec<&str> = pattern.split('/').collect();
        segments.pop();
        let literal =
            segments.into_iter().take_while(|segment| !special(segment)).map(str::to_owned).collect();
        Ok(Self { regex, literal, has_slash: pattern.contains('/') })
    }

    /// The directories at its start: whatever matches is below them.
    pub(super) fn literal(&self) -> &[String] {
        &self.literal
    }

    /// Whether it matches a path.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.regex.is_match(path.as_bytes())
    }

    /// Whether it matches a path, or only its last name if it says nothing of directories.
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
