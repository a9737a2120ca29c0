//! Rules, and their verdict about a call.

use std::cell::OnceCell;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::host::{self, HostMatch, WebHost};
use super::parsed::{CommandPart, ParsedCommand, PrefixMatch, Redirection, is_inside};
use super::scope::ApprovalScope;
use crate::extra::Extra;
use crate::ports::CommandNeeds;
use crate::session::Slice;
use crate::text_form::words;
use crate::tool_spec::asks_for_rights;

/// The argument by which a command asks for rights beyond its sandbox.
const NEEDS: &str = "needs";

/// The argument that names the directory of a command.
const DIRECTORY: &str = "directory";

/// The tools for files that do what a redirection does.
const READ: &str = "read_file";
const WRITE: &str = "write_file";

words! {
    /// What happens to a call. The later one wins.
    ApprovalVerdict = "verdict" {
        /// It runs without approval.
        Allow = "allow",
        /// A person has to approve it.
        Ask = "ask",
        /// It does not run, and the model receives an error.
        Deny = "deny",
    }
}

/// A rule. As an item of a session's slice, it is a decision of a person that holds for the session and for
/// the sub-agents of its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// What happens to the calls.
    pub verdict: ApprovalVerdict,
    /// The calls that it is about.
    pub scope: ApprovalScope,
    /// Person or process that made the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for ApprovalRule {
    const NAME: &'static str = "approval_rule";
}

impl ApprovalRule {
    /// Creates a rule.
    pub fn new(verdict: ApprovalVerdict, scope: ApprovalScope) -> Self {
        Self { verdict, scope, by: None, extra: Extra::default() }
    }

    /// Names the person or process that made the rule, if it is known.
    #[must_use]
    pub fn by(self, by: impl Into<Option<String>>) -> Self {
        Self { by: by.into(), ..self }
    }
}

impl fmt::Display for ApprovalRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} `{}`", self.verdict, self.scope)
    }
}

/// Rules that apply together.
///
/// ```
/// use backstitch_core::approval::{ApprovalRule, ApprovalRules, ApprovalVerdict};
/// use serde_json::json;
///
/// let mut rules = ApprovalRules::default();
/// rules.add(ApprovalRule::new(ApprovalVerdict::Allow, "shell git".parse()?));
/// rules.add(ApprovalRule::new(ApprovalVerdict::Deny, "shell git push".parse()?));
/// let verdict = |command: &str| {
///     let arguments = json!({"command": command});
///     rules.judge("shell", arguments.as_object().unwrap()).map(|found| found.verdict)
/// };
/// assert_eq!(verdict("git status"), Some(ApprovalVerdict::Allow));
/// assert_eq!(verdict("git push --force"), Some(ApprovalVerdict::Deny));
/// assert_eq!(verdict("ls"), None);
/// assert_eq!(verdict("git status && git log $(git rev-parse HEAD)"), Some(ApprovalVerdict::Allow));
/// assert_eq!(verdict("git status; git push"), Some(ApprovalVerdict::Deny));
/// // It may be the one that is denied, so a person decides.
/// assert_eq!(verdict("git $COMMAND"), Some(ApprovalVerdict::Ask));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovalRules(Vec<ApprovalRule>);

/// The rule that decides about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleMatch {
    /// What happens to the call.
    pub verdict: ApprovalVerdict,
    /// The rule.
    pub rule: ApprovalRule,
}

impl ApprovalRules {
    /// Adds a rule.
    pub fn add(&mut self, rule: ApprovalRule) {
        self.0.push(rule);
    }

    /// Returns these rules and others.
    #[must_use]
    pub fn and(mut self, others: impl IntoIterator<Item = ApprovalRule>) -> Self {
        self.0.extend(others);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules.
    pub fn iter(&self) -> impl Iterator<Item = &ApprovalRule> {
        self.0.iter()
    }

    /// Returns the verdict about a call of a tool, and its rule; `None` if no rule matches.
    ///
    /// Rules about commands judge all parts of the `command`: the commands of pipelines, lists and substitutions. One that
    /// is denied denies the call, and one that is asked about is asked about; so is one that names the program of such a
    /// rule by a path, or runs it by another program, such as `env`. A call is allowed if each part is, if nothing
    /// else can change what it does, such as text for its standard input, and if each file of a redirection lies below the
    /// directory of the command and a rule allows `read_file` or `write_file`.
    ///
    /// Rules about hosts judge the `url` of a call that has no `command`.
    ///
    /// A command that cannot be parsed may be one that a rule asks about or denies, so a person has to decide.
    pub fn judge(&self, tool: &str, arguments: &Map<String, Value>) -> Option<RuleMatch> {
        let parsed = OnceCell::new();
        let command = || parsed.get_or_init(|| parsed_command(arguments)).as_ref();
        let host = WebHost::of_call(arguments);
        let mut found: Option<RuleMatch> = None;
        for rule in self.of_tool(tool) {
            let verdict = match rule.scope.prefix() {
                [] => verdict_of_tool(rule, arguments),
                // All parts have to be allowed, each by any rule.
                _ if rule.verdict == ApprovalVerdict::Allow => None,
                prefix => match &host {
                    Some(host) => verdict_of_host(rule, prefix, host),
                    None => command().map_or(Some(ApprovalVerdict::Ask), |command| {
                        verdict_of_parts(rule, prefix, command)
                    }),
                },
            };
            if let Some(verdict) = verdict
                && found.as_ref().is_none_or(|found| verdict > found.verdict)
            {
                found = Some(RuleMatch { verdict, rule: rule.clone() });
            }
        }
        found.or_else(|| match &host {
            Some(host) => self.allow_host(tool, host, arguments),
            None => self.allow_parts(tool, command()?, arguments),
        })
    }

    fn of_tool<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a ApprovalRule> {
        self.0.iter().filter(move |rule| rule.scope.tool().as_str() == tool)
    }

    /// Allows a command if a rule allows each of its parts by itself. Returns the rule of the first.
    fn allow_parts(
        &self,
        tool: &str,
        command: &ParsedCommand,
        arguments: &Map<String, Value>,
    ) -> Option<RuleMatch> {
        let rule_of = |part: &CommandPart| {
            self.of_tool(tool).find(|rule| {
                let prefix = rule.scope.prefix();
                rule.verdict == ApprovalVerdict::Allow
                    && !prefix.is_empty()
                    && !rule.scope.is_launcher()
                    && part.matches(prefix) == PrefixMatch::Yes
                    && gives_rights(rule, arguments)
            })
        };
        let rules: Option<Vec<_>> = command.parts().iter().map(rule_of).collect();
        let rule = (*rules?.first()?).clone();
        let is_allowed = arguments.iter().all(|(name, value)| name == NEEDS || is_harmless(name, value))
            && command.redirections().iter().all(|file| self.allows_redirection(command, file, arguments));
        is_allowed.then_some(RuleMatch { verdict: ApprovalVerdict::Allow, rule })
    }

    /// Allows a call with an address if a rule allows its host, and nothing else can change where it reads.
    fn allow_host(&self, tool: &str, host: &WebHost, arguments: &Map<String, Value>) -> Option<RuleMatch> {
        let names_it = |rule: &&ApprovalRule| {
            let prefix = rule.scope.prefix();
            rule.verdict == ApprovalVerdict::Allow
                && rule.scope.needs().is_empty()
                && host.named_by(prefix) == HostMatch::Yes
        };
        let rule = self.of_tool(tool).find(names_it)?.clone();
        let is_allowed = arguments.iter().all(|(name, value)| host::is_harmless(name, value));
        is_allowed.then_some(RuleMatch { verdict: ApprovalVerdict::Allow, rule })
    }

    /// Whether rules allow a redirection, as a call of the tool for files that would do the same.
    fn allows_redirection(
        &self,
        command: &ParsedCommand,
        file: &Redirection,
        arguments: &Map<String, Value>,
    ) -> bool {
        let tool = if file.writes { WRITE } else { READ };
        let verdict = self.judge(tool, &Map::new()).map(|found| found.verdict);
        // The path starts in the directory that the call names.
        let directory = arguments.get(DIRECTORY).and_then(Value::as_str).unwrap_or_default();
        let is_inside = is_inside(directory) && file.is_inside() && !command.changes_directory();
        is_inside && verdict == Some(ApprovalVerdict::Allow)
    }
}

impl FromIterator<ApprovalRule> for ApprovalRules {
    fn from_iter<T: IntoIterator<Item = ApprovalRule>>(rules: T) -> Self {
        Self(rules.into_iter().collect())
    }
}

/// Returns the verdict of a rule about all calls of a tool.
fn verdict_of_tool(rule: &ApprovalRule, arguments: &Map<String, Value>) -> Option<ApprovalVerdict> {
    // A rule about all commands is about those inside of the sandbox.
    let leaves = rule.verdict == ApprovalVerdict::Allow && needs_rights(arguments);
    (!leaves).then_some(rule.verdict)
}

/// Returns the verdict of a rule that asks or denies, if one of the parts is such a command, or may be.
fn verdict_of_parts(
    rule: &ApprovalRule,
    prefix: &[String],
    command: &ParsedCommand,
) -> Option<ApprovalVerdict> {
    let matches: Vec<_> = command.parts().iter().map(|part| part.may_run(prefix)).collect();
    if matches.contains(&PrefixMatch::Yes) {
        return Some(rule.verdict);
    }
    matches.contains(&PrefixMatch::Perhaps).then_some(ApprovalVerdict::Ask)
}

/// Returns the verdict of a rule that asks or denies, if the host of a call is the one that it names, or may be.
fn verdict_of_host(rule: &ApprovalRule, prefix: &[String], host: &WebHost) -> Option<ApprovalVerdict> {
    match host.named_by(prefix) {
        HostMatch::Yes => Some(rule.verdict),
        HostMatch::Unclear => Some(ApprovalVerdict::Ask),
        HostMatch::No => None,
    }
}

/// Whether a rule gives a command all rights that it asks for. Those that cannot be read are not given.
fn gives_rights(rule: &ApprovalRule, arguments: &Map<String, Value>) -> bool {
    let given = rule.scope.needs();
    let covers = |asked| CommandNeeds::deserialize(asked).is_ok_and(|asked| given.covers(&asked));
    arguments.get(NEEDS).filter(|asked| asks_for_rights(asked)).is_none_or(covers)
}

/// Whether an argument beside the command cannot change what the command does.
fn is_harmless(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) if text.is_empty() => true,
        _ => matches!(name, "command" | DIRECTORY | "timeout_seconds" | "rollback_on_error"),
    }
}

/// Whether a command asks for rights beyond its sandbox.
fn needs_rights(arguments: &Map<String, Value>) -> bool {
    arguments.contains_key("command") && arguments.get(NEEDS).is_some_and(asks_for_rights)
}

fn parsed_command(arguments: &Map<String, Value>) -> Option<ParsedCommand> {
    ParsedCommand::parse(arguments.get("command")?.as_str()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(all: &[(ApprovalVerdict, &str)]) -> ApprovalRules {
        all.iter().map(|(verdict, scope)| ApprovalRule::new(*verdict, scope.parse().unwrap())).collect()
    }

    fn verdict(rules: &ApprovalRules, tool: &str, arguments: Value) -> Option<ApprovalVerdict> {
        rules.judge(tool, arguments.as_object().unwrap()).map(|found| found.verdict)
    }

    use ApprovalVerdict::{Allow, Ask, Deny};

    #[test]
    fn deny_wins_over_ask_and_ask_over_allow() {
        let all = rules(&[
            (Allow, "shell"),
            (Ask, "shell git"),
            (Deny, "shell git push"),
            (Allow, "shell git push x"),
        ]);
        let shell = |command: &str| verdict(&all, "shell", json!({"command": command}));
        assert_eq!(shell("ls"), Some(Allow));
        assert_eq!(shell("git status"), Some(Ask));
        assert_eq!(shell("git push x"), Some(Deny));
        assert_eq!(shell("ls; git push"), Some(Deny), "a part is the denied one");
        assert_eq!(shell("ls $(git push)"), Some(Deny));
        assert_eq!(shell("git $(ls)"), Some(Ask), "it may be the denied one");
        assert_eq!(shell("eval git push"), Some(Ask), "it may be the denied one");
        assert_eq!(shell("/usr/bin/git push"), Some(Ask), "it may be the denied one");
        assert_eq!(shell("env git push"), Some(Ask), "it may be the denied one");
        assert_eq!(verdict(&all, "write_file", json!({"path": "a"})), None);
    }

    #[test]
    fn a_prefix_allows_whole_words_only() {
        let all = rules(&[(Allow, "shell git status")]);
        let shell = |arguments: Value| verdict(&all, "shell", arguments);
        assert_eq!(shell(json!({"command": "git status --short"})), Some(Allow));
        assert_eq!(
            shell(json!({"command": "git status", "directory": "a", "timeout_seconds": 5})),
            Some(Allow)
        );
        assert_eq!(shell(json!({"command": "git status", "input": ""})), Some(Allow));
        for other in [
            json!({"command": "git statuses"}),
            json!({"command": "git"}),
            json!({"command": "git status && id"}),
            json!({"command": "git status", "input": "id"}),
            json!({"command": "git status", "environment": {"GIT_PAGER": "id"}}),
            json!({"command": ["git", "status"]}),
            json!({"path": "git status"}),
        ] {
            assert_eq!(shell(other.clone()), None, "{other}");
        }
    }

    #[test]
    fn each_part_of_a_command_has_to_be_allowed_by_itself() {
        let some = rules(&[(Allow, "shell git status"), (Allow, "shell head")]);
        let shell = |command: &str| verdict(&some, "shell", json!({"command": command}));
        for allowed in [
            "git status | head -3",
            "git status && git status; head x",
            "head $(git status)",
            "head \"$(git status | head $(head x))\"",
            "git status 2>&1 | head 2>/dev/null",
        ] {
            assert_eq!(shell(allowed), Some(Allow), "{allowed}");
        }
        for other in [
            "git status | sh",
            "id; git status",
            "git status | head > x",
            "git status < x",
            "git status &",
            "head $(id)",
            "head \"$(id)\"",
            "head $(head x; id)",
            "head $(head $(head $(id)))",
            "git $(head status)",
            "$(head x) status",
            "head `git status`",
            "head $x",
            "head x > $(git status)",
            "(git status)",
            "git status || { head x; }",
            "head <(git status)",
            "head <<x\nx",
        ] {
            assert_eq!(shell(other), None, "{other}");
        }
        assert_eq!(verdict(&some, "shell", json!({"command": "head | head", "input": "x"})), None);
        assert_eq!(verdict(&some, "other", json!({"command": "head | head"})), None);
        let launcher = rules(&[(Allow, "shell head"), (Allow, "shell sh")]);
        assert_eq!(verdict(&launcher, "shell", json!({"command": "head x | sh"})), None);
        let denied = rules(&[(Allow, "shell head"), (Deny, "shell rm")]);
        let shell = |command: &str| verdict(&denied, "shell", json!({"command": command}));
        assert_eq!(shell("head x; rm x"), Some(Deny));
        assert_eq!(shell("head $(rm x)"), Some(Deny));
        assert_eq!(shell("head x; head y"), Some(Allow), "no part is the denied one");
        assert_eq!(shell("head x | tail"), None);
        assert_eq!(shell("head *"), Some(Ask), "what cannot be parsed is asked about");
    }

    #[test]
    fn a_redirection_is_allowed_like_a_call_of_the_tool_for_files() {
        let all = |more: &[(ApprovalVerdict, &str)]| {
            rules(&[&[(Allow, "shell head"), (Allow, "shell cd"), (Allow, "write_file")], more].concat())
        };
        let (writes, reads) = (all(&[]), all(&[(Allow, "read_file")]));
        let shell = |rules: &ApprovalRules, command: &str| {
            verdict(rules, "shell", json!({"command": command, "directory": "a"}))
        };
        for allowed in ["head x > y", "head x >> a/b.txt 2>&1", "head $(head x > y)", "head x > 'a b'"] {
            assert_eq!(shell(&writes, allowed), Some(Allow), "{allowed}");
        }
        assert_eq!(shell(&writes, "head < x"), None);
        assert_eq!(shell(&reads, "head < x > y"), Some(Allow));
        for outside in [
            "head x > /etc/passwd",
            "head x > ../y",
            "head x > a/../../y",
            "head x > .git/hooks/pre-commit",
            "head x > /dev/tcp/host/80",
            "head < /etc/passwd",
            "cd /tmp && head x > y",
            "head $(cd /) > y",
            "head x > ~/y",
            "head x >| y",
            "head x &> y",
        ] {
            assert_eq!(shell(&reads, outside), None, "{outside}");
        }
        for more in [Ask, Deny] {
            assert_eq!(shell(&all(&[(more, "write_file")]), "head x > y"), None);
        }
        for directory in [".git", "a/.git/hooks", "/etc", ".."] {
            let arguments = json!({"command": "head x > y", "directory": directory});
            assert_eq!(verdict(&writes, "shell", arguments), None, "{directory}");
        }
    }

    #[test]
    fn a_rule_allows_the_rights_that_it_names() {
        let all = rules(&[
            (Allow, "shell[network,read=/home/tailor/.ssh] git push"),
            (Allow, "shell[network] git fetch"),
        ]);
        let shell =
            |command: &str, needs: Value| verdict(&all, "shell", json!({"command": command, "needs": needs}));
        let keys = json!({"network": true, "read": ["/home/tailor/.ssh/key"], "reason": "to publish"});
        assert_eq!(shell("git push", keys.clone()), Some(Allow));
        assert_eq!(shell("git push", json!(null)), Some(Allow));
        assert_eq!(shell("git fetch && git push", json!({"network": true})), Some(Allow));
        for (command, needs) in [
            ("git fetch", keys.clone()),
            ("git fetch && git push", keys),
            ("git push", json!({"sockets": true})),
            ("git push", json!({"network": "yes"})),
            ("git push; id", json!({"network": true})),
            ("git status", json!({"network": true})),
        ] {
            assert_eq!(shell(command, needs.clone()), None, "{command} {needs}");
        }
    }

    #[test]
    fn no_other_rule_allows_a_command_that_asks_for_rights() {
        let all = rules(&[(Allow, "shell"), (Allow, "shell git push"), (Deny, "shell rm")]);
        let shell =
            |command: &str, needs: Value| verdict(&all, "shell", json!({"command": command, "needs": needs}));
        assert_eq!(shell("git push", json!({"network": false, "read": []})), Some(Allow));
        assert_eq!(shell("git push", json!({"network": true})), None);
        assert_eq!(shell("ls", json!({"read": ["/home/tailor/.ssh"]})), None);
        assert_eq!(shell("rm x", json!({"network": true})), Some(Deny));
    }

    #[test]
    fn a_rule_about_a_host_judges_the_address_of_a_call() {
        let all = rules(&[
            (Allow, "fetch docs.rs"),
            (Allow, "fetch .example.com"),
            (Deny, "fetch ads.example.com"),
            (Ask, "fetch slow.example.com"),
        ]);
        let fetch = |arguments: Value| verdict(&all, "fetch", arguments);
        assert_eq!(fetch(json!({"url": "https://docs.rs/serde"})), Some(Allow));
        assert_eq!(fetch(json!({"url": "https://docs.rs/serde", "from": 100, "raw": false})), Some(Allow));
        assert_eq!(fetch(json!({"url": "https://www.example.com/"})), Some(Allow));
        assert_eq!(fetch(json!({"url": "https://ads.example.com/"})), Some(Deny));
        assert_eq!(fetch(json!({"url": "https://slow.example.com/"})), Some(Ask));
        for other in [
            json!({"url": "https://docs.rs.evil.test/"}),
            json!({"url": "https://docs.rs@evil.test/"}),
            json!({"url": "https://docs.rs:8443/"}),
            json!({"url": "https://docs.rs/", "proxy": "evil.test"}),
            json!({"url": "https://docs.rs/", "headers": {"x": "y"}}),
        ] {
            assert_eq!(fetch(other.clone()), None, "{other}");
        }
        // What cannot be read may be what is denied.
        assert_eq!(fetch(json!({"url": "docs.rs"})), Some(Ask));
        assert_eq!(verdict(&all, "other", json!({"url": "https://docs.rs/"})), None);
        assert_eq!(
            verdict(&rules(&[(Deny, "fetch")]), "fetch", json!({"url": "https://docs.rs/"})),
            Some(Deny)
        );
    }

    #[test]
    fn a_launcher_is_never_allowed_by_its_name() {
        let all = rules(&[
            (Allow, "shell sh"),
            (Allow, "shell env"),
            (Allow, "shell sudo apt"),
            (Deny, "shell bash"),
        ]);
        let shell = |command: &str| verdict(&all, "shell", json!({"command": command}));
        for command in ["sh -c id", "env id", "sudo apt update"] {
            assert_eq!(shell(command), None, "{command}");
        }
        assert_eq!(shell("bash -c id"), Some(Deny));
    }
}
