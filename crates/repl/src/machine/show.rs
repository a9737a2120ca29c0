//! Renders the history for the model, as plain messages.

use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::VisibleHistory;
use backstitch_core::message::{Content, Message, Part, PolicyName, RoleHint};

use crate::agent::CompiledAgent;
use crate::compression::{History, RenderContext, RenderedHistory, RenderedMessage};
use crate::turn::{Turn, TurnError};

/// The history of an evaluation, as far as the model may be shown it.
pub(super) struct VisibleLog {
    /// The system message, then the messages to the policy.
    inputs: Vec<Arc<InnerMessage>>,
    turns: History,
    /// The missions and answers of earlier evaluations.
    earlier: Arc<str>,
    /// The constant part of all requests.
    scene: RenderContext,
    /// The answer whose program runs.
    answer: String,
}

impl VisibleLog {
    pub(super) fn new(prepared: &CompiledAgent, earlier: String) -> Self {
        let earlier: Arc<str> = earlier.into();
        let scene = scene(prepared, &earlier, &[]);
        Self { inputs: Vec::new(), turns: History::new(), earlier, scene, answer: String::new() }
    }

    /// Adds a message to the policy. Messages after the mission become part of it.
    pub(super) fn add_message(&mut self, message: &Arc<InnerMessage>, prepared: &CompiledAgent) {
        self.inputs.push(message.clone());
        self.scene = scene(prepared, &self.earlier, &self.inputs);
    }

    pub(super) fn answer(&mut self, answer: String) {
        self.answer = answer;
    }

    pub(super) fn take_answer(&mut self) -> String {
        std::mem::take(&mut self.answer)
    }

    pub(super) fn push(&mut self, turn: Arc<Turn>) {
        self.turns.push(turn);
    }

    /// The error of the last turn, if it failed.
    pub(super) fn last_error(&self) -> Option<&TurnError> {
        self.turns.turns().next_back()?.error.as_ref()
    }

    pub(super) fn show(
        &self,
        prepared: &CompiledAgent,
        evaluation: EvaluationId,
        answers_left: Option<u64>,
    ) -> VisibleHistory {
        let compression = &prepared.agent.options.compression;
        let rendered = compression.render(&self.turns, &self.scene.clone().turns_left(answers_left));
        let left_out = left_out(&rendered);
        VisibleHistory {
            messages: self.messages(rendered, evaluation).into_iter().collect(),
            renderer: Some(compression.renderer()),
            left_out,
            tools_in_text: true,
        }
    }

    fn messages(&self, rendered: RenderedHistory, evaluation: EvaluationId) -> Vec<Arc<InnerMessage>> {
        let Some(first) = self.inputs.first() else { return Vec::new() };
        let mut turn = 0;
        let mut media = self.media();
        let mut messages = Vec::with_capacity(rendered.messages.len());
        for (place, shown) in rendered.messages.into_iter().enumerate() {
            let hint = match shown.role {
                Role::System => RoleHint::System,
                Role::User | Role::Tool => RoleHint::User,
                Role::Assistant => RoleHint::Assistant,
            };
            turn += u64::from(shown.role == Role::Assistant);
            let mut parts = texts(&shown);
            if hint == RoleHint::User {
                parts.append(&mut media);
            }
            let mut message = Message::new(speaker(shown.role), Content::Parts(parts.into()));
            message.role_hint_for_llm = Some(hint);
            messages.push(Arc::new(InnerMessage {
                message_id: first.message_id.derived(&format!("shown {place}")),
                evaluation_id: evaluation,
                sequence: place as u64,
                turn,
                prompt_ns: first.prompt_ns.clone(),
                prompt_key: first.prompt_key.clone(),
                created_at: first.created_at,
                message,
                role: Some(shown.role),
                provider: None,
                extra: Extra::default(),
            }));
        }
        messages
    }

    /// The media of user messages.
    fn media(&self) -> Vec<Part> {
        let inputs = self.inputs.iter().filter(|message| message.role() == Role::User);
        let parts = inputs.filter_map(|message| message.message.parts()).flatten();
        parts.filter(|part| !matches!(part, Part::Text(_))).cloned().collect()
    }
}

/// The text of a message in two parts, if all requests of the evaluation share its beginning: providers that cache
/// whole parts can cache the first one.
fn texts(shown: &RenderedMessage) -> Vec<Part> {
    match shown.text.split_at_checked(shown.stable) {
        Some((stable, rest)) if !stable.is_empty() && !rest.trim().is_empty() => {
            // With the break between parts, this is the empty line that separates sections.
            vec![Part::text(stable), Part::text(format!("\n{}", rest.trim_start_matches('\n')))]
        }
        _ => vec![Part::text(&*shown.text)],
    }
}

/// What a render left out, one line for each kind.
fn left_out(rendered: &RenderedHistory) -> Vec<String> {
    let statistics = &rendered.statistics;
    let dropped = [
        ("turns", statistics.turns_dropped),
        ("failed turns", statistics.failed_turns.dropped()),
        ("prints", statistics.prints.dropped()),
        ("calls", statistics.tool_calls.dropped()),
        ("definitions", statistics.definitions.dropped()),
    ];
    let dropped = dropped.into_iter().filter(|(_, count)| *count > 0);
    dropped.map(|(what, count)| format!("{count} {what}")).collect()
}

fn scene(prepared: &CompiledAgent, earlier: &Arc<str>, inputs: &[Arc<InnerMessage>]) -> RenderContext {
    let of = |role: Role| inputs.iter().filter(move |message| message.role() == role);
    let mission: Vec<String> = of(Role::User).map(|message| message.content()).collect();
    let agent = &prepared.agent;
    let mut scene = RenderContext::new(mission.join("\n\n"))
        .earlier(earlier.clone())
        .tools(agent.tools.iter().map(|tool| &**tool))
        .data(&prepared.data, agent.options.compression.sample())
        .max_turns(Some(agent.options.most_turns()));
    if let Some(system) = of(Role::System).next() {
        scene = scene.system(system.content());
    }
    scene
}

fn speaker(role: Role) -> PolicyName {
    let name = match role {
        Role::System => "prompt",
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    PolicyName::new(name).unwrap_or_else(|_| PolicyName::runtime())
}
