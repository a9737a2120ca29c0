//! Prompts, and checks of their names, paths, tools and texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::bound::{BoundPrompt, values_of};
use super::output::Output;
use super::section::{Body, Section};
use super::template::Template;
use super::tools::{OPEN_SECTIONS, READ_SECTION};
use super::{PromptError, name};
use crate::digest::Digest;
use crate::slices::Visibility;
use crate::tool::{Tool, ToolName};

/// A prompt: a tree of sections, and optionally a description of its output. A clone is cheap.
#[derive(Clone)]
pub struct Prompt {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) ns: String,
    pub(super) key: String,
    pub(super) name: String,
    /// Text before all sections. It is not a template.
    pub(super) preamble: String,
    pub(super) sections: Vec<SectionNode>,
    pub(super) output: Option<Output>,
    /// The fields of all texts, each with the path of the first section that uses it.
    pub(super) fields: BTreeMap<String, String>,
}

/// A section whose texts are parsed.
pub(super) struct SectionNode {
    /// The section as it was given, without its children.
    pub(super) section: Section,
    pub(super) path: String,
    pub(super) body: Template,
    /// Whether the text is the session's digest for this section. The body is used until there is one.
    pub(super) is_digest: bool,
    pub(super) summary: Option<Template>,
    pub(super) children: Vec<SectionNode>,
}

impl SectionNode {
    /// Returns whether it can be shown as a summary.
    pub(super) fn can_close(&self) -> bool {
        self.summary.is_some() || self.is_digest
    }

    /// Returns whether it, or any section below it, offers tools.
    pub(super) fn has_tools(&self) -> bool {
        !self.section.tools.is_empty() || self.children.iter().any(Self::has_tools)
    }

    fn depends_on_session(&self) -> bool {
        let asks = self.section.enabled.is_some() || self.section.selector.is_some();
        asks || self.can_close() || self.children.iter().any(Self::depends_on_session)
    }
}

impl Prompt {
    /// Creates a builder.
    pub fn builder(ns: impl Into<String>, key: impl Into<String>) -> PromptBuilder {
        let (ns, key) = (ns.into(), key.into());
        PromptBuilder { ns, key, name: None, preamble: String::new(), sections: Vec::new(), output: None }
    }

    /// Namespace of the prompt's key.
    pub fn ns(&self) -> &str {
        &self.inner.ns
    }

    /// Key of the prompt within its namespace.
    pub fn key(&self) -> &str {
        &self.inner.key
    }

    /// Name for people: `ns/key` by default.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Description of the answer, if there is one.
    pub fn output(&self) -> Option<&Output> {
        self.inner.output.as_ref()
    }

    /// Returns whether the rendered text can differ between sessions.
    pub fn depends_on_session(&self) -> bool {
        self.inner.sections.iter().any(SectionNode::depends_on_session)
    }

    /// Binds the prompt to its parameters: a value with a field for each `$field`, no more and no fewer. A
    /// prompt without fields takes `&()`.
    pub fn bind<P: Serialize + ?Sized>(&self, parameters: &P) -> Result<BoundPrompt, PromptError> {
        let values = values_of(parameters)?;
        let fields = &self.inner.fields;
        if let Some((field, path)) = fields.iter().find(|(field, _)| !values.contains_key(*field)) {
            return Err(PromptError::MissingField { path: path.clone(), field: field.clone() });
        }
        if let Some(field) = values.keys().find(|field| !fields.contains_key(*field)) {
            let known = fields.keys().cloned().collect();
            return Err(PromptError::UnknownField { field: field.clone(), known });
        }
        Ok(BoundPrompt::new(self.clone(), values))
    }

    /// Computes a digest of the prompt's contract: the source of its sections, the contracts of all of their
    /// tools, and the output. It does not depend on parameters or sessions.
    pub fn descriptor(&self) -> Result<Digest, PromptError> {
        let sections = described(&self.inner.sections)?;
        let schema = self.output().map(Output::schema);
        let digest = match self.inner.preamble.as_str() {
            "" => Digest::of_json(&(self.ns(), self.key(), sections, schema)),
            preamble => Digest::of_json(&(self.ns(), self.key(), preamble, sections, schema)),
        };
        digest.map_err(PromptError::Contract)
    }
}

fn described(nodes: &[SectionNode]) -> Result<Vec<Value>, PromptError> {
    let described = nodes.iter().map(|node| {
        let tools = node.section.tools.iter().map(|tool| tool.spec.contract_digest());
        let tools: Result<Vec<_>, _> = tools.collect();
        Ok(serde_json::json!({
            "path": node.path,
            "title": node.section.title,
            "body": node.body.source(),
            "is_digest": node.is_digest,
            "summary": node.summary.as_ref().map(Template::source),
            "visibility": node.section.visibility,
            "tools": tools.map_err(PromptError::Contract)?,
            "children": described(&node.children)?,
        }))
    });
    described.collect()
}

impl fmt::Debug for Prompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prompt")
            .field("ns", &self.ns())
            .field("key", &self.key())
            .finish_non_exhaustive()
    }
}

/// A builder of prompts.
#[derive(Debug, Clone)]
pub struct PromptBuilder {
    ns: String,
    key: String,
    name: Option<String>,
    preamble: String,
    sections: Vec<Section>,
    output: Option<Output>,
}

impl PromptBuilder {
    /// Sets a name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets a text before all sections. It is used unchanged: a `$` in it is not a parameter.
    #[must_use]
    pub fn preamble(mut self, text: impl Into<String>) -> Self {
        self.preamble = text.into();
        self
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Sets the description of the answer.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.output = Some(output);
        self
    }

    /// Builds the prompt, or fails if its names, paths, tools or texts are invalid.
    pub fn build(self) -> Result<Prompt, PromptError> {
        name::check_prompt("the namespace of a prompt", &self.ns)?;
        name::check_prompt("the key of a prompt", &self.key)?;
        let mut seen = PromptNames::default();
        let sections = seen.nodes(self.sections, "")?;
        let name = self.name.unwrap_or_else(|| format!("{}/{}", self.ns, self.key));
        let (ns, key, preamble, output, fields) =
            (self.ns, self.key, self.preamble, self.output, seen.fields);
        Ok(Prompt { inner: Arc::new(Inner { ns, key, name, preamble, sections, output, fields }) })
    }
}

/// Paths, tools and fields seen so far.
#[derive(Default)]
struct PromptNames {
    tools: BTreeSet<ToolName>,
    fields: BTreeMap<String, String>,
}

impl PromptNames {
    fn nodes(&mut self, sections: Vec<Section>, above: &str) -> Result<Vec<SectionNode>, PromptError> {
        let mut keys = BTreeSet::new();
        let mut nodes = Vec::with_capacity(sections.len());
        for section in sections {
            let node = self.node(section, above)?;
            if !keys.insert(node.section.key.clone()) {
                return Err(PromptError::DuplicateSection { path: node.path });
            }
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn node(&mut self, mut section: Section, above: &str) -> Result<SectionNode, PromptError> {
        let key = &section.key;
        name::check_section(key)?;
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        let (body, is_digest) = match &section.body {
            Body::Text(body) => (body, false),
            Body::Digest(otherwise) => (otherwise, true),
        };
        let may_close = section.visibility == Visibility::Summary || section.selector.is_some();
        if may_close && section.summary.is_none() && !is_digest {
            return Err(PromptError::NoSummary { path });
        }
        for tool in section.tools.iter().map(Tool::name) {
            let taken = [READ_SECTION, OPEN_SECTIONS].contains(&tool.as_str());
            if taken || !self.tools.insert(tool.clone()) {
                return Err(PromptError::DuplicateTool { path, tool: tool.clone() });
            }
        }
        let body = self.template(&path, body)?;
        let summary = section.summary.as_ref().map(|summary| self.template(&path, summary)).transpose()?;
        let children = self.nodes(std::mem::take(&mut section.children), &path)?;
        Ok(SectionNode { section, path, body, is_digest, summary, children })
    }

    fn template(&mut self, path: &str, source: &str) -> Result<Template, PromptError> {
        let template = Template::parse(source)
            .map_err(|source| PromptError::Template { path: path.to_owned(), source })?;
        for field in template.fields() {
            self.fields.entry(field.to_owned()).or_insert_with(|| path.to_owned());
        }
        Ok(template)
    }
}
