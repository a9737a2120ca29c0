//! Pages of the calls and of the requests of a session.

use backstitch_runtime::{PointSpec, RuntimeError};

use super::super::view_at;
use super::page_of;
use crate::budget::Amounts;
use crate::journal::{CallChanges, ChangeCounts};
use crate::report::{
    CallRow, CallsPage, ModelUsage, PageLimit, PageStart, RequestFailure, RequestRow, RequestsPage, Version,
};
use crate::runtime::Runtime;
use crate::view::{Call, Evaluation, JournalView, Request};

impl Runtime {
    /// Lists a page of the calls of a conversation at a point, or at the head. `head` is the view there.
    pub async fn calls_page(
        &self,
        head: &JournalView,
        at: Option<&PointSpec>,
        start: PageStart,
        limit: PageLimit,
    ) -> Result<CallsPage, RuntimeError> {
        let view = match at {
            Some(point) => view_at(&*self.store.store, head, point).await?.0,
            None => head.clone(),
        };
        let total = view.calls().count();
        let (from, calls, next) = page_of(total, start, limit, view.calls(), call_row);
        Ok(CallsPage { v: Version, session: head.session_id(), total, from, calls, next })
    }

    /// Lists a page of the requests of a session.
    pub fn requests_page(&self, view: &JournalView, start: PageStart, limit: PageLimit) -> RequestsPage {
        let all = || {
            view.evaluations()
                .flat_map(|evaluation| evaluation.requests.iter().map(move |request| (evaluation, request)))
        };
        let total = all().count();
        let (from, requests, next) =
            page_of(total, start, limit, all(), |(evaluation, request)| request_row(evaluation, request));
        RequestsPage { v: Version, session: view.session_id(), total, from, requests, next }
    }
}

fn call_row(call: &Call) -> CallRow {
    let (intent, finished) = (call.intent.as_ref(), call.finished.as_ref());
    let checkpoint = call.checkpoint();
    let changed = finished.and_then(|finished| finished.record.changes.as_ref()).map(counts);
    CallRow {
        call: call.call_id,
        evaluation: call.evaluation_id,
        name: call.name.clone(),
        status: call.status(),
        effect: call.recorded_effect(),
        attempt: intent.map(|intent| intent.record.attempt),
        started: intent.map(|intent| intent.point),
        started_at: intent.map(|intent| intent.at),
        finished: finished.map(|finished| finished.point),
        finished_at: finished.map(|finished| finished.at),
        elapsed_micros: finished.map(|finished| finished.record.elapsed_micros),
        outcome: finished.map(|finished| finished.record.outcome),
        summary: finished.and_then(|finished| finished.record.summary.clone()),
        sub_agent: call.session(),
        root_before: checkpoint.as_ref().and_then(|checkpoint| checkpoint.before.root),
        root_after: checkpoint.and_then(|checkpoint| checkpoint.after?.root),
        rescue: finished.and_then(|finished| finished.record.rescue),
        changed,
        approved_by: call.approval.as_ref().and_then(|approval| approval.by.clone()),
    }
}

fn counts(changes: &CallChanges) -> ChangeCounts {
    changes.counts()
}

fn request_row(evaluation: &Evaluation, request: &Request) -> RequestRow {
    let (started, finished) = (&request.started, request.finished.as_ref());
    let failures = request.failures.iter().map(|failure| RequestFailure {
        failed: failure.point,
        at: failure.at,
        kind: failure.record.kind.clone(),
        message: failure.record.message.clone(),
    });
    RequestRow {
        started: started.point,
        started_at: started.at,
        evaluation: evaluation.evaluation_id,
        turn: started.record.turn,
        usage: ModelUsage {
            provider: started.record.provider.clone(),
            model: started.record.model.clone(),
            usage: finished.map_or(Amounts::ZERO, |finished| finished.record.usage),
        },
        attempts: request.attempts(),
        failures: failures.collect(),
        finished: finished.map(|finished| finished.point),
        finished_at: finished.map(|finished| finished.at),
        finish: finished.map(|finished| finished.record.finish.clone()),
        digest: started.record.digest,
        length: started.record.length,
    }
}
