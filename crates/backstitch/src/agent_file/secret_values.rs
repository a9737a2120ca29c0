//! Values that may be secrets, by the names of their variables and by their shapes. It is a guess for people who write and read files: a secret with
//! an ordinary name and an ordinary shape passes.

use url::Url;

/// Ends of words in names of secrets.
const SECRET_WORDS: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "AUTHORIZATION"];

/// First words of names of quantities, such as `MAX_TOKENS`.
const QUANTITIES: [&str; 8] = ["MAX", "MIN", "NUM", "NUMBER", "COUNT", "TOTAL", "LIMIT", "DEFAULT"];

/// Last words of names that say where a secret is, or how much there is of it, such as `TOKEN_FILE`.
const DESCRIPTIONS: [&str; 11] =
    ["FILE", "PATH", "DIR", "DIRECTORY", "LIMIT", "COUNT", "LENGTH", "SIZE", "TTL", "TIMEOUT", "TYPE"];

/// How the keys of well-known services begin.
const PREFIXES: [&str; 15] = [
    "sk-",
    "pk-",
    "rk_",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
    "-----BEGIN",
];

/// The shortest key with such a beginning.
const SHORTEST_KEY: usize = 12;

/// The shortest word of letters and digits that is not shown to people.
const SHORTEST_OPAQUE: usize = 24;

/// Ends of names of variables that choose which code a program runs, such as `LD_PRELOAD` and `NODE_OPTIONS`. Their values are always shown.
const CODE_CHOICES: [&str; 8] = ["PATH", "PRELOAD", "AUDIT", "OPTIONS", "OPTS", "ENV", "HOME", "STARTUP"];

/// The most characters of a value that are shown.
const LONGEST_SHOWN: usize = 400;

/// Whether the name of a variable says that its value is a secret. Numbers and switches are not keys, but they may be passwords.
pub fn names_secret(variable: &str, value: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    let words: Vec<&str> = name.split(|one: char| !one.is_ascii_alphanumeric()).collect();
    let is_of = |list: &[&str], word: Option<&&str>| word.is_some_and(|word| list.contains(word));
    if is_of(&QUANTITIES, words.first()) || is_of(&DESCRIPTIONS, words.last()) {
        return false;
    }
    let is_plain =
        value.parse::<f64>().is_ok() || matches!(value, "true" | "false" | "yes" | "no" | "on" | "off");
    words.iter().any(|word| {
        let word = word.strip_suffix('S').unwrap_or(word);
        let is_password = word.contains("PASS") || word.contains("SECRET");
        SECRET_WORDS.iter().any(|end| word.ends_with(end)) && (is_password || !is_plain)
    })
}

/// Whether a value has the shape of a key, or is an address with a password.
pub(super) fn has_secret_shape(value: &str) -> bool {
    let is_key = value.len() >= SHORTEST_KEY && PREFIXES.iter().any(|prefix| value.starts_with(prefix));
    is_key || Url::parse(value).is_ok_and(|url| url.password().is_some())
}

/// Returns a value as people see it before they decide about a file.
pub(super) fn shown(variable: &str, value: &str) -> String {
    let is_opaque = value.len() >= SHORTEST_OPAQUE
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte))
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !value.starts_with('/');
    let name = variable.to_ascii_uppercase();
    let is_opaque = is_opaque && !CODE_CHOICES.iter().any(|end| name.ends_with(end));
    if is_opaque || names_secret(variable, value) || has_secret_shape(value) {
        return format!("{variable} (not shown, because it may be a secret)");
    }
    let line = backstitch_core::text::one_line(value, LONGEST_SHOWN);
    format!("{variable}={line:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_and_quantities_are_not() {
        for (name, value) in [
            ("GITHUB_TOKEN", "x"),
            ("githubToken", "x"),
            ("API_KEYS", "x"),
            ("OAUTH", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("DB_PASSWORD", "1234"),
            ("AUTHORIZATION", "x"),
        ] {
            assert!(names_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("MAX_TOKENS", "4096"),
            ("MAX_TOKENS", "auto"),
            ("TOKEN_LIMIT", "all"),
            ("TOKENS", "4096"),
            ("TOKENIZERS_PARALLELISM", "x"),
            ("KEYBOARD", "us"),
            ("KEYWORDS", "a"),
            ("GIT_AUTHOR_NAME", "Ada"),
            ("KEY_FILE", "/run/key"),
            ("USE_AUTH", "true"),
            ("LOG_LEVEL", "debug"),
        ] {
            assert!(!names_secret(name, value), "{name}");
        }
    }

    #[test]
    fn values_are_shown_unless_they_may_be_secrets() {
        assert_eq!(shown("LOG_LEVEL", "debug"), "LOG_LEVEL=\"debug\"");
        assert_eq!(
            shown("ROOT", "/srv/projects/2026/a-long-path-of-a-shop"),
            "ROOT=\"/srv/projects/2026/a-long-path-of-a-shop\""
        );
        // What chooses the code of a program is neither hidden nor cut.
        let path = "vendor1/modules/of/a/hostile/project";
        assert_eq!(shown("PYTHONPATH", path), format!("PYTHONPATH={path:?}"));
        let options = format!("{}--require ./other.js", "--no-warnings ".repeat(10));
        assert_eq!(shown("NODE_OPTIONS", &options), format!("NODE_OPTIONS={options:?}"));
        assert_eq!(shown("NOTE", "a\n\u{1b}[2Jb"), "NOTE=\"a [2Jb\"");
        for (name, value) in [
            ("X", "sk-0123456789"),
            ("X", "postgres://ada:thread@host/db"),
            ("X", "9f86d081884c7d659a2feaa0c55ad015"),
            ("GITHUB_TOKEN", "short"),
        ] {
            let text = shown(name, value);
            assert!(!text.contains(value) && text.contains("not shown"), "{text}");
        }
    }
}
