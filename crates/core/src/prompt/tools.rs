//! Tools for sections that are shown as summaries.
//!
//! `read_section` returns the text of a section that offers no tools, and changes nothing. `open_sections`
//! requests sections to be shown in full: the evaluation ends, and another one supersedes it, with their text
//! and tools.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::build::SectionNode;
use super::render::{Pass, number};
use super::{BoundPrompt, PromptError};
use crate::journal::Effect;
use crate::session::Session;
use crate::slices::Visibility;
use crate::tool::{Tool, ToolBuilder, ToolContext, ToolError, ToolResult, WorkspaceUse};

/// The tool that returns the text of a section.
pub const READ_SECTION: &str = "read_section";

/// The tool that opens sections.
pub const OPEN_SECTIONS: &str = "open_sections";

/// Returns the hint below a summary.
pub(super) fn hint(node: &SectionNode) -> String {
    let path = &node.path;
    if node.has_tools() {
        format!("(This is a summary. `{OPEN_SECTIONS}` with {path:?} shows all of it and offers its tools.)")
    } else {
        format!("(This is a summary. `{READ_SECTION}` with {path:?} gives all of it.)")
    }
}

/// Adds the tools to read and open closed sections.
pub(super) fn add(tools: &mut Vec<Tool>, bound: &BoundPrompt, closed: &[&SectionNode]) {
    if closed.iter().any(|node| !node.has_tools()) {
        tools.push(read_section(bound.clone()));
    }
    if !closed.is_empty() {
        tools.push(open_sections(bound.clone()));
    }
}

#[derive(Deserialize, JsonSchema)]
struct ReadSectionArgs {
    /// The section, as its summary names it.
    section_key: String,
}

#[derive(Deserialize, JsonSchema)]
struct OpenSectionsArgs {
    /// The sections, as their summaries name them.
    section_keys: Vec<String>,
    /// Why they are needed.
    reason: String,
}

fn read_section(bound: BoundPrompt) -> Tool {
    let description = "Gives the whole text of a section that is shown as a summary. Nothing changes by it.";
    builder(READ_SECTION, description).handler(move |context: ToolContext, read: ReadSectionArgs| {
        let bound = bound.clone();
        async move {
            let text = context.session(|draft| text_of(&bound, draft, &read.section_key))??;
            Ok(ToolResult::ok(text))
        }
    })
}

fn open_sections(bound: BoundPrompt) -> Tool {
    let description =
        "Shows sections in full from now on, with their tools. The conversation starts again with them.";
    builder(OPEN_SECTIONS, description).handler(move |context: ToolContext, open: OpenSectionsArgs| {
        let bound = bound.clone();
        async move {
            let sections = context.session(|draft| closed_among(&bound, draft, &open.section_keys))??;
            Err(ToolError::VisibilityExpansionRequired { sections, reason: open.reason })
        }
    })
}

fn builder(name: &str, description: &str) -> ToolBuilder {
    let builder = Tool::builder(name, description).expect("invariant: the names are legal");
    builder.effect(Effect::Pure).workspace(WorkspaceUse::None)
}

/// Returns the full text of a section, regardless of its shown extent. Closed sections below it stay closed.
fn text_of(bound: &BoundPrompt, session: &Session, path: &str) -> Result<String, ToolError> {
    let mut pass = Pass::new(bound, session)?;
    let chain = find(bound, &pass, path)?;
    let Some((node, number)) = chain.last() else { return Err(unknown(bound, session, path)) };
    if node.has_tools() {
        return Err(refused(format!("section {path:?} has tools: open it with `{OPEN_SECTIONS}`")));
    }
    pass.node(node, number, Visibility::Full)?;
    Ok(pass.text)
}

/// Returns the paths that have to be opened to show these sections: those of them that are closed, and closed
/// ones around them.
fn closed_among(bound: &BoundPrompt, session: &Session, paths: &[String]) -> Result<Vec<String>, ToolError> {
    let pass = Pass::new(bound, session)?;
    let mut closed = BTreeSet::new();
    for path in paths {
        let chain = find(bound, &pass, path)?;
        if chain.is_empty() {
            return Err(unknown(bound, session, path));
        }
        for (node, _) in chain {
            if pass.visibility(node)? == Visibility::Summary {
                closed.insert(node.path.clone());
            }
        }
    }
    match closed.is_empty() {
        true if paths.is_empty() => Err(refused("name at least one section".to_owned())),
        true => {
            Err(refused("all of these sections are open already: what they say is in the prompt".to_owned()))
        }
        false => Ok(closed.into_iter().collect()),
    }
}

/// Finds the section at a path and those around it, each with its number. Returns nothing if there is none or
/// it is disabled.
fn find<'a>(
    bound: &'a BoundPrompt,
    pass: &Pass<'_>,
    path: &str,
) -> Result<Vec<(&'a SectionNode, String)>, PromptError> {
    let mut chain: Vec<(&SectionNode, String)> = Vec::new();
    let mut nodes = &bound.prompt().inner.sections;
    for key in path.split('.') {
        let above = chain.last().map_or(String::new(), |(_, number)| number.clone());
        let mut place = 0;
        let mut found = None;
        for node in nodes {
            if pass.is_enabled(node)? {
                place += 1;
                if node.section.key == key {
                    found = Some(node);
                    break;
                }
            }
        }
        let Some(node) = found else { return Ok(Vec::new()) };
        chain.push((node, number(&above, place)));
        nodes = &node.children;
    }
    Ok(chain)
}

fn unknown(bound: &BoundPrompt, session: &Session, path: &str) -> ToolError {
    let closed = match bound.render(session) {
        Ok(rendered) => rendered.sections,
        Err(error) => return error.into(),
    };
    let closed = closed.iter().filter(|section| section.visibility == Visibility::Summary);
    let closed: Vec<_> = closed.map(|section| section.path.as_str()).collect();
    refused(format!("there is no section {path:?}; those shown as summaries are: {}", closed.join(", ")))
}

fn refused(message: String) -> ToolError {
    ToolError::Validation { message }
}
