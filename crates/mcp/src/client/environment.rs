//! The environment of servers that are programs.
//!
//! A server is often the work of others, and the environment of a shell holds secrets. So it gets a short list of
//! variables that programs need to find their files and to speak the language of the person, and those that its
//! specification names.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The variables that a server inherits. The marks of calls are among them: they let all processes of a call be found.
const INHERITED: [&str; 13] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    // Programs of macOS need it for texts.
    "__CF_USER_TEXT_ENCODING",
    "BACKSTITCH_CALL",
    "BACKSTITCH_GROUP",
];

/// Adds the removal of all other variables of `own` to those that a specification names.
pub(super) fn reduced(
    named: &BTreeMap<String, Option<String>>,
    own: impl Iterator<Item = OsString>,
) -> BTreeMap<String, Option<String>> {
    let mut environment = named.clone();
    for name in own {
        // A name that is not UTF-8 cannot be removed, and no program gives secrets such a name.
        let Some(name) = name.to_str() else { continue };
        let is_inherited = INHERITED.contains(&name) || name.starts_with("LC_");
        if !is_inherited && !name.is_empty() && !name.contains('=') {
            environment.entry(name.to_owned()).or_insert(None);
        }
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_short_list_and_named_variables_are_left() {
        let named = BTreeMap::from([
            ("THREAD".to_owned(), Some("red".to_owned())),
            ("HOME".to_owned(), Some("/other".to_owned())),
        ]);
        let own = ["HOME", "PATH", "LC_TIME", "TZ", "THREAD", "SECRET_OF_SHELL", "BACKSTITCH_HANDED_KEYS"];
        let reduced = reduced(&named, own.into_iter().map(OsString::from));
        assert_eq!(reduced.get("THREAD"), Some(&Some("red".to_owned())));
        assert_eq!(reduced.get("HOME"), Some(&Some("/other".to_owned())));
        for kept in ["PATH", "LC_TIME", "TZ"] {
            assert_eq!(reduced.get(kept), None, "{kept}");
        }
        for removed in ["SECRET_OF_SHELL", "BACKSTITCH_HANDED_KEYS"] {
            assert_eq!(reduced.get(removed), Some(&None), "{removed}");
        }
    }
}
