//! Results of calls, as they are printed.

use std::time::{Duration, Instant};

use backstitch::slices::ToolInvoked;
use serde_json::json;

use super::{Role, Screen, Text};
use crate::look::tool_result::{KnownResult, PlanResult, result_line};
use crate::terminal;

/// Time of a call from which it is printed with the result.
const LONG: Duration = Duration::from_secs(1);

impl Screen {
    /// Prints the result of a call, with the name of the sub-agent that made it.
    pub(super) fn show_invocation(&self, invoked: &ToolInvoked, agent: Option<&str>) {
        let known = KnownResult::of(&invoked.rendered_output);
        let (took, rest) = {
            let mut state = self.state();
            if known.as_ref().is_some_and(KnownResult::is_command) {
                state.commands.insert(invoked.call_id);
            }
            let took = state.heartbeat.end_call(invoked.call_id, Instant::now());
            (took.filter(|took| *took >= LONG), state.output.rest(invoked.call_id))
        };
        self.event(json!({
            "v": 1, "event": "result", "call": invoked.call_id, "name": invoked.name,
            "success": invoked.success, "text": invoked.rendered_output,
        }));
        if let Some(rest) = rest.filter(|rest| *rest > 0) {
            let more = format!("  … {rest} more {}", if rest == 1 { "line" } else { "lines" });
            self.status_text(&Text::new().add(Role::Dim, more));
        }
        // A command that ran and failed is a result for the model, and a failure for a person.
        let is_fine = invoked.success && !known.as_ref().is_some_and(KnownResult::is_failure);
        let (mark, role) = match (is_fine, terminal::is_plain()) {
            (true, false) => ("+", Role::Success),
            (false, false) => ("x", Role::Failure),
            (true, true) => ("done", Role::Success),
            (false, true) => ("failed", Role::Failure),
        };
        let took = took.map(|took| format!("  ({:.1} s)", took.as_secs_f64())).unwrap_or_default();
        let agent = agent.map(|agent| format!("{agent} · ")).unwrap_or_default();
        let start = format!("{mark} {agent}{}", invoked.name);
        let room = terminal::room(terminal::width(&start) + terminal::width(&took) + 3, 90);
        // Output of a command was printed as it arrived.
        let exit = rest.and_then(|_| known.as_ref()?.exit());
        let result = exit.unwrap_or_else(|| result_line(&invoked.rendered_output, room));
        let line = Text::new().add(role, start).plain(format!(": {result}"));
        self.status_text(&line.add(Role::Dim, took));
        if let Some(KnownResult::Plan(plan)) = &known {
            plan_lines(plan, terminal::is_plain()).iter().for_each(|line| self.status_text(line));
        }
    }
}

/// Draws a plan as a list.
fn plan_lines(plan: &PlanResult, is_plain: bool) -> Vec<Text> {
    let mut lines = vec![Text::new().plain("  ").add(Role::Emphasis, &plan.objective)];
    for step in &plan.steps {
        let (mark, word, role) = match step.status.as_str() {
            "done" => ("[x]", "done", Role::Success),
            "in_progress" => ("[>]", "in progress", Role::Accent),
            _ => ("[ ]", "pending", Role::Plain),
        };
        let start = if is_plain { format!("{word}:") } else { mark.to_owned() };
        let first = Text::new().plain("  ").add(role, start).plain(format!(" {}. ", step.step));
        let indent = first.width();
        lines.extend(terminal::hanging(first, indent, Role::Plain, &step.title, terminal::columns()));
    }
    lines
}
