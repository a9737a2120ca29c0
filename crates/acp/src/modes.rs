//! Modes as an editor shows them. The mode `full` is not one that an editor may choose: a person confirms it in a terminal.

use agent_client_protocol::v1::schema::{SessionMode, SessionModeState};
use backstitch::agent_file::AgentDefinition;
use backstitch::mode::AgentMode;

/// The modes that an editor may choose.
const OFFERED: [(AgentMode, &str, &str); 3] = [
    (AgentMode::Plan, "Plan", "Changes nothing"),
    (AgentMode::Ask, "Ask", "Asks before each change and each command"),
    (AgentMode::Auto, "Auto", "Asks before what leaves the sandbox"),
];

/// Returns the modes of a session; `None` for one that was recorded before there were modes.
pub(crate) fn state_of(definition: &AgentDefinition) -> Option<SessionModeState> {
    let current = definition.mode?;
    let mut modes: Vec<SessionMode> = offered(definition)
        .map(|(mode, name, about)| SessionMode::new(mode.as_str(), name).description(about.to_owned()))
        .collect();
    if current == AgentMode::Full {
        let about = "Asks nothing, and confines nothing".to_owned();
        modes.push(SessionMode::new(current.as_str(), "Full").description(about));
    }
    Some(SessionModeState::new(current.as_str(), modes))
}

/// Returns the mode of a name, if the editor may choose it.
pub(crate) fn offered_mode(definition: &AgentDefinition, name: &str) -> Option<AgentMode> {
    offered(definition).map(|(mode, ..)| mode).find(|mode| mode.as_str() == name)
}

/// An engine has no `plan`.
fn offered(
    definition: &AgentDefinition,
) -> impl Iterator<Item = (AgentMode, &'static str, &'static str)> + use<> {
    let has_engine = definition.engine.is_some();
    OFFERED.into_iter().filter(move |(mode, ..)| !(has_engine && *mode == AgentMode::Plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_shown_and_never_offered() {
        let definition = |mode| AgentDefinition { mode, ..AgentDefinition::default() };
        let auto = definition(Some(AgentMode::Auto));
        let names = |definition: &AgentDefinition| -> Vec<String> {
            let state = state_of(definition).unwrap();
            state.available_modes.iter().map(|mode| mode.id.to_string()).collect()
        };
        assert_eq!(names(&auto), ["plan", "ask", "auto"]);
        let full = definition(Some(AgentMode::Full));
        assert_eq!(names(&full), ["plan", "ask", "auto", "full"]);
        for definition in [&auto, &full] {
            assert_eq!(offered_mode(definition, "full"), None);
            assert_eq!(offered_mode(definition, "ask"), Some(AgentMode::Ask));
        }
        assert!(state_of(&definition(None)).is_none());
    }
}
