//! The names of prompts and sections.

use super::PromptError;

/// Largest length of a name.
const MAX_LENGTH: usize = 64;

/// Checks a namespace or a key: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or a digit.
pub(super) fn check_prompt(what: &'static str, name: &str) -> Result<(), PromptError> {
    check(
        what,
        name,
        "._-",
        "it has 1 to 64 of a-z, 0-9, `.`, `_` and `-`, and begins with a letter or digit",
    )
}

/// Checks the key of a section. It has no dots, because they join keys to paths.
pub(super) fn check_section(name: &str) -> Result<(), PromptError> {
    let what = "the key of a section";
    check(what, name, "_-", "it has 1 to 64 of a-z, 0-9, `_` and `-`, and begins with a letter or digit")
}

fn check(what: &'static str, name: &str, signs: &str, reason: &'static str) -> Result<(), PromptError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let legal = name.len() <= MAX_LENGTH
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|byte| plain(byte) || signs.as_bytes().contains(&byte));
    if legal {
        Ok(())
    } else {
        let name = name.chars().take(80).collect();
        Err(PromptError::InvalidName { what, name, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_and_begin_with_a_letter_or_digit() {
        let long = "x".repeat(MAX_LENGTH);
        for name in ["a", "0", "a.b-c_d", &long] {
            assert!(check_prompt("a key", name).is_ok(), "{name}");
        }
        for name in ["", ".a", "-a", "A", "a b", "ä", "a/b", &format!("{long}x")] {
            assert!(check_prompt("a key", name).is_err(), "{name}");
        }
        assert!(check_section("a-b_c").is_ok());
        assert!(check_section("a.b").is_err(), "a dot joins keys");
    }
}
