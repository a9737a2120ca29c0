//! Places of secrets: where programs keep the keys, tokens and histories of a person.
//!
//! They are paths below the home directory. The last name of a place may hold one `*`, for any characters. The list is
//! about what programs are known to write; a person extends it by `hide`.

/// The places, relative to the home directory.
pub const SECRET_PLACES: &[&str] = &[
    // Keys, and logins of machines and services.
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/containers/auth.json",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    // Tokens of registries.
    ".npmrc",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials*",
    ".config/pypoetry/auth.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".huggingface/token",
    ".cache/huggingface/token",
    // Keyrings and stores of passwords.
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".password-store",
    ".local/share/gopass",
    ".config/Bitwarden*",
    ".config/1Password",
    ".config/keepassxc",
    // Histories of what was typed.
    ".*_history",
    ".histfile",
    ".local/share/fish/fish_history",
    ".local/share/atuin",
    ".local/state/bash/history",
    ".local/state/zsh/history",
    // Cookies and logins of browsers and mail programs.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome*",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge*",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    // Settings, trust and stores of this program.
    ".config/backstitch",
    ".local/share/backstitch",
    ".local/state/backstitch",
];

/// Returns whether a name is one of a place, whose last name is `pattern`.
pub fn is_place(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use super::*;

    #[test]
    fn places_stay_below_the_home_directory_and_have_one_pattern_at_most() {
        for place in SECRET_PLACES {
            let parts: Vec<_> = Path::new(place).components().collect();
            assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{place}");
            let (directory, name) = place.rsplit_once('/').unwrap_or(("", place));
            assert!(!directory.contains('*') && name.matches('*').count() <= 1, "{place}");
            assert!(name.len() >= 2, "{place} is more than a place");
        }
    }

    #[test]
    fn a_pattern_stands_for_names_with_its_begin_and_its_end() {
        assert!(is_place(".netrc", ".netrc") && !is_place(".netrc", ".netrc2"));
        assert!(is_place("credentials*", "credentials") && is_place("credentials*", "credentials.toml"));
        assert!(is_place(".*_history", ".bash_history") && !is_place(".*_history", ".history"));
        assert!(!is_place("ab*ba", "aba"), "begin and end do not overlap");
    }
}
