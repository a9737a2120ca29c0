//! A question about one waiting call, and its answer.

use backstitch::WaitingCall;
use backstitch::approval::{ApprovalRule, ApprovalScope, ApprovalVerdict, CommandWords};
use backstitch::host::check_arguments;
use backstitch::journal::{Decision, PauseReason};
use backstitch::message::OptionResult;
use backstitch::ports::CommandNeeds;
use backstitch::tool::ToolName;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::editor::edit_text;
use super::preview::preview;
use super::shown::{behind_gutter, dim, line, plain, warning};
use super::{Person, WaitingSession};
use crate::open::short;
use crate::terminal::{Role, Text, columns, exact_json};

/// Maximum number of words of a prefix that are offered.
const MOST_WORDS: usize = 8;

/// The decision of a person about a call, and a rule for later ones.
pub(super) type Answer = (Decision, Option<ApprovalRule>);

/// A question about one call.
pub(super) struct Question<'a> {
    pub(super) waiting: &'a WaitingSession<'a>,
    pub(super) call: WaitingCall,
    /// The sub-agent that made the call.
    pub(super) asker: Option<String>,
    /// Number of the call among all that wait, and their count.
    pub(super) place: Option<(usize, usize)>,
}

impl Question<'_> {
    /// Asks until there is an answer. `None` if the person decides nothing.
    pub(super) async fn ask(&self, person: &mut dyn Person) -> anyhow::Result<Option<Answer>> {
        if self.call.reason == PauseReason::Approval {
            return Ok(self.ask_approval(person).await);
        }
        let (runtime, call) = (&self.waiting.place.runtime, &self.call);
        let offered =
            if call.has_offer { runtime.offered_result(call.session, call.call).await? } else { None };
        Ok(self.ask_outcome(offered, person).await)
    }

    async fn ask_approval(&self, person: &mut dyn Person) -> Option<Answer> {
        let mut arguments = self.call.arguments.clone();
        self.show(person, &arguments);
        let mut is_edited = false;
        loop {
            let line = person.answer(&self.prompt(&arguments)).await?;
            let (key, rest) = split(&line);
            match key {
                "y" | "yes" => return Some((approval(arguments, is_edited), None)),
                "n" | "no" => {
                    let reason = reason(person, rest).await?;
                    return Some((Decision::Deny { reason }, None));
                }
                "a" | "always" => {
                    let Ok(tool) = ToolName::new(&self.call.name) else { continue };
                    let scope = self.host_scope(&arguments).unwrap_or_else(|| ApprovalScope::of_tool(tool));
                    let rule = ApprovalRule::new(ApprovalVerdict::Allow, scope);
                    return Some((approval(arguments, is_edited), Some(rule)));
                }
                "p" | "prefix" => {
                    if let Some(rule) = self.prefix(person, &arguments, rest).await {
                        return Some((approval(arguments, is_edited), Some(rule)));
                    }
                }
                "e" | "edit" => match self.edit(person, &arguments).await {
                    Some(changed) if changed != arguments => {
                        (arguments, is_edited) = (changed, true);
                        person.show(&[plain("the edited call, which runs if you approve it:")]);
                        self.show(person, &arguments);
                    }
                    Some(_) => person.show(&[dim("nothing was changed")]),
                    None => {}
                },
                "v" | "view" => person.show(&exact(&arguments)),
                "q" | "quit" => return None,
                "?" | "h" | "help" => person.show(&self.help(&arguments)),
                "" => {}
                _ => person.show(&[warning("answer with one of the letters; ? explains them")]),
            }
        }
    }

    async fn ask_outcome(&self, offered: Option<OptionResult>, person: &mut dyn Person) -> Option<Answer> {
        person.show(&[self.heading("it is unknown whether this call has happened")]);
        person.show(&whole(&self.call.arguments));
        loop {
            let line = person.answer("did it happen? [h/r/f/v/q/?] ").await?;
            let (key, rest) = split(&line);
            match key {
                "h" | "happened" => {
                    let result = match (&offered, rest) {
                        (Some(offered), "") => offered.clone(),
                        (None, "") => {
                            let text = person.answer("its result, for the model: ").await?;
                            let text = if text.trim().is_empty() { "done".to_owned() } else { text };
                            self.result(Value::String(text))
                        }
                        (_, text) => self.result(Value::String(text.to_owned())),
                    };
                    return Some((Decision::Happened { result: Box::new(result) }, None));
                }
                "r" | "retry" => return Some((Decision::Retry, None)),
                "f" | "fail" => {
                    let reason = reason(person, rest).await?;
                    return Some((Decision::Fail { reason }, None));
                }
                "v" | "view" => person.show(&exact(&self.call.arguments)),
                "q" | "quit" => return None,
                "" => {}
                _ => person.show(&lines_of(
                    "h  it happened: its files are kept, and the model gets a result\n\
                     r  run it again, after its files were restored\n\
                     f  let it fail: its files are restored, and the model gets an error\n\
                     v  show the exact arguments\n\
                     q  leave it waiting (so do Ctrl-C and Ctrl-D)",
                )),
            }
        }
    }

    fn result(&self, value: Value) -> OptionResult {
        OptionResult::new(self.call.call, &self.call.name, value)
    }

    /// Records an answer, and prints what was recorded.
    pub(super) async fn record(
        &self,
        (decision, rule): Answer,
        person: &mut dyn Person,
    ) -> anyhow::Result<()> {
        let by = Some(crate::open::place::user_name());
        let word = match &decision {
            Decision::Deny { .. } => "denied",
            Decision::Edit { .. } => "approved as edited",
            Decision::Happened { .. } => "recorded as happened",
            Decision::Retry => "to be run again",
            Decision::Fail { .. } => "recorded as failed",
            _ => "approved",
        };
        let mut line = format!("{word}: {} [{}]", self.call.name, short(self.call.call));
        // The rule first: if the process dies between the two, the rule decides about the call.
        if let Some(rule) = rule {
            line.push_str(&format!("; from now on in this session: {rule}"));
            let WaitingSession { place, session, .. } = self.waiting;
            place.runtime.add_approval_rule(*session, rule.by(by.clone())).await?;
        }
        if self.waiting.decide(&self.call, decision, by, person).await? {
            person.show(&[plain(line)]);
        }
        Ok(())
    }

    fn heading(&self, what: &str) -> Text {
        let place = self.place.map(|(index, count)| format!("call {index} of {count}: "));
        let asker = self.asker.as_ref().map(|asker| format!(", asked by {asker}"));
        let (place, asker) = (place.unwrap_or_default(), asker.unwrap_or_default());
        line(Role::Heading, format!("{place}{} {what}{asker}  [{}]", self.call.name, short(self.call.call)))
    }

    /// Prints the call: its command, or the change that it would make, or its arguments.
    fn show(&self, person: &mut dyn Person, arguments: &Value) {
        person.show(&[self.heading("needs approval")]);
        // A question that is asked again says why.
        let detail = &self.call.detail;
        if !detail.is_empty() && *detail != format!("{} needs approval", self.call.name) {
            person.show(&[warning(detail)]);
        }
        let files = self.waiting.workspace.as_ref().map(|workspace| workspace.filesystem());
        let change = files.and_then(|files| preview(self.waiting.tools, &*files, &self.call.name, arguments));
        person.show(&change.unwrap_or_else(|| whole(arguments)));
    }

    fn prompt(&self, arguments: &Value) -> String {
        let prefix = if words_of(arguments).is_some() { "/p" } else { "" };
        format!("allow it? [y/n/e/a{prefix}/v/q/?] ")
    }

    fn help(&self, arguments: &Value) -> Vec<Text> {
        let name = &self.call.name;
        let host = self.host_scope(arguments).and_then(|scope| scope.prefix().first().cloned());
        let whose = host.map_or_else(String::new, |host| format!(" to {host}"));
        let mut lines = lines_of(&format!(
            "y  run it\n\
             n  do not run it; `n TEXT` gives the model a reason\n\
             e  edit it, then look at it again\n\
             a  run it, and from now on every call of {name}{whose} in this session and its sub-agents"
        ));
        if words_of(arguments).is_some() {
            lines.extend(lines_of(
                "p  run it, and from now on commands that start with the same words (`p 2`: two words)",
            ));
        }
        lines.extend(lines_of(
            "v  show the exact arguments, as JSON\n\
             q  leave it waiting (so do Ctrl-C and Ctrl-D)",
        ));
        lines
    }

    /// Returns the scope of all calls to the host of this one, if it reads from one.
    fn host_scope(&self, arguments: &Value) -> Option<ApprovalScope> {
        ApprovalScope::of_host(ToolName::new(&self.call.name).ok()?, arguments.as_object()?)
    }

    /// Returns a rule that allows commands with the same first words. The person chooses how many.
    async fn prefix(&self, person: &mut dyn Person, arguments: &Value, rest: &str) -> Option<ApprovalRule> {
        let Some(words) = words_of(arguments) else {
            person.show(&[warning(
                "a prefix needs one plain command: no operators, variables, patterns or line ends, and no input",
            )]);
            return None;
        };
        let tool = ToolName::new(&self.call.name).ok()?;
        let most = words.as_slice().len().min(MOST_WORDS);
        // The rule allows the rights that this command asks for, and no others.
        let needs = match arguments.get("needs") {
            None | Some(Value::Null) => CommandNeeds::default(),
            Some(needs) => CommandNeeds::deserialize(needs).ok()?,
        };
        let scope = |count| ApprovalScope::of_command(tool.clone(), &words, count)?.with_needs(needs.clone());
        let typed = if rest.is_empty() {
            let offered = (1..=most).filter_map(|count| Some((count, scope(count)?)));
            let offered: Vec<_> =
                offered.map(|(count, scope)| plain(format!("  {count}  {scope}"))).collect();
            person.show(&offered);
            person.answer("how many words? (Enter for none) ").await?
        } else {
            rest.to_owned()
        };
        let count = typed.trim().parse().ok().filter(|count| (1..=most).contains(count))?;
        let scope = scope(count)?;
        if scope.is_launcher() {
            let text = format!("`{scope}` runs whatever follows, so no rule allows it");
            person.show(&[warning(text)]);
            return None;
        }
        Some(ApprovalRule::new(ApprovalVerdict::Allow, scope))
    }

    /// Opens the call in an editor: a command as it is, other arguments as JSON. Returns `None` after an error
    /// or if the person gives up.
    async fn edit(&self, person: &mut dyn Person, arguments: &Value) -> Option<Value> {
        if let Some(command) = command_of(arguments) {
            let changed = match edit_text(command, "sh").await {
                Ok(changed) => changed,
                Err(error) => {
                    person.show(&[warning(format!("{error:#}"))]);
                    person.answer("the new command, in one line (Enter for none): ").await?
                }
            };
            // Editors end the last line.
            let changed = match changed.strip_suffix('\n') {
                Some(stripped) if !command.ends_with('\n') => stripped,
                _ => changed.as_str(),
            };
            if changed.trim().is_empty() {
                return Some(arguments.clone());
            }
            let mut arguments = arguments.clone();
            arguments["command"] = Value::String(changed.to_owned());
            return self.fits(person, &arguments).then_some(arguments);
        }
        let mut text = format!("{arguments:#}\n");
        loop {
            match edit_text(&text, "json").await {
                Ok(changed) => text = changed,
                Err(error) => {
                    person.show(&[warning(format!("{error:#}"))]);
                    return None;
                }
            }
            match serde_json::from_str::<Map<String, Value>>(&text).map(Value::Object) {
                Ok(changed) if self.fits(person, &changed) => return Some(changed),
                Ok(_) => {}
                Err(error) => person.show(&[warning(format!("this is not a JSON object: {error}"))]),
            }
            let again = person.answer("edit it again? [y/n] ").await?;
            if !matches!(split(&again).0, "" | "y" | "yes") {
                return None;
            }
        }
    }

    /// Whether arguments fit the schema of the tool. What does not is printed. A tool of a sub-agent is not known
    /// here: its call would be refused when it runs, and the model would learn why.
    fn fits(&self, person: &mut dyn Person, arguments: &Value) -> bool {
        let is_own = self.call.session == self.waiting.session;
        let tool = self.waiting.tools.get(&self.call.name).filter(|_| is_own);
        let (Some(tool), Some(arguments)) = (tool, arguments.as_object()) else { return true };
        match check_arguments(&tool.spec, arguments) {
            Ok(()) => true,
            Err(error) => {
                person.show(&error.to_string().lines().map(warning).collect::<Vec<_>>());
                false
            }
        }
    }
}

fn approval(arguments: Value, is_edited: bool) -> Decision {
    match arguments {
        Value::Object(arguments) if is_edited => Decision::Edit { arguments },
        _ => Decision::Approve,
    }
}

/// Asks for a reason, unless it was given with the answer. `None` leaves the question open.
async fn reason(person: &mut dyn Person, given: &str) -> Option<Option<String>> {
    if !given.is_empty() {
        return Some(Some(given.to_owned()));
    }
    let text = person.answer("reason, for the model (Enter for none): ").await?;
    let text = text.trim();
    Some((!text.is_empty()).then(|| text.to_owned()))
}

/// Splits an answer into its first word, in lower case where it is one of ours, and the rest.
fn split(line: &str) -> (&str, &str) {
    let line = line.trim();
    let (key, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let key = match key {
        "Y" | "YES" | "Yes" => "y",
        "N" | "NO" | "No" => "n",
        other => other,
    };
    (key, rest.trim())
}

/// Returns the command of a call, if it has one.
fn command_of(arguments: &Value) -> Option<&str> {
    arguments.as_object()?.get("command")?.as_str()
}

/// Returns the words of a call that a rule about a prefix could match.
fn words_of(arguments: &Value) -> Option<CommandWords> {
    let words = CommandWords::parse(command_of(arguments)?)?;
    let has_input = arguments.get("input").and_then(Value::as_str).is_some_and(|input| !input.is_empty());
    (!has_input).then_some(words)
}

/// Formats a call completely: its command as text and its other arguments as JSON, or all of them as JSON.
fn whole(arguments: &Value) -> Vec<Text> {
    let Some(command) = command_of(arguments) else { return exact(arguments) };
    let mut lines = behind_gutter(Role::Plain, command, columns());
    if let Some(object) = arguments.as_object() {
        let others = object.iter().filter(|(name, _)| *name != "command");
        let others: Map<_, _> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !others.is_empty() {
            lines.push(plain("  with"));
            lines.extend(exact(&Value::Object(others)));
        }
    }
    lines
}

/// Formats arguments as JSON. Parsing it returns the same arguments.
fn exact(arguments: &Value) -> Vec<Text> {
    behind_gutter(Role::Plain, &exact_json(arguments), columns())
}

fn lines_of(text: &str) -> Vec<Text> {
    text.lines().map(|line| plain(format!("  {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_split_into_a_key_and_a_rest() {
        for (line, expected) in [
            ("y", ("y", "")),
            ("  Y  ", ("y", "")),
            ("n not today", ("n", "not today")),
            ("n\t not  today ", ("n", "not  today")),
            ("", ("", "")),
            ("yn", ("yn", "")),
        ] {
            assert_eq!(split(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_prefix_is_offered_for_plain_commands_only() {
        for (arguments, is_offered) in [
            (json!({"command": "git status"}), true),
            (json!({"command": "git status", "input": ""}), true),
            (json!({"command": "git status", "input": "x"}), false),
            (json!({"command": "git status; id"}), false),
            (json!({"command": 7}), false),
            (json!("git status"), false),
        ] {
            assert_eq!(words_of(&arguments).is_some(), is_offered, "{arguments}");
        }
    }
}
