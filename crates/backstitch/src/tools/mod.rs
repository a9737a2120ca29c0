//! Tools that are there already: the files of the workspace, a shell, and a plan.
//!
//! ```
//! use backstitch::{Tools, tools};
//!
//! let tools = Tools::new(tools::builtin_tools())?;
//! assert!(tools.get("read_file").is_some() && tools.get("shell").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | tool | effect | what it does |
//! |---|---|---|
//! | [`read_file`] | pure | gives lines of a text file |
//! | [`list_files`], [`glob`], [`grep`], [`stat`] | pure | find files, lines of files, and what is known of them |
//! | [`write_file`], [`edit_file`] | workspace | write a file, replace text in it |
//! | [`delete_file`], [`make_directory`], [`rename`] | workspace | arrange files |
//! | [`setup_plan`], [`add_plan_step`], [`update_plan_step`] | workspace | write the plan of the session |
//! | [`read_plan`] | pure | gives the plan |
//! | [`recall`] | pure | shows what a compression left out of the conversation |
//! | [`shell`](fn@shell) | external, or as [`Shell`] says | runs a command |
//!
//! Results are small: what is long is cut, and a `note` says so and how to go on. Errors say what is wrong and what to do,
//! since a model reads them. A call that fails leaves the files as they were.

mod arrange;
mod files;
mod find;
mod grep;
mod plan;
mod read;
mod recall;
mod shell;
mod write;

pub use arrange::{delete_file, make_directory, rename};
pub use find::{glob, list_files};
pub use grep::grep;
pub use plan::{add_plan_step, read_plan, setup_plan, update_plan_step};
pub use read::{read_file, stat};
pub use recall::recall;
pub use shell::{Shell, shell};
pub use write::{edit_file, write_file};

use crate::tool::Tool;

/// The most text of a result, in bytes: so much is worth reading, and is kept in the journal itself.
const MOST_TEXT: usize = 48 * 1024;

/// The tools for the session's [plan](crate::slices::Plan).
pub fn plan_tools() -> Vec<Tool> {
    vec![setup_plan(), add_plan_step(), update_plan_step(), read_plan()]
}

/// The tools for files and the shell, the shell as it is when nobody says otherwise.
pub fn builtin_tools() -> Vec<Tool> {
    let mut tools = file_tools();
    tools.push(shell());
    tools
}

/// The tools for the files of the workspace.
pub fn file_tools() -> Vec<Tool> {
    vec![
        read_file(),
        write_file(),
        edit_file(),
        list_files(),
        glob(),
        grep(),
        stat(),
        delete_file(),
        make_directory(),
        rename(),
    ]
}
