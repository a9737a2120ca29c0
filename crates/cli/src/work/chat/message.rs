//! Messages: what is attached to them, and commands and skills of files.

use backstitch::Mission;

use super::conversation::{Conversation, Flow};
use super::slash;
use crate::input::{AttachScope, AttachedMessage, MessageParts, media_refusal};
use crate::prompts::{CommandText, PromptFile, PromptKind, PromptLibrary, PromptOwner, PromptState, expand};
use crate::terminal::{self, Role, Text};

/// The mission of `/init`.
const INIT: &str = include_str!("init.md");

impl Conversation {
    /// Builds the mission of a message: `@PATH` attaches files. Prints what is attached.
    pub(super) fn mission_of(&self, typed: &str, scope: AttachScope<'_>) -> anyhow::Result<Mission> {
        Ok(self.parts_of(typed, scope)?.mission())
    }

    fn parts_of(&self, typed: &str, scope: AttachScope<'_>) -> anyhow::Result<MessageParts> {
        let message = AttachedMessage::parse(typed, scope);
        let mut parts = MessageParts::new(self.built.mission(message.text())?);
        message.attach(&mut parts, scope)?;
        if let Some(refusal) = media_refusal(&self.definition).filter(|_| parts.has_media()) {
            return Err(refusal.into());
        }
        let here = std::env::current_dir().unwrap_or_default();
        message.notices(&here).iter().for_each(|notice| eprintln!("{notice}"));
        for attached in &parts.attached {
            terminal::error_line(&Text::new().add(Role::Dim, format!("attached: {attached}")));
        }
        Ok(parts)
    }

    /// Reads the commands and skills of the user and of this project.
    pub(super) fn library(&self) -> anyhow::Result<PromptLibrary> {
        Ok(PromptLibrary::load(&self.common, &std::env::current_dir()?))
    }

    /// Sends the command of a file, with what was typed after its name. An unknown name is printed with a suggestion.
    pub(super) async fn say_command(&mut self, line: &str) -> anyhow::Result<Flow> {
        let (name, arguments) = first_word(line);
        let plain = name.trim_start_matches('/');
        #[cfg(feature = "mcp")]
        if let Some(mission) = self.server_prompt(plain, arguments).await {
            return match mission.transpose() {
                Some(mission) => self.send(mission).await,
                None => Ok(Flow::Continue),
            };
        }
        let library = self.library()?;
        let Some(file) = library.find(PromptKind::Command, plain) else {
            let named = |file: &&PromptFile| file.kind == PromptKind::Command && file.name == plain;
            match library.files.iter().find(named) {
                Some(file) => eprintln!("{}", unusable(file)),
                None => {
                    let names = library.offered(PromptKind::Command).map(PromptFile::written_name);
                    eprintln!("{}", slash::unknown(name, &names.collect::<Vec<_>>()));
                }
            }
            return Ok(Flow::Continue);
        };
        let CommandText { text, notes } = expand(file, arguments);
        notes.iter().for_each(|note| eprintln!("{note}"));
        let mission = self.mission_of(&text, scope_of(file, &library));
        self.send(mission).await
    }

    /// Sends a skill with a message, or lists the skills.
    pub(super) async fn say_skill(&mut self, line: &str) -> anyhow::Result<Flow> {
        let (name, message) = first_word(first_word(line).1);
        let library = self.library()?;
        if name.is_empty() {
            print_skills(&library);
            return Ok(Flow::Continue);
        }
        let Some(file) = library.find(PromptKind::Skill, name) else {
            let named = |file: &&PromptFile| file.kind == PromptKind::Skill && file.name == name;
            match library.files.iter().find(named) {
                Some(file) => eprintln!("{}", unusable(file)),
                None => eprintln!("there is no skill {}; `/skill` lists them", terminal::cut(name, 40)),
            }
            return Ok(Flow::Continue);
        };
        let own = format!("Use the skill `{}`.", file.name);
        let text = if message.trim().is_empty() { own } else { message.to_owned() };
        let parts = self.parts_of(&text, AttachScope::Person).map(|mut parts| {
            let directory = file.path.parent().unwrap_or(&file.path).to_string_lossy();
            parts.quote("skill", &[("name", &file.name), ("directory", &directory)], &file.body);
            parts.mission()
        });
        self.send(parts).await
    }

    /// Lets the agent write a draft of `AGENTS.md`, as an ordinary message.
    pub(super) async fn say_init(&mut self, words: &[String]) -> anyhow::Result<Flow> {
        let mut text = INIT.trim_end().to_owned();
        if !words.is_empty() {
            text.push_str(&format!("\n\nThe user adds: {}", words.join(" ")));
        }
        let text = self.built.mission(&text)?;
        self.send(Ok(text.into())).await
    }
}

/// Returns the files that a command may attach. Those of a project stay inside of it.
fn scope_of<'a>(file: &PromptFile, library: &'a PromptLibrary) -> AttachScope<'a> {
    match file.owner {
        PromptOwner::User => AttachScope::Person,
        PromptOwner::Project => AttachScope::Inside(&library.root),
    }
}

/// Says why a file cannot be used.
fn unusable(file: &PromptFile) -> String {
    let (name, path) = (file.written_name(), file.path.display());
    match &file.state {
        PromptState::NotTrusted => format!(
            "{name} is not trusted: read {path}; then `backstitch trust` in another terminal trusts the files of this project"
        ),
        PromptState::Wrong(reason) => format!("{name} cannot be used: {path}: {reason}"),
        PromptState::Shadowed(_) | PromptState::Offered => format!("{name} cannot be used"),
    }
}

fn print_skills(library: &PromptLibrary) {
    let mut is_empty = true;
    for file in library.offered(PromptKind::Skill) {
        is_empty = false;
        println!("{:<20} {}", file.name, file.front.description.as_deref().unwrap_or_default());
    }
    if is_empty {
        println!("there are no skills; a file `.backstitch/skills/NAME/SKILL.md` is one of this project");
    }
    library.untrusted_line().into_iter().for_each(|line| println!("{line}"));
}

/// Divides a line into its first word and the rest.
fn first_word(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    line.split_once(char::is_whitespace).unwrap_or((line, ""))
}
