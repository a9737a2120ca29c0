//! The mode of an agent: what runs without a question.

use backstitch_core::mode::AgentMode;
use backstitch_core::tool::Tool;

use super::Agent;
use crate::process::probe;

/// What is known about the mode of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ModeChoice {
    /// Nothing was set: an agent with commands, or with a tool that reads over the network, has the default mode, and others have none.
    #[default]
    ByTools,
    /// This one, or none.
    Set(Option<AgentMode>),
}

impl Agent {
    /// Sets what runs without a question. An agent with a tool for commands in a sandbox, or one that reads over the network, has the mode
    /// [`Auto`](AgentMode::Auto) by default, and [`Ask`](AgentMode::Ask) where the system cannot confine commands: what
    /// stays inside of the sandbox runs, and what leaves it needs approval, such as calls of other tools with the effect
    /// [`External`](backstitch_core::journal::Effect::External). `None` leaves the question to each tool, as for agents
    /// without commands.
    ///
    /// The mode decides about calls; the sandbox of commands is a property of their tool. In [`Plan`](AgentMode::Plan),
    /// only those commands run whose sandbox lets them write nothing. Sub-agents have the stricter of their own mode and
    /// that of their caller.
    ///
    /// ```
    /// use backstitch_core::mode::AgentMode;
    /// use backstitch_runtime::Agent;
    ///
    /// let agent = Agent::new("shop/tailor").mode(AgentMode::Ask);
    /// assert_eq!(agent.current_mode(), Some(AgentMode::Ask));
    /// assert_eq!(Agent::new("shop/tailor").current_mode(), None);
    /// ```
    pub fn mode(self, mode: impl Into<Option<AgentMode>>) -> Self {
        Self { mode: ModeChoice::Set(mode.into()), ..self }
    }

    /// Returns the mode: that which was set, or the default for its tools.
    pub fn current_mode(&self) -> Option<AgentMode> {
        match self.mode {
            ModeChoice::Set(mode) => mode,
            ModeChoice::ByTools => {
                let leaves =
                    |tool: &Tool| tool.spec.commands.is_some() || tool.spec.address_argument.is_some();
                self.tools.iter().any(leaves).then(|| AgentMode::default_of(probe().confines()))
            }
        }
    }

    /// Makes the mode at least as strict as that of the calling agent.
    pub(crate) fn limit_mode(&mut self, of_caller: Option<AgentMode>) {
        let stricter = self.current_mode().into_iter().chain(of_caller).min();
        self.mode = ModeChoice::Set(stricter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sub_agent_has_the_stricter_mode() {
        use AgentMode::{Ask, Auto, Full, Plan};
        for (own, caller, expected) in [
            (None, None, None),
            (None, Some(Auto), Some(Auto)),
            (Some(Full), None, Some(Full)),
            (Some(Full), Some(Ask), Some(Ask)),
            (Some(Plan), Some(Full), Some(Plan)),
        ] {
            let mut agent = Agent::new("tailor").mode(own);
            agent.limit_mode(caller);
            assert_eq!(agent.current_mode(), expected);
        }
    }
}
