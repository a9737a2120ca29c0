//! Results of tools.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::message::{MediaPart, Part};
use crate::object::Object;
use crate::secrets::Secrets;
use crate::session::{Draft, Event, SessionError};

/// The result of a tool call.
///
/// ```
/// use backstitch_core::tool::ToolResult;
///
/// let result = ToolResult::ok("two seams are open").with_value(["hem", "sleeve"])?;
/// assert_eq!(result.value, Some(serde_json::json!(["hem", "sleeve"])));
/// let result = ToolResult::failed("the drawer is locked"); // the call is rolled back
/// assert!(result.value.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Default)]
pub struct ToolResult {
    /// Sentence for the model.
    pub message: String,
    /// Structured value.
    pub value: Option<Value>,
    /// Whether the call succeeded. The changes of a failed call are rolled back.
    pub success: ToolStatus,
    /// Whether the model sees the value in addition to the sentence.
    pub value_in_context: ValueInContext,
    /// Media for the model.
    pub parts: Vec<Part>,
    events: Vec<AppliedEvent>,
    objects: Vec<Object>,
}

/// Whether the changes of a call are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolStatus {
    /// The call succeeded, and its changes are kept.
    #[default]
    Yes,
    /// The call failed: its changes are rolled back, and the model receives the failure.
    No,
}

/// Whether the model sees a result's value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ValueInContext {
    /// The model sees the value.
    #[default]
    Included,
    /// The model sees only the sentence.
    Excluded,
}

type AppliedEvent = Box<dyn FnOnce(&mut Draft) -> Result<(), SessionError> + Send>;

impl ToolResult {
    /// Creates a success with this message.
    pub fn ok(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Creates a failure with this message. All changes of the call are rolled back.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { success: ToolStatus::No, ..Self::ok(message) }
    }

    /// Replaces keys in the message, the value and text parts. Media is left unchanged.
    pub fn redact(&mut self, secrets: &Secrets) {
        if secrets.is_empty() {
            return;
        }
        secrets.redact_in(&mut self.message);
        self.value = self.value.take().map(|value| secrets.redact_value(value));
        for part in &mut self.parts {
            let text = part.as_text().and_then(|part| part.text.inline());
            if let Some(Cow::Owned(clean)) = text.map(|text| secrets.redact(text)) {
                *part = Part::text(clean);
            }
        }
    }

    /// Sets the value. Fails if it cannot be written as JSON.
    pub fn with_value(mut self, value: impl Serialize) -> Result<Self, serde_json::Error> {
        self.value = Some(serde_json::to_value(value)?);
        Ok(self)
    }

    /// Adds an event that is dispatched to the reducers of its type within the transaction. It is committed
    /// with the call, and the call fails if a reducer refuses it.
    ///
    /// ```
    /// use backstitch_core::{session::Slice, tool::ToolResult};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Finding { text: String }
    /// impl Slice for Finding { const NAME: &'static str = "finding"; }
    ///
    /// // The model reads the sentence; the session gets the finding.
    /// let result = ToolResult::ok("found a loose end").with_event(Finding { text: "a loose end".into() });
    /// # let _ = result;
    /// ```
    #[must_use]
    pub fn with_event<E: Event>(mut self, event: E) -> Self {
        self.events.push(Box::new(move |draft| draft.dispatch(event).map(|_| ())));
        self
    }

    /// Adds media.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds media with its bytes, which are stored with the result. See [`MediaPart::held`].
    #[must_use]
    pub fn with_media(mut self, (media, object): (MediaPart, Object)) -> Self {
        self.objects.push(object);
        self.with_part(Part::Media(media))
    }

    /// Takes the objects that its parts refer to. For the runtime, which stores them.
    pub fn take_objects(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.objects)
    }

    /// Hides the value from the model. It is still recorded with the result, as `value_not_in_context`.
    ///
    /// ```
    /// use backstitch_core::tool::{ToolResult, ValueInContext};
    ///
    /// let points: Vec<u32> = (0..1_000).collect();
    /// let result = ToolResult::ok("measured 1,000 points").with_value(points)?.exclude_value_from_context();
    /// assert_eq!(result.value_in_context, ValueInContext::Excluded);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn exclude_value_from_context(mut self) -> Self {
        self.value_in_context = ValueInContext::Excluded;
        self
    }

    /// Dispatches the events of the result.
    pub fn apply_events(&mut self, draft: &mut Draft) -> Result<(), SessionError> {
        std::mem::take(&mut self.events).into_iter().try_for_each(|event| event(draft))
    }
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ToolResult")
            .field("message", &self.message)
            .field("value", &self.value)
            .field("success", &self.success)
            .field("parts", &self.parts)
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}
