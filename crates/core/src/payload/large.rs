//! Records with one field that may be too large.
//!
//! This module defines the field of each record once. Storing, loading and listing objects use
//! [`LargeRecord`].

use std::sync::Arc;

use super::{CallStarted, EvaluationFinished, ProgramStarted, ResourceChanged, TaskFinished, TurnFinished};
use crate::message::MessageError;
use crate::message::large::{Large, LargeField, Source};
use crate::object::{Object, ObjectContent, ObjectRef};

/// A record with one field that may be too large.
pub trait LargeRecord: Send + Sync {
    /// The object that holds the field, if one does.
    fn large_object(&self) -> Option<ObjectRef>;

    /// Moves the field into an object, if it is too large.
    fn spill(&mut self, objects: &mut Vec<Object>);

    /// Restores the field from the content of its object, where a marker stands for what a redaction removed.
    fn hydrate_content(&mut self, content: &ObjectContent) -> Result<(), MessageError>;
}

/// Declares the field of each record.
macro_rules! large_records {
    ($($record:ident.$field:ident),* $(,)?) => {$(
        impl $crate::payload::LargeRecord for std::sync::Arc<$record> {
            fn large_object(&self) -> Option<$crate::object::ObjectRef> {
                $crate::payload::large::object(&self.$field)
            }

            fn spill(&mut self, objects: &mut Vec<$crate::object::Object>) {
                $crate::payload::large::spill(self, |record| &record.$field, |record| &mut record.$field, objects);
            }

            fn hydrate_content(
                &mut self,
                content: &$crate::object::ObjectContent,
            ) -> Result<(), $crate::message::MessageError> {
                let field = &mut std::sync::Arc::make_mut(self).$field;
                $crate::payload::large::hydrate(stringify!($field), field, content)
            }
        }
    )*};
}
pub(crate) use large_records;

large_records!(
    CallStarted.arguments,
    EvaluationFinished.output,
    ProgramStarted.source,
    ResourceChanged.state,
    TaskFinished.value,
    TurnFinished.data,
);

pub(crate) fn object(field: &impl LargeField) -> Option<ObjectRef> {
    field.large().and_then(Large::object)
}

/// Spills a field of a shared record, which is copied only if the field has to be moved.
pub(crate) fn spill<T: Clone, F: LargeField>(
    record: &mut Arc<T>,
    field: impl FnOnce(&T) -> &F,
    field_mut: impl FnOnce(&mut T) -> &mut F,
    objects: &mut Vec<Object>,
) {
    if let Some(object) = field(record).large().and_then(Large::oversized)
        && let Some(large) = field_mut(Arc::make_mut(record)).large_mut()
    {
        *large = Large::Object(object.to_ref());
        objects.push(object);
    }
}

pub(crate) fn hydrate(
    name: &'static str,
    field: &mut impl LargeField,
    content: &ObjectContent,
) -> Result<(), MessageError> {
    let mut fetch = |_| Some(content.clone());
    field.large_mut().map_or(Ok(()), |large| large.hydrate(name, &mut Source(&mut fetch)))
}
