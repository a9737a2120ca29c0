//! `commands`: lists commands and skills, with their places and whether they are offered.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::library::{PromptFile, PromptLibrary, PromptState};
use super::place::PromptKind;
use crate::common::Common;
use crate::terminal::{Pager, Role, Table, Text};

#[derive(Args)]
pub(crate) struct ListPrompts {
    /// List only those that can be used here.
    #[arg(long)]
    offered: bool,
}

impl ListPrompts {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let library = PromptLibrary::load(common, &std::env::current_dir()?);
        let is_listed = |file: &&PromptFile| !self.offered || file.state == PromptState::Offered;
        let listed: Vec<&PromptFile> = library.files.iter().filter(is_listed).collect();
        if common.json {
            listed.iter().for_each(|file| println!("{}", object(file)));
            return Ok(ExitCode::SUCCESS);
        }
        if listed.is_empty() {
            println!(
                "there are no commands and skills; a file `.backstitch/commands/NAME.md` is a command `/NAME` of this project"
            );
            return Ok(ExitCode::SUCCESS);
        }
        let _pager = Pager::new();
        print_table(&listed);
        library.untrusted_line().into_iter().for_each(|line| eprintln!("{line}"));
        Ok(ExitCode::SUCCESS)
    }
}

fn object(file: &PromptFile) -> serde_json::Value {
    let reason = match &file.state {
        PromptState::Wrong(reason) => Some(reason.clone()),
        PromptState::Shadowed(path) => Some(format!("{} has this name", path.display())),
        PromptState::Offered | PromptState::NotTrusted => None,
    };
    json!({
        "v": 1,
        "kind": file.kind,
        "name": file.name,
        "description": file.front.description,
        "argument_hint": file.front.argument_hint,
        "owner": file.owner,
        "path": file.path.to_string_lossy(),
        "state": file.state.as_str(),
        "reason": reason,
    })
}

fn print_table(files: &[&PromptFile]) {
    let mut table = Table::new(["name", "kind", "owner", "state", "description"]).leave_out([2, 1], 20);
    for file in files {
        let hint = file.front.argument_hint.as_ref().map(|hint| format!(" {hint}"));
        let name = match file.kind {
            PromptKind::Command => format!("{}{}", file.written_name(), hint.unwrap_or_default()),
            PromptKind::Skill => file.name.clone(),
        };
        let (role, state) = match &file.state {
            PromptState::Offered => (Role::Success, "offered"),
            PromptState::NotTrusted => (Role::Warning, "not trusted"),
            PromptState::Shadowed(_) => (Role::Dim, "shadowed"),
            PromptState::Wrong(_) => (Role::Failure, "wrong"),
        };
        let about = match &file.state {
            PromptState::Wrong(reason) => reason.clone(),
            PromptState::Shadowed(path) => format!("{} has this name", shortened(path)),
            _ => file.front.description.clone().unwrap_or_default(),
        };
        table.row([
            Text::new().add(Role::Id, name),
            file.kind.as_str().into(),
            file.owner.as_str().into(),
            Text::new().add(role, state),
            about.into(),
        ]);
        table.below(Text::new().add(Role::Dim, shortened(&file.path)));
    }
    table.print();
}

/// Returns a path with `~` for the home directory.
fn shortened(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}
