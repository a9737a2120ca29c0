//! Agents as data: TOML files, and the definitions that are recorded with sessions.
//!
//! An agent file defines the model, the prompt, the tools and the limits of an agent; `docs/agent-file.md`
//! lists all keys. Reading a file returns an [`AgentDefinition`] that includes the content of all files it
//! refers to. A definition holds no secrets, and is recorded with each session that it drives. It is
//! sufficient to resume that session: API keys are read from the environment each time.
//!
//! Errors name the path, the line and the key, and suggest a known name that is similar to an unknown one.
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
mod command_tool;
mod covered;
mod definition;
mod engine;
mod error;
mod fallback;
mod fetch;
mod headers;
mod keys;
mod known;
mod mcp;
#[cfg(all(feature = "mcp", unix))]
mod mcp_content;
mod mcp_json;
mod model;
mod offered;
mod provider;
mod read;
mod rights;
mod secret_values;
mod served;
mod session;
mod skill;
mod source;
mod sub_agent;
mod template;
mod values;

pub use answering::{AnswerMode, DataDefinition};
pub use build::{BuildOptions, BuiltAgent};
pub use command_tool::{CommandToolDefinition, InputChoice};
pub use definition::{
    AgentDefinition, Approve, BudgetDefinition, OutputDefinition, PriceDefinition, RequestDefinition,
    SectionDefinition, ShellDefinition, WorkspaceDefinition,
};
pub use engine::EngineDefinition;
pub use error::{AgentFileError, Problem, SourceLocation};
pub use fallback::{FallbackDefinition, RetryDefinition};
pub use fetch::FetchDefinition;
pub use headers::HeaderTexts;
pub use keys::{KEY_VARIABLES, SERVER_TOKEN_VARIABLE, check_base_url};
pub use known::{KnownModel, KnownModels};
pub use mcp::{McpDefinition, check_servers};
pub use mcp_json::McpFile;
pub use model::{ModelName, ModelProvider, NAMED_PROVIDERS, NamedProvider};
pub use provider::{ModelReceiver, ProviderAccess, ProviderDefinition, ProviderFormat, check_providers};
pub use read::AgentFile;
pub use secret_values::names_secret;
pub use served::{ListedModel, ServerModels};
#[cfg(all(feature = "store", feature = "workspace"))]
pub(crate) use session::{defining_records, exceeds};
pub use session::{imported_note, recorded_definition};
pub use skill::{SkillDefinition, SkillReader, SkillText};
pub use source::TomlSource;
pub use sub_agent::SubAgentDefinition;
pub use values::{Money, Span, ToolChoice};
