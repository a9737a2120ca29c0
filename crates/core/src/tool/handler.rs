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
use super::result::ToolResult;
use crate::journal::{Effect, IdempotencyKey};
use crate::message::OptionResult;
use crate::ports::BoxFuture;
use crate::session::BoxError;
use crate::tool_spec::ResourceUse;
use crate::tool_spec::{Approval, ToolExample, ToolSpec, WorkspaceUse};
use crate::tool_spec::{InvalidToolName, ToolName};

/// What a tool's code answers.
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

/// The code behind a tool. Arguments have been checked against the schema when it is called.
pub trait ToolHandler: Send + Sync {
    /// Runs a call.
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome>;

    /// The handler as a type that the runtime knows, where it is more than a function: another agent is one. Most are not.
    fn as_any(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// What an external tool finds out about a call that a crash interrupted.
#[derive(Debug, Clone, PartialEq)]
pub enum ReconcileOutcome {
    /// It happened, with this result.
    Happened(Box<OptionResult>),
    /// It did not happen: it may run again.
    DidNotHappen,
    /// It cannot be told: a person has to say.
    Unknown,
}

/// Asks the outside whether a call's effect happened.
pub type Reconcile = Arc<
    dyn Fn(IdempotencyKey, Map<String, Value>) -> BoxFuture<'static, Result<ReconcileOutcome, BoxError>>
        + Send
        + Sync,
>;

/// Undoes, as far as that is possible, an effect that happened.
pub type Compensate =
    Arc<dyn Fn(IdempotencyKey, Map<String, Value>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A tool: what is known of it, and the code behind it.
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
    /// What is known of it.
    pub spec: Arc<ToolSpec>,
    /// The code behind it.
    pub handler: Arc<dyn ToolHandler>,
    /// How an external tool finds out what became of an interrupted call.
    pub reconcile: Option<Reconcile>,
    /// How an external tool undoes an effect: called once by whoever drives the session after a call was decided to count as failed.
    pub compensate: Option<Compensate>,
}

impl Tool {
    /// Starts to describe a tool.
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

/// A tool that is being described.
#[derive(Clone)]
pub struct ToolBuilder {
    spec: ToolSpec,
    workspace: Option<WorkspaceUse>,
    reconcile: Option<Reconcile>,
    compensate: Option<Compensate>,
}

impl ToolBuilder {
    /// Says what the tool may do to the world. Undeclared it is taken for [`Effect::External`].
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Says whether the tool uses files. Undeclared, pure tools read and all others write.
    #[must_use]
    pub fn workspace(mut self, workspace: WorkspaceUse) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Says whether the tool uses snapshotable resources. Undeclared it does not.
    #[must_use]
    pub fn resources(mut self, resources: ResourceUse) -> Self {
        self.spec.resources = resources;
        self
    }

    /// Asks for a person's approval before each call.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.spec.approval = Approval::Needed;
        self
    }

    /// Says how long a call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// Shows the model a call.
    #[must_use]
    pub fn example(mut self, example: ToolExample) -> Self {
        self.spec.examples.push(example);
        self
    }

    /// Says what the parameters are, as a JSON Schema of an object.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.spec.parameters = schema;
        self
    }

    /// Says what the parameters are, as a type.
    #[must_use]
    pub fn typed<P: JsonSchema>(self) -> Self {
        self.parameters(strict(schema_of::<P>()))
    }

    /// Says what the result's value is.
    #[must_use]
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.spec.output = Some(schema_of::<T>());
        self
    }

    /// Says how to find out what became of an interrupted call.
    #[must_use]
    pub fn reconcile(mut self, reconcile: Reconcile) -> Self {
        self.reconcile = Some(reconcile);
        self
    }

    /// Says how to undo an effect.
    #[must_use]
    pub fn compensate(mut self, compensate: Compensate) -> Self {
        self.compensate = Some(compensate);
        self
    }

    /// The tool, with typed parameters whose schema is derived.
    pub fn handler<P, F, W>(mut self, run: F) -> Tool
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(ToolContext, P) -> W + Send + Sync + 'static,
        W: Future<Output = ToolOutcome> + Send + 'static,
    {
        let schema = schema_of::<P>();
        let parameters = match schema.get("type").is_some_and(|kind| kind == "null") {
            true => Parameters::None,
            false => Parameters::Object,
        };
        self.spec.parameters = strict(schema);
        self.build(Arc::new(TypedHandler { run, parameters, types: std::marker::PhantomData }))
    }

    /// The tool, with parameters as plain data.
    pub fn build(mut self, handler: Arc<dyn ToolHandler>) -> Tool {
        self.spec.workspace = self.workspace.unwrap_or(WorkspaceUse::default_of(self.spec.effect));
        let (reconcile, compensate) = (self.reconcile, self.compensate);
        Tool { spec: Arc::new(self.spec), handler, reconcile, compensate }
    }
}

/// How the parameters of a typed handler are given.
#[derive(Clone, Copy)]
enum Parameters {
    /// There are none: the type is the unit.
    None,
    /// As the fields of an object.
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
            // The schema let it pass, but the type is narrower than its schema.
            Err(error) => Box::pin(async move { Err(ToolError::Validation { message: error.to_string() }) }),
        }
    }
}

/// The JSON Schema of a type.
pub fn schema_of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// The schema of an object that takes no unknown properties: a misspelt argument must not be lost silently.
fn strict(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut()
        && object.get("type").is_some_and(|kind| kind == "object")
    {
        object.entry("additionalProperties").or_insert(Value::Bool(false));
        object.entry("properties").or_insert(Value::Object(Map::new()));
    } else if schema.get("type").is_some_and(|kind| kind == "null") {
        // A tool without parameters may say so with the unit type.
        return crate::tool_spec::no_parameters();
    }
    schema
}
