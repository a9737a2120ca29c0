//! From text to forms.

mod form;

pub use form::{Form, FormKind, Forms, Name, Span, Tag};
