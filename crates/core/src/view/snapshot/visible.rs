//! The encoding of the visible state.

use std::sync::Arc;

use super::{ViewSnapshotError, slices};
use crate::journal::{InnerMessage, MAX_TURN};
use crate::pack::{Pack, Packer, Unpacker, packed_structs};
use crate::view::call::Call;
use crate::view::evaluation::Evaluation;
use crate::view::visible::{ResourceStates, VisibleState};

packed_structs! {
    ResourceStates { first, latest }
}

impl VisibleState {
    pub(super) fn pack(&self, to: &mut Packer, texts: &mut Vec<u8>) -> Result<(), ViewSnapshotError> {
        let Self {
            state,
            evaluations,
            evaluation_index: _,
            calls,
            call_index: _,
            pauses,
            last_at,
            is_driven,
            files,
            writer,
            files_are_owed,
            resources,
            turns,
            mission,
            ancestors,
        } = self;
        evaluations.pack(to);
        calls.pack(to);
        pauses.pack(to);
        last_at.pack(to);
        is_driven.pack(to);
        files.pack(to);
        writer.pack(to);
        files_are_owed.pack(to);
        resources.pack(to);
        turns.pack(to);
        mission.pack(to);
        ancestors.pack(to);
        slices::pack(state, to, texts)
    }

    /// Decodes the visible state. The texts of the slices are in `bytes` from `texts` on.
    pub(super) fn unpack(
        from: &mut Unpacker<'_>,
        bytes: &Arc<Vec<u8>>,
        texts: usize,
    ) -> Result<Self, ViewSnapshotError> {
        let evaluations: imbl::Vector<Arc<Evaluation>> = Pack::unpack(from)?;
        let calls: imbl::Vector<Arc<Call>> = Pack::unpack(from)?;
        let in_order = evaluations.iter().enumerate();
        let evaluation_index = in_order.map(|(index, known)| (known.evaluation_id, index)).collect();
        let in_order = calls.iter().enumerate();
        let call_index = in_order.map(|(index, call)| (call.call_id, index)).collect();
        let visible = Self {
            evaluations,
            evaluation_index,
            calls,
            call_index,
            pauses: Pack::unpack(from)?,
            last_at: Pack::unpack(from)?,
            is_driven: Pack::unpack(from)?,
            files: Pack::unpack(from)?,
            writer: Pack::unpack(from)?,
            files_are_owed: Pack::unpack(from)?,
            resources: Pack::unpack(from)?,
            turns: Pack::unpack(from)?,
            mission: Pack::unpack(from)?,
            ancestors: Pack::unpack(from)?,
            state: slices::unpack(from, bytes, texts)?,
        };
        // Folding relies on these.
        let messages = visible.state.length::<InnerMessage>() as u64;
        let fits = |known: &Arc<Evaluation>| known.messages <= messages && known.turns <= MAX_TURN;
        match visible.evaluations.iter().all(fits) {
            true => Ok(visible),
            false => {
                Err(ViewSnapshotError::Malformed("an evaluation does not agree with the transcript".into()))
            }
        }
    }
}
