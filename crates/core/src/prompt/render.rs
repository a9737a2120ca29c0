//! Rendering of a prompt and a session to text and tools.
//!
//! Sections are visited depth first. Enabled sections are numbered by their place: `1.`, `1.1.`, `2.`. A
//! section that is shown as a summary has its number too, so opening it does not renumber others. Only
//! sections that are shown in full contribute tools.

use serde::Serialize;
use serde_json::Value;

use super::build::SectionNode;
use super::output::Output;
use super::tools;
use super::{BoundPrompt, PromptError};
use crate::digest::Digest;
use crate::session::Session;
use crate::slices::{Visibility, VisibilityOverrides, WorkspaceDigest};
use crate::tool::{Tool, ToolSpec};

/// The deepest heading of Markdown.
const DEEPEST: usize = 6;

/// A rendered prompt, as the model receives it.
#[derive(Debug, Clone)]
pub struct RenderedPrompt {
    /// The text: the system message of an evaluation.
    pub text: String,
    /// The tools of the sections that are shown in full, and those to read or open the others.
    pub tools: Vec<Tool>,
    /// The enabled sections, in the order of the text.
    pub sections: Vec<RenderedSection>,
}

/// A rendered section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenderedSection {
    /// Path of the section.
    pub path: String,
    /// Number of the section, as in `1.2`.
    pub number: String,
    /// Shown extent of the section.
    pub visibility: Visibility,
}

/// Computes a digest of everything that a model received and may rely on: the text, the contracts of the
/// tools ordered by name, and the output. An evaluation that is resumed with another fingerprint continues
/// with a different prompt than it started with.
pub fn fingerprint<'a>(
    ns: &str,
    key: &str,
    text: Option<&str>,
    tools: impl IntoIterator<Item = &'a ToolSpec>,
    output: Option<&Value>,
) -> Result<Digest, serde_json::Error> {
    let mut tools: Vec<_> = tools.into_iter().collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let contracts: Result<Vec<_>, _> = tools.into_iter().map(ToolSpec::contract_digest).collect();
    match output {
        None => Digest::of_json(&(ns, key, text, contracts?)),
        Some(schema) => Digest::of_json(&(ns, key, text, contracts?, schema)),
    }
}

pub(super) fn render(bound: &BoundPrompt, session: &Session) -> Result<RenderedPrompt, PromptError> {
    let mut pass = Pass::new(bound, session)?;
    let prompt = &bound.prompt().inner;
    pass.block(&prompt.preamble);
    pass.nodes(&prompt.sections, "")?;
    if let Some(output) = bound.prompt().output().filter(|output| output.is_described()) {
        pass.describe_output(output);
    }
    tools::add(&mut pass.tools, bound, &pass.closed);
    Ok(RenderedPrompt { text: pass.text, tools: pass.tools, sections: pass.shown })
}

/// A traversal of the sections.
pub(super) struct Pass<'a> {
    bound: &'a BoundPrompt,
    session: &'a Session,
    overrides: VisibilityOverrides,
    pub(super) text: String,
    tools: Vec<Tool>,
    shown: Vec<RenderedSection>,
    closed: Vec<&'a SectionNode>,
    /// Number of outermost sections so far.
    outermost: usize,
}

impl<'a> Pass<'a> {
    pub(super) fn new(bound: &'a BoundPrompt, session: &'a Session) -> Result<Self, PromptError> {
        let overrides = session.latest::<VisibilityOverrides>()?;
        Ok(Self {
            bound,
            session,
            overrides: overrides.map(|overrides| (*overrides).clone()).unwrap_or_default(),
            text: String::new(),
            tools: Vec::new(),
            shown: Vec::new(),
            closed: Vec::new(),
            outermost: 0,
        })
    }

    pub(super) fn is_enabled(&self, node: &SectionNode) -> Result<bool, PromptError> {
        let Some(enabled) = &node.section.enabled else { return Ok(true) };
        enabled(self.session).map_err(|source| PromptError::Enabled { path: node.path.clone(), source })
    }

    /// Returns the shown extent of a section: that of the session, else that of the prompt. A section without
    /// a summary cannot be closed.
    pub(super) fn visibility(&self, node: &SectionNode) -> Result<Visibility, PromptError> {
        let wanted = match (self.overrides.get(&node.path), &node.section.selector) {
            (Some(overridden), _) => overridden,
            (None, Some(selector)) => selector(self.session)
                .map_err(|source| PromptError::Visibility { path: node.path.clone(), source })?,
            (None, None) => node.section.visibility,
        };
        Ok(match wanted {
            Visibility::Summary if node.can_close() => Visibility::Summary,
            _ => Visibility::Full,
        })
    }

    fn nodes(&mut self, nodes: &'a [SectionNode], above: &str) -> Result<(), PromptError> {
        let mut place = 0;
        for node in nodes {
            if self.is_enabled(node)? {
                place += 1;
                self.node(node, &number(above, place), self.visibility(node)?)?;
            }
        }
        if above.is_empty() {
            self.outermost = place;
        }
        Ok(())
    }

    pub(super) fn node(
        &mut self,
        node: &'a SectionNode,
        number: &str,
        visibility: Visibility,
    ) -> Result<(), PromptError> {
        let shown = RenderedSection { path: node.path.clone(), number: number.to_owned(), visibility };
        self.shown.push(shown);
        self.heading(number, &node.section.title);
        let text = self.text_of(node, visibility)?;
        self.block(&text);
        match visibility {
            Visibility::Full => {
                self.tools.extend(node.section.tools.iter().cloned());
                self.nodes(&node.children, number)
            }
            Visibility::Summary => {
                self.closed.push(node);
                self.block(&tools::hint(node));
                Ok(())
            }
        }
    }

    fn text_of(&self, node: &SectionNode, visibility: Visibility) -> Result<String, PromptError> {
        let digest = if node.is_digest {
            let digests = self.session.all::<WorkspaceDigest>()?;
            digests.iter().rev().find(|digest| digest.section_key == node.path).cloned()
        } else {
            None
        };
        let values = self.bound.values();
        Ok(match (digest, visibility) {
            (Some(digest), Visibility::Full) => digest.body.clone(),
            (Some(digest), Visibility::Summary) => digest.summary.clone(),
            (None, Visibility::Full) => node.body.fill(values),
            (None, Visibility::Summary) => node.summary.as_ref().unwrap_or(&node.body).fill(values),
        })
    }

    fn describe_output(&mut self, output: &Output) {
        self.heading(&number("", self.outermost + 1), "Answer");
        self.block(&output.description());
    }

    fn heading(&mut self, number: &str, title: &str) {
        let level = (2 + number.matches('.').count()).min(DEEPEST);
        self.block(&format!("{} {number}. {title}", "#".repeat(level)));
    }

    /// Adds a paragraph, separated by a blank line.
    fn block(&mut self, text: &str) {
        let text = text.trim_matches('\n').trim_end();
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }
}

/// Returns the number of a section by its place among the enabled ones.
pub(super) fn number(above: &str, place: usize) -> String {
    if above.is_empty() { place.to_string() } else { format!("{above}.{place}") }
}
