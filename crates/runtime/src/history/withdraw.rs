//! Permissions that another person gave: rules that let calls run without a question, and approvals of calls that have not
//! ended. A session that another person started is continued without them.

use std::sync::Arc;

use backstitch_core::approval::{ApprovalRule, ApprovalVerdict};
use backstitch_core::journal::{Decision, Effect, PauseReason, RecordBody, SessionPaused};
use backstitch_core::session::{PreparedCommit, Session, SessionError};
use backstitch_core::time::Clock;
use backstitch_core::view::{Call, JournalView};

use crate::error::Result;
use crate::live::LiveSession;

/// The records that withdraw what another person permitted in a session. They can be appended together with the session, so that
/// it is never visible with these permissions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Withdrawal {
    /// The records, in order. There are none if nothing was permitted.
    pub records: Vec<RecordBody>,
    /// The rules that they remove.
    pub rules: Vec<ApprovalRule>,
}

impl Withdrawal {
    /// Builds the records for a session as it is at the head of a view.
    pub fn of(view: &JournalView, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut records = repeated_questions(view);
        let (rules, removal) = without_allowing_rules(&view.session(clock))?;
        for change in removal.iter().flat_map(PreparedCommit::changes) {
            records.extend(RecordBody::of_change(change)?);
        }
        Ok(Self { records, rules })
    }
}

impl LiveSession {
    /// Removes the rules that let calls run without a question, as for a session that another person started.
    /// Returns them. A rewind to a point before this one restores them.
    pub async fn remove_allowing_rules(&self) -> Result<Vec<ApprovalRule>> {
        self.commit(|commit| {
            let (removed, removal) = without_allowing_rules(commit.session())?;
            if let Some(removal) = removal {
                commit.keep(|_| Ok(removal))?;
            }
            Ok(removed)
        })
        .await
    }

    /// Asks again about the open calls that a person has approved, as in a session that another person started. Returns how many
    /// there are. Not among them are calls that a person is asked about anyway, because they may have had an effect outside,
    /// and those of sub-agents that have begun.
    pub async fn withdraw_approvals(&self) -> Result<usize> {
        let questions = repeated_questions(&*self.view().await);
        let count = questions.len();
        if count > 0 {
            self.record(questions).await?;
        }
        Ok(count)
    }
}

/// Returns the rules of a session that let calls run without a question, and what removes them, if there are any.
fn without_allowing_rules(
    session: &Session,
) -> Result<(Vec<ApprovalRule>, Option<PreparedCommit>), SessionError> {
    let allows = |rule: &ApprovalRule| rule.verdict == ApprovalVerdict::Allow;
    let found = session.filter::<ApprovalRule>(allows)?;
    if found.is_empty() {
        return Ok((Vec::new(), None));
    }
    let mut draft = session.draft();
    draft.clear_where::<ApprovalRule>(allows)?;
    let rules = found.iter().map(|rule| (**rule).clone()).collect();
    Ok((rules, Some(session.prepare(&draft)?)))
}

/// Returns the questions about open calls that a person has approved.
fn repeated_questions(view: &JournalView) -> Vec<RecordBody> {
    let open = view.open_evaluation().map(|open| open.evaluation_id);
    let calls = view.pending_calls().filter(|call| Some(call.evaluation_id) == open);
    let calls = calls.filter(|call| call.session().is_none() && !waits_for_outcome(call));
    let questions = calls.filter_map(|call| {
        let approval = call.approval.as_ref()?;
        let detail = format!("{} needs approval again, because another person approved it", call.name);
        let question = SessionPaused::new(PauseReason::Approval).of_call(call.call_id);
        let subject = approval.subject.clone();
        Some(SessionPaused { subject, ..question.with_detail(detail) }.into())
    });
    questions.collect()
}

/// Whether a person has to say if a call has happened before it runs again.
fn waits_for_outcome(call: &Call) -> bool {
    let decision = call.decision.as_ref().map(|resolved| &resolved.decision);
    let runs_again = matches!(decision, Some(Decision::Retry | Decision::Approve | Decision::Edit { .. }));
    let is_repeatable = call.recorded_effect().is_some_and(Effect::is_repeatable);
    call.may_have_run() && !runs_again && !is_repeatable
}
