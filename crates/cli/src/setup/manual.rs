//! `man`: prints or writes manual pages. They are made from the help, so they are those of this very command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::Man;

use crate::terminal;
use crate::usage::Usage;

#[derive(Args)]
pub(crate) struct Manual {
    /// Command whose page is printed, such as `schedule add`. Default: the page of the whole program.
    #[arg(conflicts_with = "directory")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

impl Manual {
    pub(crate) fn run(self, program: Command) -> anyhow::Result<ExitCode> {
        let mut program = program.disable_help_subcommand(true);
        program.build();
        match self.directory {
            Some(directory) => {
                fs::create_dir_all(&directory)
                    .with_context(|| format!("the directory {} cannot be created", directory.display()))?;
                write(&program, &directory)?;
            }
            None => terminal::data(&page(find(&program, &self.command)?)?),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the command that the words name.
fn find<'a>(program: &'a Command, words: &[String]) -> Result<&'a Command, Usage> {
    let mut found = program;
    for word in words {
        found = found.find_subcommand(word).ok_or_else(|| {
            let name = found.get_bin_name().unwrap_or_else(|| found.get_name());
            Usage(format!("`{name}` has no command {word:?}; `{name} --help` lists them"))
        })?;
    }
    Ok(found)
}

/// Writes the pages of a command and of all below it.
fn write(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let path = directory.join(Man::new(command.clone()).get_filename());
    fs::write(&path, page(command)?).with_context(|| format!("{} cannot be written", path.display()))?;
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.try_for_each(|below| write(below, directory))
}

fn page(command: &Command) -> anyhow::Result<String> {
    let source = concat!("backstitch ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    Man::new(command.clone()).source(source).manual("Backstitch").render(&mut page)?;
    // All that follows the options of a command is examples.
    Ok(String::from_utf8_lossy(&page).replace(".SH EXTRA", ".SH EXAMPLES"))
}
