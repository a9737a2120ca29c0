//! Settings files of git: which of their entries make git run a program or read another file.
//!
//! The format is that of `git config`: sections, keys, quoted values, continued lines and comments. Only a
//! list of entries is harmless, such as remotes and tracking branches, which ordinary work writes. All others
//! are sensitive, since new versions of git add keys that name programs. A file that cannot be parsed is
//! sensitive as a whole.

use std::ops::Range;

/// An entry of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// Section, subsection and key, with dots between them. Section and key are in lower case.
    pub(super) key: String,
    value: Vec<u8>,
    /// Position of the entry in the file, with its line end.
    range: Range<usize>,
}

/// A line that git would not accept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidSettings;

/// Keys of sections without a subsection.
const PLAIN: [(&str, &[&str]); 25] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "symlinks",
            "precomposeunicode",
            "autocrlf",
            "eol",
            "safecrlf",
            "sparsecheckout",
            "sparsecheckoutcone",
            "abbrev",
            "quotepath",
            "trustctime",
            "untrackedcache",
            "preloadindex",
            "longpaths",
        ],
    ),
    (
        "extensions",
        &[
            "objectformat",
            "compatobjectformat",
            "refstorage",
            "worktreeconfig",
            "partialclone",
            "preciousobjects",
            "relativeworktrees",
            "noop",
        ],
    ),
    ("user", &["name", "email"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote", "followtags"]),
    ("fetch", &["prune", "prunetags"]),
    ("rebase", &["autostash", "autosquash", "updaterefs"]),
    ("merge", &["ff", "conflictstyle"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("checkout", &["defaultremote"]),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("remote", &["pushdefault"]),
    ("submodule", &["active", "recurse", "fetchjobs", "propagatebranches"]),
    ("color", &["ui", "status", "diff", "branch"]),
    ("diff", &["renames", "algorithm", "mnemonicprefix", "colormoved", "submodule", "noprefix"]),
    ("status", &["showuntrackedfiles", "submodulesummary"]),
    ("gc", &["auto"]),
    ("index", &["version", "threads", "sparse"]),
    ("feature", &["manyfiles"]),
    ("maintenance", &["auto", "strategy"]),
    ("worktree", &["guessremote", "userelativepaths"]),
    ("lfs", &["repositoryformatversion"]),
];

/// Keys of sections with a subsection.
const NAMED: [(&str, &[&str]); 3] = [
    (
        "branch",
        &["remote", "merge", "rebase", "pushremote", "description", "vscode-merge-base", "gh-merge-base"],
    ),
    (
        "remote",
        &[
            "url",
            "pushurl",
            "fetch",
            "push",
            "tagopt",
            "prune",
            "prunetags",
            "mirror",
            "promisor",
            "partialclonefilter",
            "skipdefaultupdate",
            "skipfetchall",
            "gh-resolved",
        ],
    ),
    ("submodule", &["url", "active", "branch", "update", "ignore"]),
];

impl Setting {
    /// True if git runs nothing because of the entry, and reads nothing else.
    fn is_harmless(&self) -> bool {
        let (Some((section, _)), Some((_, key))) = (self.key.split_once('.'), self.key.rsplit_once('.'))
        else {
            return false;
        };
        let is_named = self.key.len() > section.len() + 1 + key.len();
        let listed: &[_] = if is_named { &NAMED } else { &PLAIN };
        let is_listed = listed.iter().any(|(known, keys)| *known == section && keys.contains(&key));
        // An address of the form `helper::address` runs a helper, and `!` starts a command.
        is_listed && !self.value.starts_with(b"!") && !self.value.windows(2).any(|two| two == b"::")
    }

    /// True if the entry names the working tree of a submodule, which git itself writes.
    fn is_relative_worktree(&self) -> bool {
        self.key == "core.worktree" && !self.value.starts_with(b"/")
    }

    fn pair(&self) -> (&str, &[u8]) {
        (&self.key, &self.value)
    }
}

/// The entries of a settings file.
#[derive(Debug)]
pub(super) struct Settings {
    entries: Vec<Setting>,
    /// Whether the repository is that of a submodule.
    is_module: bool,
}

impl Settings {
    pub(super) fn parse(bytes: &[u8], is_module: bool) -> Result<Self, InvalidSettings> {
        Ok(Self { entries: Parser { bytes, at: 0 }.entries()?, is_module })
    }

    /// Entries that are not harmless, in their order, since the last one of a key counts.
    pub(super) fn sensitive(&self) -> impl Iterator<Item = &Setting> {
        let is_module = self.is_module;
        self.entries
            .iter()
            .filter(move |entry| !(entry.is_harmless() || is_module && entry.is_relative_worktree()))
    }

    /// Returns whether the sensitive entries are the same, in the same order.
    pub(super) fn is_as_sensitive(&self, other: &Self) -> bool {
        self.sensitive().map(Setting::pair).eq(other.sensitive().map(Setting::pair))
    }

    /// Keys of the entries that only one of two files has. Values are not shown, since they may be secrets.
    pub(super) fn changed_keys(&self, later: &Self) -> Vec<String> {
        let missing = |these: &Self, others: &Self| -> Vec<String> {
            let is_missing = |one: &&Setting| !others.entries.iter().any(|other| one.pair() == other.pair());
            these.entries.iter().filter(is_missing).map(|one| one.key.clone()).collect()
        };
        let mut keys = missing(self, later);
        keys.extend(missing(later, self));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns a file without its sensitive entries.
    pub(super) fn without_sensitive(&self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for entry in self.sensitive() {
            kept.extend_from_slice(&bytes[from..entry.range.start]);
            kept.push(b'\n');
            from = entry.range.end;
        }
        kept.extend_from_slice(&bytes[from..]);
        kept
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn entries(mut self) -> Result<Vec<Setting>, InvalidSettings> {
        if self.bytes.starts_with("\u{feff}".as_bytes()) {
            self.at = 3;
        }
        let mut entries = Vec::new();
        let mut section: Option<String> = None;
        while let Some(byte) = self.peek() {
            match byte {
                b'#' | b';' => self.skip_line(),
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'[' => section = Some(self.section()?),
                byte if byte.is_ascii_alphabetic() => {
                    let start = self.at;
                    let key = self.word(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                    let value = self.value()?;
                    let section = section.as_ref().ok_or(InvalidSettings)?;
                    entries.push(Setting { key: format!("{section}.{key}"), value, range: start..self.at });
                }
                _ => return Err(InvalidSettings),
            }
        }
        Ok(entries)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.bytes[start..self.at]).to_ascii_lowercase()
    }

    fn section(&mut self) -> Result<String, InvalidSettings> {
        self.at += 1;
        let mut name = self.word(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.peek() == Some(b'"') {
            self.at += 1;
            let mut subsection = Vec::new();
            loop {
                match self.next().ok_or(InvalidSettings)? {
                    b'"' => break,
                    b'\n' => return Err(InvalidSettings),
                    b'\\' => subsection.push(self.next().ok_or(InvalidSettings)?),
                    byte => subsection.push(byte),
                }
            }
            name = format!("{name}.{}", String::from_utf8_lossy(&subsection));
        }
        if self.next() == Some(b']') && !name.is_empty() { Ok(name) } else { Err(InvalidSettings) }
    }

    /// Reads the rest of an entry, with its line end.
    fn value(&mut self) -> Result<Vec<u8>, InvalidSettings> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
        match self.next() {
            None | Some(b'\n') => return Ok(b"true".to_vec()),
            Some(b'#' | b';') => {
                self.skip_line();
                return Ok(b"true".to_vec());
            }
            Some(b'=') => {}
            Some(_) => return Err(InvalidSettings),
        }
        let mut value = Vec::new();
        let mut is_quoted = false;
        // Spaces at the end that are not quoted do not belong to the value.
        let mut length = 0;
        loop {
            match self.next() {
                None | Some(b'\n') if !is_quoted => break,
                None | Some(b'\n') => return Err(InvalidSettings),
                Some(b'"') => {
                    is_quoted = !is_quoted;
                    length = value.len();
                    continue;
                }
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'\r') if self.peek() == Some(b'\n') => continue,
                Some(b'\\') => match self.next() {
                    Some(b'\n') => continue,
                    Some(b'\r') if self.peek() == Some(b'\n') => {
                        self.at += 1;
                        continue;
                    }
                    Some(b'n') => value.push(b'\n'),
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(byte @ (b'"' | b'\\')) => value.push(byte),
                    _ => return Err(InvalidSettings),
                },
                Some(byte) if byte.is_ascii_whitespace() && !is_quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                Some(byte) => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensitive(text: &str) -> Vec<String> {
        let settings = Settings::parse(text.as_bytes(), false).unwrap();
        settings.sensitive().map(|entry| entry.key.clone()).collect()
    }

    #[test]
    fn what_git_itself_writes_is_harmless() {
        let written = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\
             \turl = git@host:team/project.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"feature/x.y\"]\n\tremote = origin\n\tmerge = refs/heads/x ; a comment\n\
             [submodule \"a\"]\n\tactive = true\n\turl = ../a\n\tupdate = rebase\n[user]\n\tname = \"A \\\" B\"\n";
        assert!(sensitive(written).is_empty(), "{:?}", sensitive(written));
    }

    #[test]
    fn what_runs_a_program_is_sensitive_however_it_is_written() {
        for (text, key) in [
            ("[core]\nfsmonitor = x", "core.fsmonitor"),
            ("[CORE] FsMonitor=x", "core.fsmonitor"),
            ("\u{feff}[core]\r\n  hooksPath = x\r\n", "core.hookspath"),
            ("[core]\nsshCommand = \\\n x\n", "core.sshcommand"),
            ("[alias]\nst = !x", "alias.st"),
            ("[include]\npath = x", "include.path"),
            ("[includeIf \"gitdir:x\"]\npath = x", "includeif.gitdir:x.path"),
            ("[filter \"lfs\"]\nclean = x", "filter.lfs.clean"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[diff \"a\"]\ntextconv = x", "diff.a.textconv"),
            ("[merge \"a\"]\ndriver = x", "merge.a.driver"),
            ("[credential]\nhelper = x", "credential.helper"),
            ("[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack"),
            ("[remote \"o\"]\nurl = ext::sh -c x", "remote.o.url"),
            ("[submodule \"o\"]\nupdate = !x", "submodule.o.update"),
            ("[submodule.o]\nupdate = \"!x\"", "submodule.o.update"),
            ("[protocol \"ext\"]\nallow = always", "protocol.ext.allow"),
            ("[core]\nworktree = ../..", "core.worktree"),
            ("[pager]\nstatus = x", "pager.status"),
            ("[gpg]\nprogram = x", "gpg.program"),
        ] {
            assert_eq!(sensitive(text), [key], "{text}");
        }
    }

    #[test]
    fn invalid_lines_are_refused() {
        for text in ["key = 1", "[core\nx = 1", "[core]\n1 = 2", "[core]\nx = \"1\n", "[]\nx = 1", "[a]\nx y"]
        {
            assert_eq!(Settings::parse(text.as_bytes(), false).err(), Some(InvalidSettings), "{text}");
        }
    }

    #[test]
    fn sensitive_entries_are_removed_and_others_stay() {
        let text = b"[core] fsmonitor = a\n\tbare = false\n\thooksPath = \\\n\tb\n[user]\n\tname = N\n";
        let settings = Settings::parse(text, false).unwrap();
        let kept = settings.without_sensitive(text);
        let left = Settings::parse(&kept, false).unwrap();
        assert_eq!(left.sensitive().count(), 0);
        let keys: Vec<_> = left.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["core.bare", "user.name"], "{}", String::from_utf8_lossy(&kept));
    }

    #[test]
    fn the_order_of_sensitive_entries_matters_and_changed_keys_are_named() {
        let parse = |text: &str| Settings::parse(text.as_bytes(), false).unwrap();
        let (one, two) = (parse("[core]\neditor=a\neditor=b\n"), parse("[core]\neditor=b\neditor=a\n"));
        assert!(!one.is_as_sensitive(&two));
        let three = parse("[core]\neditor=a\neditor=b\n[user]\nname=N\n");
        assert!(one.is_as_sensitive(&three));
        assert_eq!(one.changed_keys(&three), ["user.name"]);
    }
}
