//! Rules, and their verdict about a call.

use std::cell::OnceCell;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::command::CommandWords;
use super::scope::ApprovalScope;
use crate::extra::Extra;
use crate::session::Slice;
use crate::text_form::words;
use crate::tool_spec::asks_for_rights;

/// The argument by which a command asks for rights beyond its sandbox.
const NEEDS: &str = "needs";

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
/// // Not certainly one command: it may be the one that is denied, so a person decides.
/// assert_eq!(verdict("git status; git push"), Some(ApprovalVerdict::Ask));
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
    /// Rules about commands allow a call only if its `command` is one plain command, or a pipeline or list of plain
    /// commands that are each allowed, and nothing else can change what it does, such as text for its standard input.
    /// A call that cannot be judged in this way may be one that a rule asks about or denies, so a person has to decide.
    pub fn judge(&self, tool: &str, arguments: &Map<String, Value>) -> Option<RuleMatch> {
        let of_tool = self.0.iter().filter(|rule| rule.scope.tool().as_str() == tool);
        let words = OnceCell::new();
        let mut found: Option<RuleMatch> = None;
        for rule in of_tool {
            let words = || words.get_or_init(|| words_of(arguments)).as_ref();
            let Some(verdict) = verdict_of(rule, words, arguments) else { continue };
            if found.as_ref().is_none_or(|found| verdict > found.verdict) {
                found = Some(RuleMatch { verdict, rule: rule.clone() });
            }
        }
        found.or_else(|| self.allow_parts(tool, arguments))
    }

    /// Allows a pipeline or a list if a rule allows each of its commands by itself. Returns the rule of the first.
    fn allow_parts(&self, tool: &str, arguments: &Map<String, Value>) -> Option<RuleMatch> {
        let parts = CommandWords::parse_list(arguments.get("command")?.as_str()?)?;
        let rule_of = |part: &CommandWords| {
            let is_plain =
                |rule: &&ApprovalRule| rule.scope.tool().as_str() == tool && !rule.scope.prefix().is_empty();
            self.0.iter().filter(is_plain).find(|rule| {
                rule.verdict == ApprovalVerdict::Allow
                    && verdict_of(rule, || Some(part), arguments) == Some(ApprovalVerdict::Allow)
            })
        };
        let rules: Option<Vec<_>> = parts.iter().map(rule_of).collect();
        let rule = (*rules?.first()?).clone();
        Some(RuleMatch { verdict: ApprovalVerdict::Allow, rule })
    }
}

impl FromIterator<ApprovalRule> for ApprovalRules {
    fn from_iter<T: IntoIterator<Item = ApprovalRule>>(rules: T) -> Self {
        Self(rules.into_iter().collect())
    }
}

fn verdict_of<'a>(
    rule: &ApprovalRule,
    words: impl FnOnce() -> Option<&'a CommandWords>,
    arguments: &Map<String, Value>,
) -> Option<ApprovalVerdict> {
    let prefix = rule.scope.prefix();
    if prefix.is_empty() {
        // A rule about all commands is about those inside of the sandbox.
        let leaves = rule.verdict == ApprovalVerdict::Allow && needs_rights(arguments);
        return (!leaves).then_some(rule.verdict);
    }
    match (rule.verdict, words()) {
        (ApprovalVerdict::Allow, Some(words)) => {
            let is_allowed = words.as_slice().starts_with(prefix)
                && !rule.scope.is_launcher()
                && arguments.iter().all(|(name, value)| is_harmless(name, value));
            is_allowed.then_some(ApprovalVerdict::Allow)
        }
        (ApprovalVerdict::Allow, None) => None,
        (verdict, Some(words)) => words.as_slice().starts_with(prefix).then_some(verdict),
        (_, None) => Some(ApprovalVerdict::Ask),
    }
}

/// Whether an argument beside the command cannot change what the command does.
fn is_harmless(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) if text.is_empty() => true,
        _ => matches!(name, "command" | "directory" | "timeout_seconds" | "rollback_on_error"),
    }
}

/// Whether a command asks for rights beyond its sandbox.
fn needs_rights(arguments: &Map<String, Value>) -> bool {
    arguments.contains_key("command") && arguments.get(NEEDS).is_some_and(asks_for_rights)
}

fn words_of(arguments: &Map<String, Value>) -> Option<CommandWords> {
    CommandWords::parse(arguments.get("command")?.as_str()?)
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
        assert_eq!(shell("ls; git push"), Some(Ask), "it may be the denied one");
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
    fn each_part_of_a_list_has_to_be_allowed_by_itself() {
        let some = rules(&[(Allow, "shell git status"), (Allow, "shell head")]);
        let shell = |command: &str| verdict(&some, "shell", json!({"command": command}));
        assert_eq!(shell("git status | head -3"), Some(Allow));
        assert_eq!(shell("git status && git status; head x"), Some(Allow));
        for other in
            ["git status | sh", "id; git status", "git status | head > x", "git status &", "head $(id)"]
        {
            assert_eq!(shell(other), None, "{other}");
        }
        assert_eq!(verdict(&some, "shell", json!({"command": "head | head", "input": "x"})), None);
        assert_eq!(verdict(&some, "other", json!({"command": "head | head"})), None);
        let launcher = rules(&[(Allow, "shell head"), (Allow, "shell sh")]);
        assert_eq!(verdict(&launcher, "shell", json!({"command": "head x | sh"})), None);
        let denied = rules(&[(Allow, "shell head"), (Deny, "shell rm")]);
        assert_eq!(verdict(&denied, "shell", json!({"command": "head x; rm x"})), Some(Ask));
    }

    #[test]
    fn no_rule_allows_a_command_that_asks_for_rights() {
        let all = rules(&[(Allow, "shell"), (Allow, "shell git push"), (Deny, "shell rm")]);
        let shell =
            |command: &str, needs: Value| verdict(&all, "shell", json!({"command": command, "needs": needs}));
        assert_eq!(shell("git push", json!({"network": false, "read": []})), Some(Allow));
        assert_eq!(shell("git push", json!({"network": true})), None);
        assert_eq!(shell("ls", json!({"read": ["/home/tailor/.ssh"]})), None);
        assert_eq!(shell("rm x", json!({"network": true})), Some(Deny));
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
