//! Commands that discard work in git.
//!
//! A rewind restores the files that they overwrite, but not what only git knows: the index, the stash, and branches. So the
//! person can be asked before they run. This is a reminder and not a barrier: a command can hide what it does, and one that
//! only looks like such a command is asked about too.

/// Marks that end a command of a shell. They count inside of quotes too, where asking once too often does no harm.
const ENDS: [char; 8] = [';', '&', '|', '\n', '(', ')', '`', '{'];

/// Options of git before its command that have a value of their own.
const WITH_VALUE: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// Returns what a command of a shell discards, if it is known to discard something.
pub(super) fn discards(command: &str) -> Option<&'static str> {
    command.split(ENDS).find_map(|part| {
        let words =
            shlex::split(part).unwrap_or_else(|| part.split_whitespace().map(str::to_owned).collect());
        let git = words.iter().position(|word| word == "git" || word.ends_with("/git"))?;
        let mut rest = words.get(git + 1..)?.iter().map(String::as_str);
        let name = loop {
            let word = rest.next()?;
            if WITH_VALUE.contains(&word) {
                rest.next();
            } else if !word.starts_with('-') {
                break word;
            }
        };
        discarded(name, &rest.collect::<Vec<_>>())
    })
}

fn discarded(name: &str, arguments: &[&str]) -> Option<&'static str> {
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(word));
    // `-fd` is `-f -d`.
    let has_letter = |letter: char| {
        let is_short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
        arguments.iter().filter(is_short).any(|word| word.contains(letter))
    };
    let discards_changes = "changes that are not committed";
    match name {
        "reset" if has(&["--hard", "--merge"]) => Some(discards_changes),
        "checkout" if has(&["--", ".", "--force"]) || has_letter('f') => Some(discards_changes),
        "switch" if has(&["--discard-changes", "--force"]) || has_letter('f') => Some(discards_changes),
        "restore" if !has(&["--staged", "-S"]) || has(&["--worktree", "-W"]) => Some(discards_changes),
        "clean" if (has(&["--force"]) || has_letter('f')) && !(has(&["--dry-run"]) || has_letter('n')) => {
            Some("files that are not tracked")
        }
        "stash" if has(&["drop", "clear"]) => Some("stashed changes"),
        "branch" if has_letter('D') || (has(&["--delete", "-d"]) && has(&["--force", "-f"])) => {
            Some("commits that no other branch has")
        }
        "push" if has_letter('f') || arguments.iter().any(|word| forces(word)) => {
            Some("commits of the remote repository")
        }
        _ => None,
    }
}

fn forces(argument: &str) -> bool {
    argument.starts_with("--force") || argument == "--mirror" || argument.starts_with('+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_discard_work_are_found() {
        for command in [
            "git reset --hard",
            "cd src && git reset --hard HEAD~1",
            "git -C /p -c a=b reset --hard origin/main",
            "/usr/bin/git checkout -- a.txt",
            "git checkout .",
            "git checkout -f main",
            "git switch --discard-changes main",
            "git restore a.txt",
            "git restore --staged --worktree .",
            "git clean -fdx",
            "git clean --force",
            "git stash drop",
            "(git stash clear)",
            "git branch -D topic",
            "git push --force-with-lease origin main",
            "git push origin +main",
            "true; sudo git push -f",
            "git commit -m 'x\ngit reset --hard",
        ] {
            assert!(discards(command).is_some(), "{command}");
        }
    }

    #[test]
    fn other_commands_are_not() {
        for command in [
            "",
            "git",
            "git status",
            "git reset HEAD a.txt",
            "git checkout main",
            "git checkout -b topic",
            "git restore --staged a.txt",
            "git clean -nfd",
            "git stash",
            "git branch -d merged",
            "git push origin main",
            "echo reset --hard",
            "rg 'git log' .",
        ] {
            assert_eq!(discards(command), None, "{command}");
        }
    }
}
