//! Doc tests: the examples of the README, the guides and the pages about agents.

macro_rules! doc_tests {
    ($($name:ident: $page:literal,)*) => {$(
        #[doc = include_str!($page)]
        struct $name;
    )*};
}

doc_tests! {
    Readme: "../../../../README.md",
    Agents: "../../../../docs/agents.md",
    FirstAgentGuide: "../../../../docs/guides/first-agent.md",
    TerminalGuide: "../../../../docs/guides/terminal.md",
    CommandToolsGuide: "../../../../docs/guides/command-tools.md",
    EditorsGuide: "../../../../docs/guides/editors.md",
    McpGuide: "../../../../docs/guides/mcp.md",
    ClaudeCodeGuide: "../../../../docs/guides/claude-code.md",
    CodexGuide: "../../../../docs/guides/codex.md",
    GuardGuide: "../../../../docs/guides/guard.md",
    IsolatedGuide: "../../../../docs/guides/isolated.md",
    ToolsGuide: "../../../../docs/guides/tools.md",
    TypedAnswersGuide: "../../../../docs/guides/typed-answers.md",
    ResourcesGuide: "../../../../docs/guides/resources.md",
    EffectsGuide: "../../../../docs/guides/effects.md",
    ResumeGuide: "../../../../docs/guides/resume-rewind-fork.md",
    ApprovalsGuide: "../../../../docs/guides/approvals.md",
    SubAgentsGuide: "../../../../docs/guides/sub-agents.md",
    ServiceGuide: "../../../../docs/guides/service.md",
    CheckpointsGuide: "../../../../docs/guides/checkpoints.md",
    TestingGuide: "../../../../docs/guides/testing.md",
    PricesGuide: "../../../../docs/guides/prices-and-budgets.md",
    ProvidersGuide: "../../../../docs/guides/providers.md",
    LispAgentsGuide: "../../../../docs/guides/lisp-agents.md",
    BridgeGuide: "../../../../docs/guides/bridge.md",
    AgentFilePage: "../../../../docs/agent-file.md",
}
