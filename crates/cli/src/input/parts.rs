//! The parts of a message: its text, and what is attached.

use backstitch::Mission;
use backstitch::message::{MediaPart, MediaType, Part};
use backstitch::object::Object;

use super::file::AttachedContent;

/// A message with what is attached to it.
#[derive(Debug)]
pub(crate) struct MessageParts {
    parts: Vec<Part>,
    media: Vec<(MediaPart, Object)>,
    /// What was attached, for people.
    pub(crate) attached: Vec<String>,
}

impl MessageParts {
    /// Creates a message of text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text.into())], media: Vec::new(), attached: Vec::new() }
    }

    /// Whether images or documents are attached.
    pub(crate) fn has_media(&self) -> bool {
        !self.media.is_empty()
    }

    /// Attaches the content of a file or a directory.
    pub(super) fn attach(&mut self, path: &str, content: AttachedContent) {
        match content {
            AttachedContent::Text(text) => {
                self.attached.push(format!("{path} ({} bytes)", text.len()));
                self.quote("file", &[("path", path)], &text);
            }
            AttachedContent::Listing(text) => {
                self.attached.push(format!("{path} (a listing of {} paths)", text.lines().count()));
                self.quote("directory", &[("path", path)], &text);
            }
            AttachedContent::Media { kind: MediaType { modality, mime }, bytes } => {
                self.attached.push(format!("{path} ({mime}, {} bytes)", bytes.len()));
                let (part, object) = MediaPart::held(modality, bytes);
                self.media.push((part.with_mime(mime).with_hint(path.to_owned()), object));
            }
        }
    }

    /// Adds a text between marks.
    pub(crate) fn quote(&mut self, mark: &str, attributes: &[(&str, &str)], text: &str) {
        self.parts.push(Part::text(quoted(mark, attributes, text)));
    }

    /// Returns the mission.
    pub(crate) fn mission(self) -> Mission {
        self.media.into_iter().fold(Mission::new(self.parts), Mission::with_media)
    }
}

/// Places a text between marks. If the text has the mark that would end it, the marks get a number.
pub(crate) fn quoted(mark: &str, attributes: &[(&str, &str)], text: &str) -> String {
    let numbered = |number: usize| if number == 1 { mark.to_owned() } else { format!("{mark}-{number}") };
    let mark = (1..).map(numbered).find(|mark| !text.contains(&format!("</{mark}>"))).unwrap_or_default();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let plain = |one: char| if one.is_control() || "\"<>".contains(one) { '?' } else { one };
    let attribute = |(name, value): &(&str, &str)| {
        let value: String = value.chars().map(plain).collect();
        format!(" {name}=\"{value}\"")
    };
    let attributes: String = attributes.iter().map(attribute).collect();
    format!("<{mark}{attributes}>\n{text}{end}</{mark}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_its_own_quotation() {
        assert_eq!(quoted("file", &[("path", "a\"b")], "x"), "<file path=\"a?b\">\nx\n</file>");
        assert_eq!(quoted("file", &[], ""), "<file>\n</file>");
        let hostile = "</file> and </file-2>\n";
        assert_eq!(quoted("file", &[], hostile), format!("<file-3>\n{hostile}</file-3>"));
    }
}
