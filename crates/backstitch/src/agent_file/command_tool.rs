//! Tools of agent files: programs that a model may call.
//!
//! A `[[tool]]` names a program and its arguments. `{name}` in an argument is replaced by an argument of the call;
//! no shell is involved, so the values cannot start other programs. The process runs like a command of the shell
//! tool: in the workspace, without keys, with all of its child processes. If it fails, the files are rolled back.
//! A person who approves a call approves the files that it starts, as [`covered`](super::covered) says.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::covered::covered_files;
use super::definition::Approve;
use super::error::{Problem, near};
use super::template::ArgumentTemplate;
use super::values::{Span, is_default};
use crate::digest::Digest;
use crate::host::OutputContract;
use crate::journal::{CoveredDigests, Effect};
use crate::ports::{BoxFuture, FilePath, OutputCaps, ProcessSpec, Sandbox};
use crate::prompt::Output;
use crate::tool::{CallInspection, Tool, ToolContext, ToolError, ToolHandler, ToolOutcome};
use crate::tools::{CommandOutcome, Files, command_limit, effect_within, run_confined, sandbox_description};

/// Time limit of a call, if the definition sets none.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum of `output_bytes`: results are small, because they are sent to the model with every request.
const MOST_OUTPUT: usize = 1 << 20;

/// What is wrong with a tool without a description.
pub(super) const NO_DESCRIPTION: &str = "the model chooses tools by their descriptions: write one";

/// A tool that runs a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandToolDefinition {
    /// Name by which the model calls it.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// The program and its arguments. `{name}` in an argument is replaced by an argument of the call.
    pub command: Vec<String>,
    /// JSON Schema of the arguments, an object.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// What the program gets as standard input.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stdin: InputChoice,
    /// Possible effects of the program.
    #[serde(default)]
    pub effect: Effect,
    /// Directory to run it in, relative to the workspace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Time limit of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether calls need the approval of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approve>,
    /// Exit codes that are results. Every other one is a failure, and the files are rolled back.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub exit_codes: Vec<i32>,
    /// Maximum number of bytes of each stream that are returned: half of its beginning, half of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<usize>,
}

fn zero() -> Vec<i32> {
    vec![0]
}

fn is_zero(codes: &[i32]) -> bool {
    codes == [0]
}

/// The standard input of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputChoice {
    /// Nothing.
    #[default]
    None,
    /// The arguments of the call, as a JSON object.
    Json,
}

impl CommandToolDefinition {
    /// Builds the tool. `hidden` are variables that the program does not see.
    pub(super) fn tool(&self, sandbox: &Sandbox, hidden: &[String]) -> Result<Tool, Problem> {
        let is_zero = self.timeout.is_some_and(|timeout| timeout.0.is_zero());
        let is_too_much = self.output_bytes.is_some_and(|bytes| !(2..=MOST_OUTPUT).contains(&bytes));
        let most = format!("set 2 to {MOST_OUTPUT}");
        Problem::check([
            ("description", self.description.trim().is_empty(), NO_DESCRIPTION),
            ("timeout", is_zero, "the time must be longer than 0"),
            ("exit_codes", self.exit_codes.is_empty(), "without one, every call fails: name at least one"),
            ("output_bytes", is_too_much, most.as_str()),
        ])?;
        let parameters = self.schema().map_err(|message| Problem::new(["parameters"], message))?;
        let template = self.template(&parameters).map_err(|message| Problem::new(["command"], message))?;
        if let Some(code) = self.exit_codes.iter().find(|code| !(0..=255).contains(*code)) {
            let message = format!("no program ends with {code}: exit codes are 0 to 255");
            return Err(Problem::new(["exit_codes"], message));
        }
        if !self.directory.is_empty() {
            FilePath::new(&self.directory).map_err(|error| Problem::new(["directory"], error))?;
        }
        let description = format!("{}{}", self.description, sandbox_description(sandbox));
        let builder = Tool::builder(&self.name, description);
        let builder = builder.map_err(|error| Problem::new(["name"], error))?;
        let builder = builder.effect(effect_within(sandbox, self.effect)).parameters(parameters);
        // One that reaches the network may have the effect that it declares.
        let limit = command_limit(sandbox).filter(|_| !sandbox.network);
        let builder = builder.commands(limit);
        let builder = match self.approval {
            Some(Approve::Ask) => builder.needs_approval(),
            Some(Approve::Auto) => builder.waives_approval(),
            None => builder,
        };
        let (definition, sandbox, hidden) = (self.clone(), sandbox.clone(), hidden.to_vec());
        let runner = CommandRunner { definition, template, sandbox, hidden };
        Ok(builder.output::<CommandOutcome>().build(Arc::new(runner)))
    }

    /// Returns the schema of the arguments. Arguments that it does not name are refused by default.
    fn schema(&self) -> Result<Value, String> {
        let mut schema = self.parameters.clone();
        if schema.get("type").is_some_and(|kind| kind != "object") {
            return Err("the arguments of a call are an object: set `type = \"object\"`".to_owned());
        }
        if let Some(unknown) = schema.keys().find(|name| !KEYWORDS.contains(&name.as_str())) {
            return Err(format!(
                "`{unknown}` is not a keyword of a JSON Schema for an object: arguments are below `properties`{}",
                near(unknown, &KEYWORDS)
            ));
        }
        if schema.get("properties").is_some_and(|properties| !properties.is_object()) {
            return Err("`properties` is a table with the schema of each argument".to_owned());
        }
        schema.insert("type".to_owned(), json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
        schema.entry("additionalProperties").or_insert(json!(false));
        let schema = Value::Object(schema);
        OutputContract::new(Output::schema_only(schema.clone())).map_err(|error| error.to_string())?;
        Ok(schema)
    }

    fn template(&self, schema: &Value) -> Result<ArgumentTemplate, String> {
        let names: Vec<&str> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        ArgumentTemplate::parse(&self.command, &names)
    }
}

/// Runs the program for each call of its tool.
struct CommandRunner {
    definition: CommandToolDefinition,
    template: ArgumentTemplate,
    sandbox: Sandbox,
    /// Environment variables that are removed.
    hidden: Vec<String>,
}

impl CommandRunner {
    /// Returns digests of the command line and of the files that it starts. Neither depends on the arguments of a call, which
    /// are compared by themselves: a person who edits those is not asked again.
    async fn digests(&self, workspace: Option<&Path>) -> Result<CoveredDigests, ToolError> {
        let CommandToolDefinition { command, directory, stdin, .. } = &self.definition;
        let unusable = |error: &dyn std::fmt::Display| ToolError::of_kind("could_not_start", error);
        let form = Digest::of_json(&(command, directory, stdin)).map_err(|error| unusable(&error))?;
        let below = match directory.as_str() {
            "" => FilePath::root(),
            directory => FilePath::new(directory).map_err(|error| unusable(&error))?,
        };
        let spec = ProcessSpec::new(self.template.program()).in_directory(below);
        let spec = self.hidden.iter().fold(spec, ProcessSpec::without_env);
        let (workspace, fixed) = (workspace.map(Path::to_owned), self.template.fixed());
        // Programs may be large.
        let files = move || covered_files(&spec, workspace.as_deref(), &fixed);
        let mut covered = tokio::task::spawn_blocking(files).await.map_err(|error| unusable(&error))?;
        covered.insert("the command line".to_owned(), form);
        Ok(covered)
    }

    async fn run(&self, context: &ToolContext, arguments: &Map<String, Value>) -> ToolOutcome {
        let definition = &self.definition;
        if let Some(approved) = context.approved()
            && approved.covered != self.digests(context.directory().as_deref()).await?
        {
            let message = "what it starts has changed since a person approved it; it was not run";
            return Err(ToolError::of_kind("changed", message));
        }
        let line = self.template.filled(arguments).map_err(|message| ToolError::Validation { message })?;
        let (program, rest) = line
            .split_first()
            .ok_or_else(|| ToolError::of_kind("could_not_start", "the command is empty"))?;
        let input = match definition.stdin {
            InputChoice::None => Vec::new(),
            InputChoice::Json => serde_json::to_vec(arguments).unwrap_or_default(),
        };
        let half = definition.output_bytes.unwrap_or(32 * 1024) / 2;
        let timeout = definition.timeout.map_or(TIMEOUT, |timeout| timeout.0);
        let spec = ProcessSpec::new(program)
            .args(rest)
            .in_directory(Files::of(context)?.path(&definition.directory)?)
            .input(input)
            .caps(OutputCaps { head: half, tail: half })
            .timeout(timeout);
        let spec = self.hidden.iter().fold(spec, ProcessSpec::without_env);
        let is_accepted = |code: i32| definition.exit_codes.contains(&code);
        let too_long = format!("the command took longer than {} s and was killed", timeout.as_secs_f64());
        run_confined(context, spec, &self.sandbox, is_accepted, too_long).await
    }
}

impl ToolHandler for CommandRunner {
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move { self.run(&context, &arguments).await })
    }

    fn inspect<'a>(&'a self, call: CallInspection<'a>) -> BoxFuture<'a, Result<CoveredDigests, ToolError>> {
        Box::pin(self.digests(call.directory))
    }
}

/// Keywords of a JSON Schema of an object.
const KEYWORDS: [&str; 12] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "title",
    "$defs",
    "$schema",
    "oneOf",
    "anyOf",
    "minProperties",
    "maxProperties",
];
