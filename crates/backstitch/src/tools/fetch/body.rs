//! The content of a page as text.
//!
//! HTML becomes Markdown, JSON is set in lines unless it is large, and other text stays as it is. Everything else is
//! described: its type and its size. Of the character encodings, UTF-8 and Windows-1252 with its part ISO-8859-1 are known.

use super::markdown;
use super::request::Content;

/// Maximum size in bytes of JSON that is set in lines. Deeply nested JSON becomes many times as long by that.
const LARGEST_JSON: usize = 256 * 1024;

/// The text of a page, and what is to be said about it.
#[derive(Debug, Default)]
pub(super) struct PageText {
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) title: Option<String>,
    /// `None` if the content is not text.
    pub(super) text: Option<String>,
    pub(super) notes: Vec<String>,
}

/// How content is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Json,
    Text,
    Other,
}

/// Whether content of this type is shown as text.
pub(super) fn is_text(content_type: &str) -> bool {
    form_of(content_type) != Form::Other
}

fn form_of(content_type: &str) -> Form {
    let name = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, format)) = name.split_once('/') else { return Form::Other };
    let (base, suffix) = format.rsplit_once('+').unwrap_or((format, ""));
    match (kind, base) {
        ("text", "html") | ("application", "xhtml") => Form::Html,
        (_, "json" | "manifest") | ("application", "ld" | "geo") => Form::Json,
        ("text", _) => Form::Text,
        ("application", "xml" | "javascript" | "ecmascript" | "x-javascript" | "typescript" | "sql") => {
            Form::Text
        }
        ("application", "yaml" | "x-yaml" | "toml" | "x-ndjson" | "jsonlines" | "x-sh" | "graphql") => {
            Form::Text
        }
        _ if suffix == "json" => Form::Json,
        _ if matches!(suffix, "xml" | "yaml") => Form::Text,
        _ => Form::Other,
    }
}

impl PageText {
    /// Converts what was read.
    pub(super) fn of(content: Content) -> Self {
        let Content { url, status, content_type, bytes, announced, is_cut } = content;
        let mut notes = Vec::new();
        let form = content_type.as_deref().map_or_else(|| form_of_bytes(&bytes), form_of);
        let mut page = Self { url: url.to_string(), status, content_type, ..Self::default() };
        if form == Form::Other {
            let kind = page.content_type.as_deref().unwrap_or("of an unknown type");
            let size = announced.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
            page.notes.push(format!("the content is {kind}{size}, which is not text, so it is not shown"));
            return page;
        }
        if is_cut {
            notes.push(format!("the page is large: only its first {} bytes were read", bytes.len()));
        }
        let charset = page.content_type.as_deref().and_then(charset_of);
        let text = decoded(bytes, charset.as_deref(), &mut notes);
        page.text = Some(match form {
            Form::Html => {
                let converted = markdown::convert(&text, &url);
                if converted.is_cut {
                    notes.push("the end of the page is left out, because its text is too long".to_owned());
                }
                page.title = converted.title;
                converted.text
            }
            Form::Json if text.len() > LARGEST_JSON => text,
            Form::Json => match serde_json::from_str::<serde_json::Value>(&text) {
                Ok(value) => format!("{value:#}"),
                Err(_) => text,
            },
            Form::Text | Form::Other => text,
        });
        page.notes = notes;
        page
    }
}

/// Guesses the form of content without a type.
fn form_of_bytes(bytes: &[u8]) -> Form {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).trim_start().to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        return Form::Html;
    }
    let is_binary =
        bytes.contains(&0) || std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some());
    if is_binary { Form::Other } else { Form::Text }
}

fn charset_of(content_type: &str) -> Option<String> {
    let values = content_type.split(';').skip(1).filter_map(|part| part.split_once('='));
    let mut charsets = values.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charsets.next().map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase())
}

fn decoded(bytes: Vec<u8>, charset: Option<&str>, notes: &mut Vec<String>) -> String {
    match charset {
        Some("iso-8859-1" | "latin1" | "windows-1252" | "cp1252") => {
            return bytes.into_iter().map(windows_1252).collect();
        }
        None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => {}
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            notes.push(format!("the character set {other:?} is not known, so some characters are wrong"));
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the character of a byte. The five bytes without one stay control characters.
fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: Option<&str>, bytes: &[u8]) -> PageText {
        PageText::of(Content {
            url: "https://example.com/".parse().unwrap(),
            status: 200,
            content_type: content_type.map(str::to_owned),
            bytes: bytes.to_vec(),
            announced: Some(bytes.len() as u64),
            is_cut: false,
        })
    }

    #[test]
    fn the_type_decides_how_content_is_shown() {
        for (content_type, form) in [
            ("text/html; charset=utf-8", Form::Html),
            ("application/xhtml+xml", Form::Html),
            ("Application/JSON", Form::Json),
            ("application/vnd.api+json", Form::Json),
            ("text/plain", Form::Text),
            ("text/markdown", Form::Text),
            ("application/rss+xml", Form::Text),
            ("image/svg+xml", Form::Text),
            ("application/yaml", Form::Text),
            ("image/png", Form::Other),
            ("application/octet-stream", Form::Other),
            ("", Form::Other),
        ] {
            assert_eq!(form_of(content_type), form, "{content_type}");
        }
        assert_eq!(page(Some("application/json"), b"{\"a\":1}").text.unwrap(), "{\n  \"a\": 1\n}");
        assert_eq!(page(Some("application/json"), b"{\"a\":").text.unwrap(), "{\"a\":");
        let large = format!("[{}]", "1,".repeat(LARGEST_JSON / 2) + "1");
        assert_eq!(page(Some("application/json"), large.as_bytes()).text.unwrap(), large);
        assert_eq!(page(None, b" <!DOCTYPE html><p>Seam").text.unwrap(), "Seam\n");
        assert_eq!(page(None, b"plain").text.unwrap(), "plain");
        let image = page(Some("image/png"), b"\x89PNG\0");
        assert_eq!((image.text.is_none(), image.notes.len()), (true, 1));
        assert!(image.notes[0].contains("image/png of 5 bytes"), "{:?}", image.notes);
        assert!(page(None, b"\x89PNG\0").text.is_none());
    }

    #[test]
    fn characters_are_read_in_the_encoding_that_the_server_names() {
        assert_eq!(page(Some("text/plain; charset=ISO-8859-1"), b"caf\xe9 \x80").text.unwrap(), "café €");
        assert_eq!(page(Some("text/plain;charset=\"utf-8\""), "café".as_bytes()).text.unwrap(), "café");
        let unknown = page(Some("text/plain; charset=koi8-r"), b"abc\xc1");
        assert_eq!(unknown.text.as_deref(), Some("abc\u{fffd}"));
        assert!(unknown.notes[0].contains("koi8-r"));
    }
}
