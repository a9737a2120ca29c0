//! HTML as Markdown, for a model that reads it.
//!
//! The page is read as a stream of tags and texts, without a tree: so no depth of nesting costs more than its length, and
//! tags that do not match are ignored. Headings, paragraphs, lists, quotations, tables, code, emphasis, links and the
//! descriptions of images are kept. Scripts, styles and drawings are left out.

mod converter;
mod tags;
mod writer;

use html5gum::{DefaultEmitter, Token, Tokenizer};
use url::Url;

use self::converter::Converter;

/// A page as Markdown.
#[derive(Debug, Default)]
pub(super) struct MarkdownPage {
    pub(super) text: String,
    pub(super) title: Option<String>,
    /// Whether its end is left out.
    pub(super) is_cut: bool,
}

/// Converts a page. Links are completed by its address.
pub(super) fn convert(html: &str, address: &Url) -> MarkdownPage {
    let mut emitter = DefaultEmitter::default();
    // Scripts, styles and titles have rules of their own.
    emitter.naively_switch_states(true);
    let mut page = Converter::new(address);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => page.open(&tag),
            Token::EndTag(tag) => page.close(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            _ => {}
        }
        if page.is_full() {
            break;
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests;
