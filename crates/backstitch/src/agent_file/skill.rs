//! Skills: texts that a model loads when a task needs them.
//!
//! A definition names skills and the files that hold them. It is recorded with the session, and a session may come from anyone, so the
//! definition itself opens no file: the program that builds the agent decides which files are skills, and reads them
//! ([`SkillReader`]).

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Problem;
use crate::journal::Effect;
use crate::tool::{Tool, ToolError, ToolResult, WorkspaceUse};

/// Name of the tool that loads a skill.
pub(super) const TOOL_NAME: &str = "load_skill";

/// Maximum number of skills.
const MOST: usize = 100;

/// Maximum number of characters of a description.
const LONGEST: usize = 1024;

const DESCRIPTION: &str = "Returns the instructions of a skill, by its name. The skills are listed in the system message. With `file`, \
     it returns another file of the skill, which its instructions name.";

/// A skill that an agent may load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDefinition {
    /// Name, by which a model loads it.
    pub name: String,
    /// What it is for, by which a model chooses it.
    pub description: String,
    /// The file with its text.
    pub file: PathBuf,
}

/// The text of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillText {
    /// The instructions, or the content of the file.
    pub text: String,
    /// Other files of the skill, relative to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Returns the text of a skill, or of another file that belongs to it. The error is for the model.
type ReadSkill = dyn Fn(&SkillDefinition, Option<&str>) -> Result<SkillText, String> + Send + Sync;

/// Reads the texts of skills. Without a function, there are none.
#[derive(Clone, Default)]
pub struct SkillReader(Option<Arc<ReadSkill>>);

impl SkillReader {
    /// Reads skills with a function. It has to refuse files that are not skills, since a definition may come from anyone.
    pub fn new(
        read: impl Fn(&SkillDefinition, Option<&str>) -> Result<SkillText, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(read)))
    }
}

impl fmt::Debug for SkillReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "SkillReader" } else { "no SkillReader" })
    }
}

impl PartialEq for SkillReader {
    /// A reader is not a part of what is defined.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Selects a skill.
#[derive(Deserialize, JsonSchema)]
struct LoadSkillArgs {
    /// The name of the skill.
    name: String,
    /// Another file of the skill, relative to it. Default: its instructions.
    file: Option<String>,
}

/// Builds the tool that loads skills; `None` if there are no skills.
pub(super) fn tool(skills: &[SkillDefinition], reader: &SkillReader) -> Result<Option<Tool>, Problem> {
    if skills.is_empty() {
        return Ok(None);
    }
    check(skills)?;
    let (skills, reader) = (skills.to_vec(), reader.clone());
    let built = Tool::builder(TOOL_NAME, DESCRIPTION)
        .expect("invariant: the name is one")
        .effect(Effect::Pure)
        .workspace(WorkspaceUse::None)
        .handler(move |_, wanted: LoadSkillArgs| {
            let loaded = load(&skills, &reader, &wanted);
            async move { Ok(ToolResult::default().with_value(loaded?)?) }
        });
    Ok(Some(built))
}

fn check(skills: &[SkillDefinition]) -> Result<(), Problem> {
    if skills.len() > MOST {
        return Err(Problem::new(["skill"], format!("an agent has at most {MOST} skills")));
    }
    let mut names = BTreeSet::new();
    for skill in skills {
        let problem = if skill.name.is_empty() || skill.name.len() > 64 {
            "the name of a skill has 1 to 64 characters"
        } else if !names.insert(&skill.name) {
            "two skills have this name"
        } else if skill.description.chars().count() > LONGEST {
            "the description of a skill has at most 1024 characters"
        } else {
            continue;
        };
        return Err(Problem::new(["skill"], format!("{problem}: `{}`", skill.name)));
    }
    Ok(())
}

fn load(
    skills: &[SkillDefinition],
    reader: &SkillReader,
    wanted: &LoadSkillArgs,
) -> Result<SkillText, ToolError> {
    let Some(skill) = skills.iter().find(|skill| skill.name == wanted.name) else {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        let message = format!("there is no skill of this name; there are {}", names.join(", "));
        return Err(ToolError::Validation { message });
    };
    let Some(read) = &reader.0 else {
        return Err(ToolError::of_kind("no_skill", "the texts of skills cannot be read in this program"));
    };
    read(skill, wanted.file.as_deref()).map_err(|problem| ToolError::of_kind("no_skill", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str) -> SkillDefinition {
        SkillDefinition { name: name.to_owned(), description: "Hem.".to_owned(), file: "x".into() }
    }

    #[test]
    fn a_skill_is_read_by_the_program() {
        let wanted = |name: &str| LoadSkillArgs { name: name.to_owned(), file: None };
        let skills = [skill("hem")];
        let reader = SkillReader::new(|skill, _| match skill.name.as_str() {
            "hem" => Ok(SkillText { text: "Fold twice.".to_owned(), files: Vec::new() }),
            _ => Err("it is gone".to_owned()),
        });
        assert_eq!(load(&skills, &reader, &wanted("hem")).unwrap().text, "Fold twice.");
        let unknown = load(&skills, &reader, &wanted("cut")).unwrap_err().to_string();
        assert!(unknown.contains("there are hem"), "{unknown}");
        let unread = load(&skills, &SkillReader::default(), &wanted("hem")).unwrap_err().to_string();
        assert!(unread.contains("cannot be read"), "{unread}");
        let gone = load(&[skill("cut")], &reader, &wanted("cut")).unwrap_err().to_string();
        assert!(gone.contains("it is gone"), "{gone}");
    }

    #[test]
    fn definitions_of_skills_are_limited() {
        let reader = SkillReader::default();
        assert!(tool(&[], &reader).unwrap().is_none());
        assert!(tool(&[skill("hem")], &reader).unwrap().is_some());
        assert!(tool(&[skill("hem"), skill("hem")], &reader).is_err());
        assert!(tool(&[skill("")], &reader).is_err());
        assert!(tool(&vec![skill("hem"); MOST + 1], &reader).is_err());
    }
}
