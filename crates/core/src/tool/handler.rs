//! Tools: a specification and the code behind it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::context::ToolContext;
use super::error::ToolError;
use super::inspection::CallInspection;
use super::result::ToolResult;
use crate::journal::{CoveredDigests, Effect, IdempotencyKey};
use crate::message::OptionResult;
use crate::ports::BoxFuture;
use crate::session::BoxError;
use crate::tool_spec::ResourceUse;
use crate::tool_spec::{Approval, CommandLimit, ToolExample, ToolSpec, WorkspaceUse};
use crate::tool_spec::{InvalidToolName, ToolName};

/// Result of a tool's code.
///
/// ```
/// use backstitch_core::tool::{ToolError, ToolOutcome, ToolResult};
///
/// fn open(drawer: u32) -> ToolOutcome {
///     match drawer {
///         1..=4 => Ok(ToolResult::ok("open")),
///         other => Err(ToolError::new(format!("there is no drawer {other}"))),
///     }
/// }
/// assert!(open(1).is_ok() && open(9).is_err());
/// ```
pub type ToolOutcome = Result<ToolResult, ToolError>;

/// The code of a tool. Arguments are checked against the schema before the call.
pub trait ToolHandler: Send + Sync {
    /// Runs a call.
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome>;

    /// Returns digests of what a call starts beside its arguments, such as a program, for the question whether it may run.
    /// They are compared right before an approved call starts; if one differs, a person is asked again. Most handlers
    /// start nothing. The arguments are compared by themselves: digests that follow from them lead to a second question if
    /// a person edits the call.
    ///
    /// A call does not start after an error, but fails with it. A handler that starts something may compare the digests once
    /// more right before that ([`ToolContext::approved`]).
    fn inspect<'a>(&'a self, _call: CallInspection<'a>) -> BoxFuture<'a, Result<CoveredDigests, ToolError>> {
        Box::pin(std::future::ready(Ok(CoveredDigests::new())))
    }

    /// Returns the handler as a type that the runtime knows, if it is more than a function, as for
    /// sub-agents. Most handlers return nothing.
    fn as_any(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// Result of checking an external call that a crash interrupted.
///
/// ```
/// use backstitch_core::tool::ReconcileOutcome;
///
/// let outcome = ReconcileOutcome::happened("paid");
/// assert_eq!(outcome, ReconcileOutcome::HappenedWith("paid".into()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum ReconcileOutcome {
    /// The call took effect, with this result. It has to name the call and its tool.
    Happened(Box<OptionResult>),
    /// The call took effect, and succeeded with this value.
    HappenedWith(Value),
    /// The call did not take effect, so it may run again.
    DidNotHappen,
    /// The result is unclear, so a person has to decide.
    Unknown,
}

impl ReconcileOutcome {
    /// Returns that the call took effect, and succeeded with this value.
    pub fn happened(value: impl Into<Value>) -> Self {
        Self::HappenedWith(value.into())
    }
}

/// Checks whether a call took effect.
pub type Reconcile = Arc<
    dyn Fn(IdempotencyKey, Map<String, Value>) -> BoxFuture<'static, Result<ReconcileOutcome, BoxError>>
        + Send
        + Sync,
>;

/// Undoes the effect of a call as far as possible.
pub type Compensate =
    Arc<dyn Fn(IdempotencyKey, Map<String, Value>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A tool: its declaration and its code.
///
/// ```
/// use backstitch_core::journal::Effect;
/// use backstitch_core::tool::{Tool, ToolContext, ToolResult};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Seam {
///     /// The name of the seam.
///     name: String,
/// }
///
/// // `#[tool]` of the crate `backstitch` writes this for a function.
/// let tool = Tool::builder("measure", "Measures a seam.")?
///     .effect(Effect::Pure)
///     .handler(|_: ToolContext, seam: Seam| async move { Ok(ToolResult::ok(format!("{}: 12 cm", seam.name))) });
/// assert_eq!(tool.name().as_str(), "measure");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tool {
    /// Declaration of the tool.
    pub spec: Arc<ToolSpec>,
    /// Code of the tool.
    pub handler: Arc<dyn ToolHandler>,
    /// Checks whether an interrupted call of an external tool took effect.
    pub reconcile: Option<Reconcile>,
    /// Undoes the effect of an external tool. The driver of the session calls it once, after a decision that
    /// a call counts as failed.
    pub compensate: Option<Compensate>,
}

impl Tool {
    /// Creates a builder.
    pub fn builder(name: &str, description: impl Into<String>) -> Result<ToolBuilder, InvalidToolName> {
        let spec = ToolSpec::new(ToolName::new(name)?, description);
        Ok(ToolBuilder { spec, workspace: None, reconcile: None, compensate: None })
    }

    /// The tool's name.
    pub fn name(&self) -> &ToolName {
        &self.spec.name
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// A builder of tools.
#[derive(Clone)]
pub struct ToolBuilder {
    spec: ToolSpec,
    workspace: Option<WorkspaceUse>,
    reconcile: Option<Reconcile>,
    compensate: Option<Compensate>,
}

impl ToolBuilder {
    /// Sets the effect class. [`Effect::External`] is the default.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets the use of files. By default, pure tools read and all others write.
    #[must_use]
    pub fn workspace(mut self, workspace: WorkspaceUse) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Sets the use of snapshotable resources. By default there is none.
    #[must_use]
    pub fn resources(mut self, resources: ResourceUse) -> Self {
        self.spec.resources = resources;
        self
    }

    /// Requires the approval of a person before each call.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.spec.approval = Approval::Needed;
        self
    }

    /// Lets calls run without approval, also in a mode of the agent that would ask.
    #[must_use]
    pub fn waives_approval(mut self) -> Self {
        self.spec.approval = Approval::Waived;
        self
    }

    /// Declares that the tool runs commands in a sandbox, and what they may change.
    #[must_use]
    pub fn commands(mut self, limit: impl Into<Option<CommandLimit>>) -> Self {
        self.spec.commands = limit.into();
        self
    }

    /// Names the argument by which a call asks for more rights. A call with it has the effect [`Effect::External`], and
    /// needs the approval of a person.
    #[must_use]
    pub fn rights_argument(mut self, name: impl Into<String>) -> Self {
        self.spec.rights_argument = Some(name.into());
        self
    }

    /// Names the argument with the address that a call reads over the network, so that modes ask about it.
    #[must_use]
    pub fn address_argument(mut self, name: impl Into<String>) -> Self {
        self.spec.address_argument = Some(name.into());
        self
    }

    /// Sets the time limit of a call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// Adds an example call for the model.
    #[must_use]
    pub fn example(mut self, example: ToolExample) -> Self {
        self.spec.examples.push(example);
        self
    }

    /// Sets the parameters, as a JSON Schema of an object.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.spec.parameters = schema;
        self
    }

    /// Sets the parameters to those of a type.
    #[must_use]
    pub fn typed<P: JsonSchema>(self) -> Self {
        self.parameters(strict(schema_of::<P>()))
    }

    /// Sets the type of the result's value.
    #[must_use]
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.spec.output = Some(schema_of::<T>());
        self
    }

    /// Sets the function that checks whether an interrupted call took effect.
    #[must_use]
    pub fn reconcile(mut self, reconcile: Reconcile) -> Self {
        self.reconcile = Some(reconcile);
        self
    }

    /// Sets the function that undoes an effect.
    #[must_use]
    pub fn compensate(mut self, compensate: Compensate) -> Self {
        self.compensate = Some(compensate);
        self
    }

    /// Builds the tool, with typed parameters whose schema is derived.
    pub fn handler<P, F, W>(mut self, run: F) -> Tool
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(ToolContext, P) -> W + Send + Sync + 'static,
        W: Future<Output = ToolOutcome> + Send + 'static,
    {
        let schema = schema_of::<P>();
        let is_null = schema.get("type").is_some_and(|kind| kind == "null");
        let parameters = if is_null { Parameters::None } else { Parameters::Object };
        self.spec.parameters = strict(schema);
        self.build(Arc::new(TypedHandler { run, parameters, types: std::marker::PhantomData }))
    }

    /// Builds the tool, with parameters as plain data.
    pub fn build(mut self, handler: Arc<dyn ToolHandler>) -> Tool {
        self.spec.workspace = self.workspace.unwrap_or(WorkspaceUse::default_of(self.spec.effect));
        let (reconcile, compensate) = (self.reconcile, self.compensate);
        Tool { spec: Arc::new(self.spec), handler, reconcile, compensate }
    }
}

/// Form of the parameters of a typed handler.
#[derive(Clone, Copy)]
enum Parameters {
    /// No parameters: the type is the unit.
    None,
    /// The fields of an object.
    Object,
}

struct TypedHandler<P, F> {
    run: F,
    parameters: Parameters,
    types: std::marker::PhantomData<fn(P)>,
}

impl<P, F, W> ToolHandler for TypedHandler<P, F>
where
    P: DeserializeOwned + Send + 'static,
    F: Fn(ToolContext, P) -> W + Send + Sync,
    W: Future<Output = ToolOutcome> + Send + 'static,
{
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        let given = match self.parameters {
            Parameters::None => Value::Null,
            Parameters::Object => Value::Object(arguments),
        };
        match serde_json::from_value(given) {
            Ok(parameters) => Box::pin((self.run)(context, parameters)),
            // The type is narrower than its schema.
            Err(error) => Box::pin(async move { Err(ToolError::Validation { message: error.to_string() }) }),
        }
    }
}

/// Returns the JSON Schema of a type.
pub fn schema_of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Makes the schema of an object refuse unknown properties, so that a misspelt argument is not lost silently.
fn strict(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut()
        && object.get("type").is_some_and(|kind| kind == "object")
    {
        object.entry("additionalProperties").or_insert(Value::Bool(false));
        object.entry("properties").or_insert(Value::Object(Map::new()));
    } else if schema.get("type").is_some_and(|kind| kind == "null") {
        // A tool without parameters may declare the unit type.
        return crate::tool_spec::no_parameters();
    }
    schema
}
