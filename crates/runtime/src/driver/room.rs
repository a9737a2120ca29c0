//! The room that a conversation has in requests, and the cuts that make more of it.
//!
//! A conversation that is estimated to exceed its [limit](super::fit::limit) is cut: older results, and then older answers, are
//! left out of requests until only half of the room is used. The cut is recorded before the request, and stays until the
//! conversation has grown to the limit again, so that requests between two cuts begin alike. A request is rendered by the
//! recorded cuts alone, never by the limit, which may differ later.
//!
//! A cut that a smaller model made is undone for a model that has room for everything. A summary stays: it cost a request.

use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use backstitch_core::machine::VisibleHistory;
use backstitch_core::object::ObjectId;
use backstitch_core::session::{Items, Session};
use backstitch_repl::transcript::{
    ConversationOrder, Cut, CutHead, CutPlanner, CutRules, LatestCuts, estimated_bytes,
};

use super::conversation::{Conversation, ShownConversation};
use super::fit::{BYTES_PER_TOKEN, fits};
use crate::agent::Agent;
use crate::error::Result;

/// The most answers that stay beside a summary that a person asks for.
const KEPT_BY_REQUEST: usize = 2;

/// A conversation before a request, with its cuts.
pub(super) struct Room {
    rules: CutRules,
    limit: Option<u64>,
    cuts: LatestCuts,
    order: ConversationOrder,
    all: Items<InnerMessage>,
    /// The estimated size of all messages.
    bytes: u64,
    shown: ShownConversation,
    /// The renderer of an uncompressed conversation.
    renderer: Option<String>,
}

impl Room {
    /// Combines a conversation with the cuts of its session. `limit` is that of its model; a request that is rendered by its
    /// cuts needs none.
    pub(super) fn new(
        agent: &Agent,
        session: &Session,
        conversation: &mut Conversation,
        limit: Option<u64>,
    ) -> Result<Self> {
        let cuts = conversation.order.latest(&session.all::<Cut>()?);
        let rules = agent.cut_rules();
        Ok(Self {
            limit: limit.into_iter().chain(rules.tokens).min(),
            rules,
            order: conversation.order.clone(),
            all: conversation.shown.clone(),
            bytes: conversation.bytes,
            shown: conversation.shown_by(cuts.shown.as_ref()),
            renderer: agent.renderer(),
            cuts,
        })
    }

    /// Returns the cut that still needs its summary.
    pub(super) fn pending(&self) -> Option<&Arc<Cut>> {
        self.cuts.pending.as_ref()
    }

    /// Returns the conversation as the next request shows it.
    pub(super) fn visible(&self) -> VisibleHistory {
        let cut = self.cuts.shown.as_ref().and_then(|cut| cut.renderer());
        let renderer: Vec<String> = self.renderer.clone().into_iter().chain(cut).collect();
        VisibleHistory {
            messages: self.shown.messages.clone(),
            renderer: (!renderer.is_empty()).then(|| renderer.join(" + ")),
            left_out: self.shown.left_out.clone(),
            tools_in_text: false,
        }
    }

    /// Returns the objects that hold the media of the conversation as the next request shows it.
    pub(super) fn media(&self) -> Vec<ObjectId> {
        self.shown.media.clone()
    }

    /// Returns the whole conversation.
    pub(super) fn whole(&self) -> VisibleHistory {
        VisibleHistory {
            messages: self.all.clone(),
            renderer: self.renderer.clone(),
            ..VisibleHistory::default()
        }
    }

    /// Returns the request for the summary that a cut needs.
    pub(super) fn summary_request(&self) -> Option<VisibleHistory> {
        let cut = self.cuts.pending.as_ref()?;
        let messages = cut.summary_request(self.all.iter(), self.shown.messages.iter(), &self.order)?;
        Some(VisibleHistory {
            messages: messages.into_iter().collect(),
            renderer: Some(cut.summary_renderer()),
            ..VisibleHistory::default()
        })
    }

    /// Returns the cut that the next request needs, if it needs one.
    pub(super) fn next_cut(&self, may_summarize: bool) -> Option<Cut> {
        let shown = self.cuts.shown.as_deref();
        let has_room = |bytes: u64| self.limit.is_none_or(|limit| fits(bytes, limit));
        let is_of_smaller_model = |cut: &Cut| {
            cut.limit.is_some_and(|then| self.limit.is_none_or(|now| now > then)) && !cut.has_summary()
        };
        if let Some(cut) = shown.filter(|cut| cut.leaves_out() && is_of_smaller_model(cut))
            && has_room(self.bytes)
        {
            return Some(Cut::whole(cut.end));
        }
        if has_room(self.shown.bytes) {
            return None;
        }
        let planner = self.planner()?;
        let summary = self.rules.summary.as_ref().filter(|_| may_summarize);
        let summarized = summary.and_then(|rules| {
            planner.summarizing(self.limit, self.rules.keep_turns.max(1), rules.focus.clone())
        });
        summarized.or_else(|| planner.fitting(self.limit?))
    }

    /// Returns the cut that a person asks for. Its summary is still to be written.
    pub(super) fn requested_cut(&self, focus: Option<String>) -> Option<Cut> {
        let mut cut = self.planner()?.summarizing(self.limit, KEPT_BY_REQUEST, focus)?;
        cut.limit = None;
        Some(cut)
    }

    /// Returns the cut in place of one whose summary could not be written. If the conversation is too long, it leaves out more;
    /// otherwise everything stays as it was.
    pub(super) fn without_summary(&self, pending: &Cut) -> Cut {
        let shorter = pending.limit.and_then(|limit| self.planner()?.fitting(limit));
        let before = || self.cuts.shown.as_deref().cloned();
        shorter.or_else(before).unwrap_or_else(|| Cut::whole(pending.end))
    }

    /// Returns the estimated number of tokens that requests show.
    pub(super) fn tokens(&self) -> u64 {
        self.shown.bytes.div_ceil(BYTES_PER_TOKEN)
    }

    /// Returns the beginning of the conversation with another cut, and the estimated number of tokens of requests with it.
    pub(super) fn with_cut(&self, cut: &Cut) -> (CutHead, u64) {
        let head = cut.render_head(self.all.iter(), &self.order);
        let later = estimated_bytes(self.all.iter().skip(head.count));
        let bytes = estimated_bytes(head.messages.iter()) + later;
        (head, bytes.div_ceil(BYTES_PER_TOKEN))
    }

    fn planner(&self) -> Option<CutPlanner<'_>> {
        CutPlanner::new(self.all.iter(), &self.order, &self.rules, self.cuts.shown.as_deref())
    }
}
