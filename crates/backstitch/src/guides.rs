//! Doc tests: the examples of the README, the guides and the pages about agents.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/agents.md")]
struct Agents;

#[doc = include_str!("../../../docs/guides/first-agent.md")]
struct FirstAgentGuide;

#[doc = include_str!("../../../docs/guides/terminal.md")]
struct TerminalGuide;

#[doc = include_str!("../../../docs/guides/command-tools.md")]
struct CommandToolsGuide;

#[doc = include_str!("../../../docs/guides/mcp.md")]
struct McpGuide;

#[doc = include_str!("../../../docs/guides/claude-code.md")]
struct ClaudeCodeGuide;

#[doc = include_str!("../../../docs/guides/codex.md")]
struct CodexGuide;

#[doc = include_str!("../../../docs/guides/guard.md")]
struct GuardGuide;

#[doc = include_str!("../../../docs/guides/isolated.md")]
struct IsolatedGuide;

#[doc = include_str!("../../../docs/guides/tools.md")]
struct ToolsGuide;

#[doc = include_str!("../../../docs/guides/typed-answers.md")]
struct TypedAnswersGuide;

#[doc = include_str!("../../../docs/guides/resources.md")]
struct ResourcesGuide;

#[doc = include_str!("../../../docs/guides/effects.md")]
struct EffectsGuide;

#[doc = include_str!("../../../docs/guides/resume-rewind-fork.md")]
struct ResumeGuide;

#[doc = include_str!("../../../docs/guides/approvals.md")]
struct ApprovalsGuide;

#[doc = include_str!("../../../docs/guides/sub-agents.md")]
struct SubAgentsGuide;

#[doc = include_str!("../../../docs/guides/service.md")]
struct ServiceGuide;

#[doc = include_str!("../../../docs/guides/checkpoints.md")]
struct CheckpointsGuide;

#[doc = include_str!("../../../docs/guides/testing.md")]
struct TestingGuide;

#[doc = include_str!("../../../docs/guides/prices-and-budgets.md")]
struct PricesGuide;

#[doc = include_str!("../../../docs/guides/providers.md")]
struct ProvidersGuide;

#[doc = include_str!("../../../docs/guides/lisp-agents.md")]
struct LispAgentsGuide;

#[doc = include_str!("../../../docs/guides/bridge.md")]
struct BridgeGuide;

#[doc = include_str!("../../../docs/agent-file.md")]
struct AgentFilePage;
