//! Skills for a model: the list in the system message, and the texts that it loads.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;

use backstitch::agent_file::{AgentDefinition, SkillDefinition, SkillReader, SkillText};

use super::front_matter::FrontMatter;
use super::library::{IS_TRUSTED, PromptFile, PromptLibrary, SKILL, entries_of, found_in, read};
use super::place::{PromptKind, PromptOwner, places};
use crate::trust::Subject;

/// Maximum number of skills that a model is offered.
const MOST_SKILLS: usize = 60;

/// Maximum number of characters of a description in the system message, which is sent with every request.
const LONGEST_LINE: usize = 300;

/// Maximum number of other files of a skill that are named.
const MOST_FILES: usize = 50;

/// Name of the tool that loads a skill.
const TOOL_NAME: &str = "load_skill";

/// Adds the skills to an agent: their list to its system message, and the tool that loads them. Returns a line for people;
/// `None` if there are no skills, or if the agent has another tool of this name.
pub(crate) fn offer(library: &PromptLibrary, definition: &mut AgentDefinition) -> Option<String> {
    let is_taken = definition.command_tools.iter().any(|tool| tool.name == TOOL_NAME)
        || definition.sub_agents.iter().any(|agent| agent.name == TOOL_NAME);
    if is_taken {
        return None;
    }
    let all: Vec<&PromptFile> =
        library.offered(PromptKind::Skill).filter(|file| !file.front.is_manual).collect();
    let (first, more) = all.split_at(all.len().min(MOST_SKILLS));
    if first.is_empty() {
        return None;
    }
    let mut text = String::from(
        "\n# Skills\n\nInstructions for certain tasks. Where one fits the task, load it with load_skill before you begin, and \
         follow it. Requests of the user come first.\n\n",
    );
    for file in first {
        let description: String =
            file.front.description.as_deref().unwrap_or_default().chars().take(LONGEST_LINE).collect();
        text.push_str(&format!("- {}: {description}\n", file.name));
        definition.skills.push(SkillDefinition {
            name: file.name.clone(),
            description,
            file: file.path.clone(),
        });
    }
    definition.system.get_or_insert_default().push_str(&text);
    let names = first.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ");
    let left_out =
        if more.is_empty() { String::new() } else { format!("; {} more are left out", more.len()) };
    Some(format!("skills: {names}{left_out}"))
}

/// Returns what reads the skills of this user and of trusted projects, and no other files.
pub(crate) fn reader() -> SkillReader {
    SkillReader::new(|skill, file| {
        let (directory, project) = skill_directory(&skill.file)?;
        match file {
            None => instructions(&skill.file, &directory),
            Some(file) => {
                let text = other_file(&directory, file)?;
                if project.is_some_and(|root| !is_trusted_text(&directory.join(file), &text, &root)) {
                    return Err("the file is not trusted as it is now".to_owned());
                }
                Ok(SkillText { text, files: Vec::new() })
            }
        }
    })
}

/// Returns the directory of a skill, and the root of the project if it is not a skill of the user. Fails if the file is not a
/// skill that can be used now: a session of another person may name any file, and a file of a project may have changed.
fn skill_directory(file: &Path) -> Result<(PathBuf, Option<PathBuf>), String> {
    let is_own = |owner: PromptOwner, root: &Path| {
        let of_owner = places(Some(root)).into_iter();
        let mut of_owner = of_owner.filter(|place| place.kind == PromptKind::Skill && place.owner == owner);
        of_owner.any(|place| found_in(&place, root).iter().any(|found| found.path == file))
    };
    // ROOT/.claude/skills/NAME/SKILL.md
    let root = file.ancestors().nth(4).unwrap_or(Path::new("/"));
    let is_of_user = is_own(PromptOwner::User, Path::new("/"));
    let is_usable = is_of_user || (is_own(PromptOwner::Project, root) && is_trusted(file, root));
    match file.parent() {
        Some(directory) if is_usable => Ok((directory.to_owned(), (!is_of_user).then(|| root.to_owned()))),
        _ => Err("the skill is not there any more, or it is not trusted as it is now".to_owned()),
    }
}

/// Whether the user trusts a file of a project as it is.
fn is_trusted(file: &Path, root: &Path) -> bool {
    let mut subject = Subject::new(root);
    let is_known =
        subject.add_file(file).is_ok() && subject.untrusted().is_ok_and(|unknown| unknown.is_empty());
    IS_TRUSTED.load(Ordering::Relaxed) || is_known
}

/// Whether the user trusts another file of a skill of a project with this content.
fn is_trusted_text(path: &Path, text: &str, root: &Path) -> bool {
    let mut subject = Subject::new(root);
    subject.add_content(path, text.as_bytes());
    IS_TRUSTED.load(Ordering::Relaxed) || subject.untrusted().is_ok_and(|unknown| unknown.is_empty())
}

/// Adds the other files of a skill to those that are trusted together, as far as a model could read them. Other files than `SKILL.md`
/// have none.
pub(crate) fn add_others(subject: &mut Subject, skill: &Path) {
    let is_skill = skill.file_name() == Some(SKILL.as_ref());
    let Some(directory) = skill.parent().filter(|_| is_skill) else { return };
    let mut files = Vec::new();
    add_files(directory, directory, &mut files);
    for path in files.iter().map(|name| directory.join(name)).filter(|path| path != skill) {
        if let Ok(text) = read(&path, Some(directory)) {
            subject.add_content(&path, text.as_bytes());
        }
    }
}

fn instructions(file: &Path, directory: &Path) -> Result<SkillText, String> {
    let content = read(file, None)?;
    let (_, body) = FrontMatter::split(&content).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    add_files(directory, directory, &mut files);
    files.retain(|name| directory.join(name) != file);
    Ok(SkillText { text: body.to_owned(), files })
}

/// Adds the names of the files below a directory, relative to that of the skill.
fn add_files(directory: &Path, top: &Path, files: &mut Vec<String>) {
    for entry in entries_of(directory) {
        if files.len() >= MOST_FILES {
            return;
        }
        let is_link = entry.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        if entry.is_dir() && !is_link {
            add_files(&entry, top, files);
        } else if let Some(name) = entry.strip_prefix(top).ok().and_then(Path::to_str).filter(|_| !is_link) {
            files.push(name.to_owned());
        }
    }
}

/// Reads another file of a skill, which is below its directory also after links are resolved.
fn other_file(directory: &Path, name: &str) -> Result<String, String> {
    let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !is_below {
        return Err("`file` is a path below the directory of the skill".to_owned());
    }
    read(&directory.join(name), Some(directory)).map_err(|problem| match problem.as_str() {
        "it leads out of the project" => "the file leads out of the skill".to_owned(),
        _ => format!("the file cannot be read: {problem}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_skill_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let skill = directory.path().join("hem");
        std::fs::create_dir_all(skill.join("more")).unwrap();
        std::fs::write(skill.join("SKILL.md"), "---\nname: hem\n---\nFold.\n").unwrap();
        std::fs::write(skill.join("more/table.md"), "1 cm").unwrap();
        std::fs::write(directory.path().join("secret"), "key").unwrap();
        std::os::unix::fs::symlink("../secret", skill.join("link")).unwrap();
        let loaded = instructions(&skill.join("SKILL.md"), &skill).unwrap();
        assert_eq!(loaded, SkillText { text: "Fold.\n".to_owned(), files: vec!["more/table.md".to_owned()] });
        assert_eq!(other_file(&skill, "more/table.md").as_deref(), Ok("1 cm"));
        for name in ["", "../secret", "/etc/passwd", "link", "more", "none"] {
            assert!(other_file(&skill, name).is_err(), "{name}");
        }
        assert!(skill_directory(&directory.path().join("secret")).unwrap_err().contains("not trusted"));
    }
}
