//! Decisions about paused sessions.

use backstitch_core::approval::ApprovalRule;
use backstitch_core::crash_point;
use backstitch_core::id::CallId;
use backstitch_core::journal::{
    CallFinished, CallVerdict, Decision, Effect, InnerMessage, PauseReason, PauseResolved, RecordBody,
    WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::message::{Content, Message, OptionResultBuilder, Retry};
use backstitch_core::object::Object;
use backstitch_core::ports::Store;
use backstitch_core::view::{Call, CallStatus, JournalView};

use crate::content::result_message;
use crate::error::{Result, RuntimeError};
use crate::live::{DoubtfulFiles, InterruptedFiles, LiveSession, charge_for, read_records, recorded};

impl LiveSession {
    /// Applies a decision: about a call, or about the session as a whole. It takes effect at once, as far as
    /// no tool has to run for it.
    pub async fn resolve(&self, call: Option<CallId>, decision: Decision, by: Option<String>) -> Result<()> {
        self.apply_decision(PauseResolved::new(decision).of_call(call).by(by)).await
    }

    /// Like [`resolve`](Self::resolve), with what the decision is about. An approval of something else than what the call
    /// waits with is refused.
    pub async fn apply_decision(&self, mut resolved: PauseResolved) -> Result<()> {
        let decision = resolved.decision.clone();
        let Some(id) = resolved.call_id else { return self.continue_session(decision, resolved.by).await };
        let view = self.view().await;
        let pause = view.pauses().find(|pause| pause.call_id == Some(id));
        let (reason, child) = (pause.map(|pause| pause.reason), pause.and_then(|pause| pause.session));
        let refused = |why: &str| Err(RuntimeError::Unresolvable(format!("call {id}: {why}")));
        let Some(known) = view.call(id).cloned() else { return refused("there is no such call") };
        if known.status() != CallStatus::Pending {
            return refused("it has its result already");
        }
        let is_unknown = matches!(reason, Some(PauseReason::EffectUnknown | PauseReason::Wait))
            || reason.is_none() && known.may_have_run()
            || child.is_some();
        match &decision {
            Decision::Approve | Decision::Edit { .. } | Decision::Deny { .. } if let Some(child) = child => {
                return refused(&format!("it is session {child} that waits: decide it there"));
            }
            Decision::Approve | Decision::Edit { .. } | Decision::Deny { .. }
                if reason != Some(PauseReason::Approval) =>
            {
                return refused("it does not wait for approval");
            }
            Decision::Retry | Decision::Happened { .. } | Decision::Fail { .. } if !is_unknown => {
                return refused("its outcome is not in question");
            }
            Decision::Continue if reason.is_none() => return refused("it does not wait for anything"),
            Decision::Accept => return refused("an answer can be accepted, a call cannot"),
            _ => {}
        }
        let asked = pause.and_then(|pause| pause.subject.clone());
        resolved.subject = match &decision {
            Decision::Approve | Decision::Edit { .. }
                if resolved.subject.is_some() && resolved.subject != asked =>
            {
                return refused("what it would run has changed since the question; look at it again");
            }
            Decision::Approve => asked,
            Decision::Edit { arguments } => asked.map(|asked| asked.with_arguments(arguments)),
            _ => None,
        };
        crash_point!("resolve.before");
        self.end_survivors().await?;
        match decision {
            Decision::Happened { result } => {
                if result.invocation_id != id || result.option_name != known.name {
                    return refused("the result is that of another call");
                }
                let message = result_message(*result, None);
                // Files that it may have written are adopted as they are. A call that does not write
                // determines nothing about the files: another call may have been writing them.
                let before = known.intent.as_ref().map(|intent| &intent.record);
                let found =
                    match before.and_then(|intent| WorkspaceRevision::of(intent.root, intent.coverage)) {
                        Some(before) => self.files_left_by(before).await?.map(recorded),
                        None => None,
                    };
                let (files, objects) = found.unzip();
                let outcome = (CallVerdict::Succeeded, files, None);
                self.end_call(&known, resolved, message, outcome, objects.unwrap_or_default()).await
            }
            Decision::Fail { reason } => {
                let explanation =
                    reason.unwrap_or_else(|| "the call was interrupted and counts as failed".to_owned());
                let rescue = self.restore_before_call(&known).await?;
                let message = self.failure(&known, "interrupted", explanation).await?;
                let outcome = (CallVerdict::Failed, None, rescue);
                self.end_call(&known, resolved, message, outcome, Vec::new()).await?;
                match known.session() {
                    Some(child) => self.withdraw_child(child, "its call counts as failed").await,
                    None => Ok(()),
                }
            }
            _ => self.record(vec![resolved.into()]).await,
        }
    }

    /// Adds a rule about calls. It holds for the session and for its sub-agents, and a rewind to a point before
    /// it removes it.
    pub async fn add_approval_rule(&self, rule: ApprovalRule) -> Result<()> {
        self.commit(|commit| {
            let is_known = commit
                .session()
                .all::<ApprovalRule>()?
                .iter()
                .any(|known| (known.verdict, &known.scope) == (rule.verdict, &rule.scope));
            if is_known { Ok(()) } else { commit.dispatch(rule) }
        })
        .await
    }

    /// Returns the recorded result that a pause offers, if it offers one.
    pub async fn offered_result(&self, call: CallId) -> Result<Option<InnerMessage>> {
        let view = self.view().await;
        offered_result(&**self.store(), &view, call).await
    }

    /// Continues a session whose pause is not about a call, or that a person has repaired.
    async fn continue_session(&self, decision: Decision, by: Option<String>) -> Result<()> {
        if decision != Decision::Continue {
            return Err(RuntimeError::Unresolvable("say which call this is about".to_owned()));
        }
        let waits = self.view().await.pauses().any(|pause| pause.call_id.is_none());
        if !waits {
            return Err(RuntimeError::Unresolvable("the session does not wait for anything".to_owned()));
        }
        let was_poisoned = self.condition().repair();
        self.record(vec![PauseResolved::new(decision).by(by).into()]).await?;
        if was_poisoned {
            // Resources that could not be restored before may be restorable now.
            self.restore_resources().await
        } else {
            Ok(())
        }
    }

    /// Ends an interrupted call with an error, and leaves the files as they are.
    pub(crate) async fn end_keeping_files(&self, call: &Call) -> Result<()> {
        let effect = call.intent.as_ref().map_or(Effect::External, |intent| intent.record.effect);
        let unknown =
            if effect.acts_outside() { "; whether it had an effect outside is not known" } else { "" };
        let explanation = format!(
            "{} was interrupted and is not run again; its files were kept as they were found{unknown}",
            call.name
        );
        let message = self.failure(call, "interrupted", explanation.clone()).await?;
        let decision = Decision::Fail { reason: Some(explanation) };
        let resolved = PauseResolved::new(decision).of_call(call.call_id).by(self.claim().owner.to_string());
        self.end_call(call, resolved, message, (CallVerdict::Failed, None, None), Vec::new()).await
    }

    /// Restores what an interrupted call has changed. What others changed later stays, and so do files of which that is not known,
    /// since the call does not run again. Returns the root that the files had, which is durable by then.
    async fn restore_before_call(&self, call: &Call) -> Result<Option<WorkspaceRoot>> {
        let intent = call.intent.as_ref().map(|intent| &intent.record);
        let Some(files) = intent.and_then(|intent| WorkspaceRevision::of(intent.root, intent.coverage))
        else {
            return Ok(None);
        };
        let restored = self.restore_interrupted(call, files, DoubtfulFiles::Keep).await?;
        crash_point!("resolve.restored");
        Ok(match restored {
            InterruptedFiles::Restored(rescue) => rescue,
            InterruptedFiles::Doubtful(_) => None,
        })
    }

    async fn failure(&self, call: &Call, kind: &str, explanation: String) -> Result<Message> {
        let transcript = self.view().await.transcript()?;
        let made = transcript.message_of(call.call_id);
        let made =
            made.ok_or_else(|| RuntimeError::Unresolvable(format!("call {} was never made", call.call_id)))?;
        let mut builder = OptionResultBuilder::response_to(&made.message)?;
        Ok(builder.as_runtime().error(kind, explanation, Retry::Allowed))
    }

    async fn end_call(
        &self,
        call: &Call,
        resolved: PauseResolved,
        message: Message,
        (outcome, files, rescue): (CallVerdict, Option<WorkspaceRevision>, Option<WorkspaceRoot>),
        objects: Vec<Object>,
    ) -> Result<()> {
        let spent = charge_for(self, call).await?;
        let before = call.intent.as_ref().and_then(|intent| intent.record.root);
        let after = files.map(|files| files.root).or(rescue);
        let changes = self.changes_between(before, after, &objects).await?;
        let left = match outcome {
            CallVerdict::Succeeded => self.resources_left_by(call).await?,
            CallVerdict::Failed => Vec::new(),
        };
        if call.session().is_some() {
            self.condition().reclaim_files();
        }
        self.commit(|commit| {
            let transcript = commit.view().transcript()?;
            let made = transcript.message_of(call.call_id);
            let turn = made.map_or(0, |made| made.turn);
            let mut message = message;
            message.step_num = message.step_num.or(made.and_then(|made| made.message.step_num));
            commit.push(resolved);
            commit.say(call.evaluation_id, turn, message)?;
            commit.push_all(spent).push_all(left);
            commit.push(CallFinished {
                root: files.map(|files| files.root),
                coverage: files.and_then(|files| files.coverage),
                rescue,
                changes,
                summary: Some("its outcome was decided".to_owned()),
                ..CallFinished::new(call.call_id, outcome)
            });
            commit.add_objects(objects);
            Ok(())
        })
        .await?;
        match call.session() {
            Some(_) => self.restore_resources().await,
            None => Ok(()),
        }
    }
}

/// Returns the recorded result that a pause offers for a call, if it offers one.
pub(crate) async fn offered_result(
    store: &dyn Store,
    view: &JournalView,
    call: CallId,
) -> Result<Option<InnerMessage>> {
    let offer = view.pauses().find(|pause| pause.call_id == Some(call)).and_then(|pause| pause.offer);
    let Some(point) = offer else { return Ok(None) };
    let next = Some(point.position.next());
    let records = match read_records(store, point.session, point.position, next).await {
        Err(RuntimeError::SessionNotFound { .. }) => return Ok(None),
        records => records?,
    };
    let offered = records.into_iter().find_map(|record| match record.body {
        RecordBody::MessageAppended(message) => Some((*message).clone()),
        _ => None,
    });
    Ok(offered.map(|mut message| {
        // The result may be that of the call that this one repeats.
        if let Content::OptionResult(result) = &mut message.message.content {
            result.invocation_id = call;
        }
        message
    }))
}
