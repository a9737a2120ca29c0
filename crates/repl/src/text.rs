//! Texts in one line, and their beginnings.

use std::borrow::Cow;

/// A text without leading and trailing spaces, and with single spaces between words.
pub(crate) fn collapsed(text: &str) -> String {
    let spaces = |character: char| character.is_whitespace() || character.is_control();
    let mut words = text.split(spaces).filter(|word| !word.is_empty());
    let mut collapsed = words.next().unwrap_or_default().to_owned();
    for word in words {
        collapsed.push(' ');
        collapsed.push_str(word);
    }
    collapsed
}

/// The first characters of a text, and `...` if there are more.
pub(crate) fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}
