//! Agents as data: TOML files, and the definitions that sessions are recorded with.
//!
//! An agent file says which model is asked, what it is told, what it may call and within which limits; `docs/agent-file.md`
//! lists all keys. Reading one gives an [`AgentDefinition`] in which everything that lay in other files stands in place. It
//! holds no secrets, is recorded with each session that it drives, and is enough to drive that session on: keys of accounts
//! come from the environment, each time anew.
//!
//! What is wrong with a file is said with its path, the line and the key, and with the name that was probably meant.
//!
//! ```
//! use backstitch::agent_file::AgentDefinition;
//!
//! let definition = AgentDefinition::from_toml(r#"
//!     name = "tailor"
//!     model = "openai-chat:some-model"
//!     base_url = "http://127.0.0.1:8080/v1"
//!     tools = ["read_file", "edit_file"]
//!
//!     [[section]]
//!     key = "task"
//!     title = "Task"
//!     text = "You mend clothes."
//!
//!     [budget]
//!     tokens = 100_000
//! "#)?;
//! assert_eq!(definition.name, "tailor");
//!
//! let wrong = AgentDefinition::from_toml("modle = 'openai:some-model'").unwrap_err();
//! assert!(wrong.to_string().contains("line 1") && wrong.to_string().contains("did you mean"));
//! # Ok::<(), backstitch::agent_file::AgentFileError>(())
//! ```

mod answering;
mod build;
mod definition;
mod error;
mod keys;
mod locate;
mod model;
mod offered;
mod read;
mod recorded;
mod values;

pub use answering::{AnswerMode, DataDefinition};
pub use build::{BuildOptions, BuiltAgent};
pub use definition::{
    AgentDefinition, Approve, BudgetDefinition, OutputDefinition, PriceDefinition, RequestDefinition,
    SectionDefinition, ShellDefinition, WorkspaceDefinition,
};
pub use error::{AgentFileError, Problem, SourceLocation};
pub use keys::{KEY_VARIABLES, key_variables};
pub use model::{ModelName, ModelProvider};
pub use values::{Money, Span, ThinkingSetting, ToolChoice};
