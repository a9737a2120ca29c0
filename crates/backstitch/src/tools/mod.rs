//! Built-in tools: for the files of the workspace, a shell, pages of the web, and a plan.
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
//! | [`read_file`] | pure | returns lines of a text file, an image or a PDF document |
//! | [`list_files`], [`glob`], [`grep`], [`stat`] | pure | find files, lines of files, and metadata |
//! | [`write_file`], [`edit_file`] | workspace | write a file, replace text in it |
//! | [`delete_file`], [`make_directory`], [`rename`] | workspace | arrange files |
//! | [`setup_plan`], [`add_plan_step`], [`update_plan_step`] | workspace | write the plan of the session |
//! | [`read_plan`] | pure | returns the plan |
//! | [`recall`] | pure | returns parts of the conversation that a compression left out |
//! | [`shell`](fn@shell) | workspace if its sandbox is enforced, else as [`Shell`] sets it | runs a command |
//! | [`fetch`](fn@fetch) | pure, but asked about for each host | reads a page of the web as Markdown |
//!
//! Results are small: long ones are truncated, and a `note` says how to get the rest. Models read the errors,
//! so they say what is wrong and what to do. A failed call leaves the files unchanged.

mod confined;
#[cfg(feature = "http")]
mod fetch;
mod files;
mod find;
mod plan;
mod read;
mod recall;
mod shell;
mod write;

#[cfg(feature = "agent-file")]
pub(crate) use confined::{
    CommandOutcome, command_limit, description as sandbox_description, effect_within, hide_places,
    run_confined,
};
#[cfg(feature = "http")]
pub use fetch::{Fetch, fetch};
#[cfg(feature = "agent-file")]
pub(crate) use files::Files;
pub use find::{glob, grep, list_files};
pub use plan::{add_plan_step, read_plan, setup_plan, update_plan_step};
pub use read::{read_file, stat};
pub use recall::recall;
pub use shell::{Shell, shell};
pub use write::{delete_file, edit_file, make_directory, rename, write_file};

use crate::tool::Tool;

/// Maximum size of the text of a result, in bytes. A result of this size is stored in the journal itself.
const MOST_TEXT: usize = 48 * 1024;

/// Returns the tools for the session's [plan](crate::slices::Plan).
pub fn plan_tools() -> Vec<Tool> {
    vec![setup_plan(), add_plan_step(), update_plan_step(), read_plan()]
}

/// Returns the tools for files, and the shell with its default options.
pub fn builtin_tools() -> Vec<Tool> {
    let mut tools = file_tools();
    tools.push(shell());
    tools
}

/// Returns the tools for the files of the workspace.
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
