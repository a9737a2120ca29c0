//! Plans of cuts: where a conversation that has used up its room is cut.
//!
//! A cut frees half of the room, so that many requests follow before the next one. It leaves out as little of the
//! recent work as it can: first the text of old results, then the oldest answers with their calls and results, and
//! results of recent answers only if nothing else helps. The last answer stays, and so do the messages of users.

use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::journal::InnerMessage;

use super::cut::{ConversationOrder, ConversationPoint, Cut, CutSummary};
use super::head::BlockIndex;
use super::{TranscriptHistory, Weight};

/// The number of latest answers whose results stay as long as anything else can be left out.
const LEAST_TURNS: usize = 2;

/// Bytes of a message for each token, by an estimate.
const BYTES_PER_TOKEN: u64 = 4;

/// The approximate weight of a note about what is left out.
const NOTE: u64 = 200;

/// What cuts leave out, and when they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutRules {
    /// The most tokens of the conversation, by an estimate, in addition to what the model allows.
    pub tokens: Option<u64>,
    /// The number of latest answers whose results stay, unless the room is too small for them.
    pub keep_turns: usize,
    /// Results of up to this size in bytes stay.
    pub keep_bytes: u64,
    /// The number of characters that are shown of a result that is left out.
    pub preview: usize,
    /// The name of the tool that recalls results, if it is available.
    pub recall: Option<String>,
    /// The summaries that stand for answers that are left out; `None` for none.
    pub summary: Option<SummaryRules>,
}

/// How summaries are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryRules {
    /// What they pay attention to.
    pub focus: Option<String>,
}

/// A conversation that is to be cut.
pub struct CutPlanner<'a> {
    rules: &'a CutRules,
    order: &'a ConversationOrder,
    last: Option<&'a Cut>,
    history: TranscriptHistory,
    end: ConversationPoint,
    /// The weight of each block.
    full: Vec<u64>,
    /// The weight of the blocks before each one: of their messages, of these without the text of results, and of the
    /// blocks among them that are never left out.
    sums: Vec<WeightSums>,
    /// The weight of everything else.
    apart: u64,
}

/// Accumulated weights of blocks.
#[derive(Debug, Clone, Copy, Default)]
struct WeightSums {
    full: u64,
    elided: u64,
    staying: u64,
}

impl<'a> CutPlanner<'a> {
    /// Weighs a whole conversation after its latest complete cut. `None` if it has no messages.
    pub fn new<'m>(
        messages: impl IntoIterator<Item = &'m Arc<InnerMessage>>,
        order: &'a ConversationOrder,
        rules: &'a CutRules,
        last: Option<&'a Cut>,
    ) -> Option<Self> {
        let history: TranscriptHistory = messages.into_iter().cloned().collect();
        let end = ConversationPoint::of(history.messages().next_back()?);
        let mut planner = Self {
            rules,
            order,
            last,
            end,
            full: vec![0; history.blocks().len()],
            sums: vec![WeightSums::default()],
            apart: NOTE,
            history,
        };
        planner.weigh();
        Some(planner)
    }

    fn weigh(&mut self) {
        let index = BlockIndex { history: &self.history, order: self.order };
        let form = self.cut(0, 0);
        let mut elided = self.full.clone();
        for message in self.history.messages() {
            let weight = Weight::of(message);
            let Some(at) = index.of(message) else {
                self.apart += weight;
                continue;
            };
            let is_open = self.history.blocks().get(at).is_some_and(|block| block.is_open());
            let short = if is_open { None } else { form.elided(message) };
            self.full[at] += weight;
            elided[at] += short.map_or(weight, |short| Weight::of(&short));
        }
        let mut sums = WeightSums::default();
        for ((block, full), elided) in self.history.blocks().iter().zip(&self.full).zip(elided) {
            sums.full += full;
            sums.elided += elided;
            sums.staying += if block.may_go() { 0 } else { elided };
            self.sums.push(sums);
        }
        let summary = self.last.and_then(|last| last.summary.as_ref()?.text.as_ref());
        self.apart += summary.map_or(0, |text| text.len() as u64);
    }

    /// Returns the cut that leaves the conversation room to grow to a limit in tokens; `None` if nothing more can be
    /// left out.
    pub fn fitting(&self, limit: u64) -> Option<Cut> {
        let limit = limit.saturating_mul(BYTES_PER_TOKEN);
        let (results, answers) = self.best(limit);
        let before = self.left_out_before();
        let is_shorter = self.size(results, answers) < self.size(before.0, before.1);
        let mut cut = self.cut(results, answers);
        cut.limit = Some(limit / BYTES_PER_TOKEN);
        is_shorter.then_some(cut)
    }

    /// Returns the number of blocks without results, and of blocks that are left out.
    fn best(&self, limit: u64) -> (usize, usize) {
        let (half, most) = (limit / 2, limit / 4 * 3);
        let (least_results, least_answers) = self.left_out_before();
        let all = self.full.len();
        let without = |kept: usize| all.saturating_sub(kept).max(least_results);
        let (recent, last) = (without(self.rules.keep_turns.max(LEAST_TURNS)), without(LEAST_TURNS));
        let results = |from: usize, to: usize| {
            let mut sizes = (from..=to).map(|results| (results, least_answers));
            sizes.find(|(results, answers)| self.size(*results, *answers) <= half)
        };
        let answers = |results: usize, size: u64| {
            let mut sizes = (least_answers..=results).map(|answers| (results, answers));
            sizes.find(|(results, answers)| self.size(*results, *answers) <= size)
        };
        results(least_results, recent)
            .or_else(|| answers(recent, half))
            .or_else(|| results(recent, last))
            .or_else(|| answers(last, half))
            .or_else(|| answers(last, most))
            .unwrap_or_else(|| {
                let all_but_last = all.saturating_sub(1).max(least_answers);
                (last.max(all_but_last), all_but_last)
            })
    }

    /// Returns what the latest cut leaves out: the number of blocks without results, and of blocks.
    fn left_out_before(&self) -> (usize, usize) {
        let index = BlockIndex { history: &self.history, order: self.order };
        let Some(last) = self.last else { return (0, 0) };
        let answers = index.before(last.answers_from);
        (index.before(last.results_from).max(answers), answers)
    }

    /// Returns the weight of the conversation with this many blocks without results, and not more of them left out.
    fn size(&self, results: usize, answers: usize) -> u64 {
        let (all, before) = (self.sums[self.full.len()], self.sums[results]);
        let gone = self.sums[answers];
        self.apart + gone.staying + (before.elided - gone.elided) + (all.full - before.full)
    }

    /// Returns the cut with this many blocks without results, and this many left out. A summary stays.
    fn cut(&self, results: usize, answers: usize) -> Cut {
        let last = self.last.filter(|last| last.has_summary());
        Cut {
            results_from: self.point(results),
            answers_from: self.point(answers),
            keep_bytes: self.rules.keep_bytes,
            preview: self.rules.preview,
            recall: self.rules.recall.clone(),
            summary: last.and_then(|last| last.summary.clone()),
            ..Cut::whole(self.end)
        }
    }

    /// Returns the beginning of a block; `None` for the first one.
    fn point(&self, block: usize) -> Option<ConversationPoint> {
        let index = BlockIndex { history: &self.history, order: self.order };
        let block = self.history.blocks().get(block).filter(|_| block > 0)?;
        index.first(block).map(|message| ConversationPoint::of(message))
    }

    /// Returns a cut whose summary is still to be written. It covers all answers but the last ones, at most `keep` of
    /// them and a quarter of the limit in tokens. `None` if there is nothing new to cover, or no message of a user that
    /// could show the summary.
    pub fn summarizing(&self, limit: Option<u64>, keep: usize, focus: Option<String>) -> Option<Cut> {
        let most = limit.map(|limit| limit.saturating_mul(BYTES_PER_TOKEN) / 4);
        let all = self.full.len();
        let (mut covered, mut kept) = (all.checked_sub(1)?, self.full.last().copied()?);
        while covered > 0 && all - covered < keep {
            kept += self.full[covered - 1];
            if most.is_some_and(|most| kept > most) {
                break;
            }
            covered -= 1;
        }
        let index = BlockIndex { history: &self.history, order: self.order };
        let known = self.last.and_then(|last| last.summary.as_ref()).map(|summary| summary.before);
        index.leaving(index.before(known)..covered).next()?;
        let before = self.point(covered)?;
        index.annotated(Some(before))?;
        let mut cut = self.cut(covered, covered);
        cut.limit = limit;
        cut.summary = Some(CutSummary { before, focus, text: None, extra: Extra::default() });
        Some(cut)
    }
}
