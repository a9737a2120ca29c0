//! The aims: what each figure should be. This is the only place that says so.
//!
//! A group prints a figure that has an aim by [`Aim::judge`]: a line whose parameters hold the aim, and as `outcome` whether
//! it is `met` or `missed`. No test fails because of an outcome.

use serde_json::{Value, json};

use crate::report::{Report, ratio};

/// A figure that is aimed at.
#[derive(Clone, Copy)]
pub(crate) struct Aim {
    metric: &'static str,
    unit: &'static str,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

const fn aim(metric: &'static str, bound: Bound, unit: &'static str) -> Aim {
    Aim { metric, unit, bound }
}

/// A tool call as a transaction in memory: processor time.
pub(crate) const TOOL_TRANSACTION: Aim = aim("aim.tool_transaction", AtMost(5.0), "us");
/// A turn with one call on a durable store: processor time.
pub(crate) const DURABLE_TURN: Aim = aim("aim.durable_turn", AtMost(0.25), "ms");
/// An append against a bare commit of the same rows: wall time.
pub(crate) const APPEND_WALL: Aim = aim("aim.append_to_bare_commit_wall", AtMost(1.2), "ratio");
/// An append against a bare commit of the same rows: processor time.
pub(crate) const APPEND_CPU: Aim = aim("aim.append_to_bare_commit_cpu", AtMost(1.3), "ratio");
/// Appends per second of ten sessions against those of one.
pub(crate) const TEN_SESSIONS: Aim = aim("aim.appends_of_ten_sessions_to_one", AtLeast(3.0), "ratio");
/// Reading and folding 500 turns against parsing them.
pub(crate) const READ_AND_FOLD: Aim = aim("aim.read_and_fold_to_parsing", AtMost(1.3), "ratio");
/// The processor time of turn 1,000 against that of turn 10, through a provider without the transport.
pub(crate) const LATE_TURN: Aim = aim("aim.turn_1000_to_turn_10", AtMost(1.2), "ratio");
/// The processor time of a turn in a session of 4,000 turns against one of 250.
pub(crate) const TURN_GROWTH: Aim = aim("aim.turn_4000_to_250", AtMost(1.3), "ratio");
/// The same for the turns of a follow-up.
pub(crate) const FOLLOW_UP_GROWTH: Aim = aim("aim.follow_up_4000_to_250", AtMost(1.3), "ratio");
/// The part of the requests at the limit of the window that repeat nine tenths of the one before.
pub(crate) const REPEATING_REQUESTS: Aim = aim("agent.repeating_requests", AtLeast(0.9), "ratio");
/// Opening 5,000 turns from a snapshot against reading it.
pub(crate) const OPEN_FROM_SNAPSHOT: Aim = aim("aim.open_from_snapshot_to_reading", AtMost(1.3), "ratio");
/// A session of 100 messages in memory.
pub(crate) const LOADED_SESSION: Aim = aim("aim.memory_of_100_messages", AtMost(90.0), "KiB");
/// A session that is only claimed, in memory.
pub(crate) const IDLE_SESSION: Aim = aim("aim.memory_of_idle_session", AtMost(2.0), "KiB");
/// Bytes that a turn adds to a store against its raw text.
pub(crate) const TURN_SIZE: Aim = aim("store.turn_size_to_raw_text", AtMost(3.0), "ratio");
/// A hook of the guard on 10,000 files, beyond a walk over them.
pub(crate) const GUARD_HOOK: Aim = aim("aim.guard_hook_beyond_walk", AtMost(8.0), "ms");
/// Restoring 100 of 10,000 files against `git reset --hard`.
pub(crate) const RESTORE: Aim = aim("aim.restore_to_git_reset", AtMost(0.5), "ratio");
/// A snapshot of 10,000 files, of which 100 changed, against walking over all of them and reading these.
pub(crate) const SNAPSHOT: Aim = aim("aim.snapshot_to_walk_and_read", AtMost(1.3), "ratio");
/// A tiny program of the agent language, from its text to its value.
pub(crate) const TINY_PROGRAM: Aim = aim("aim.lisp_tiny", AtMost(3.0), "us");
/// `filter` and `map` over 10,000 maps.
pub(crate) const FILTER_MAP: Aim = aim("aim.lisp_filter_map", AtMost(1.5), "ms");
/// `sort-by`, `group-by` and `frequencies` over 10,000 maps against Clojure, when it is warm.
pub(crate) const TO_CLOJURE: Aim = aim("aim.lisp_to_clojure", AtMost(1.0), "ratio");
/// The time until a command on a session of 5,000 turns prints something.
pub(crate) const FIRST_OUTPUT: Aim = aim("aim.first_output", AtMost(100.0), "ms");
/// The size of the command.
pub(crate) const COMMAND_SIZE: Aim = aim("aim.command_size", AtMost(35.0), "MB");
/// Appends per second of 32 sessions to a store on a server, through as many connections.
pub(crate) const SERVER_APPENDS: Aim = aim("fleet.appends_per_second", AtLeast(2_500.0), "appends/s");
/// The same through a pooler.
pub(crate) const POOLED_APPENDS: Aim = aim("fleet.appends_per_second", AtLeast(1_500.0), "appends/s");
/// Appends per second against bare INSERTs of the same bytes through as many connections.
pub(crate) const APPENDS_TO_BARE: Aim = aim("fleet.appends_to_bare_inserts", AtLeast(0.7), "ratio");
/// Sessions claimed per second from a queue of 100,000, beside as many timers.
pub(crate) const CLAIMS: Aim = aim("fleet.claims_per_second", AtLeast(2_000.0), "sessions/s");
/// One claim from such a queue, among the slowest hundredth.
pub(crate) const SLOW_CLAIM: Aim = aim("fleet.claim_p99", AtMost(20.0), "ms");
/// From enqueuing to the first request, the median, for workers that get hints.
pub(crate) const HINTED_REQUEST: Aim = aim("fleet.enqueue_to_request_p50", AtMost(50.0), "ms");
/// The same for workers that only look at the queue once a second.
pub(crate) const POLLED_REQUEST: Aim = aim("fleet.enqueue_to_request_p50", AtMost(1_100.0), "ms");
/// Statements of ten idle workers in a second, with 10,000 paused sessions.
pub(crate) const IDLE_STATEMENTS: Aim = aim("fleet.idle_statements", AtMost(15.0), "statements/s");

impl Aim {
    /// Prints the figure with the aim and its outcome. `params` is an object that says what was measured.
    pub(crate) fn judge(self, report: &mut Report, mut params: Value, value: f64) {
        // The figure is judged as it is printed.
        let value = ratio(value);
        let (aim, is_met) = match self.bound {
            AtMost(most) => (most, value <= most),
            AtLeast(least) => (least, value >= least),
        };
        params["aim"] = json!(aim);
        params["outcome"] = json!(if is_met { "met" } else { "missed" });
        report.precise(self.metric, params, value, self.unit);
    }
}
