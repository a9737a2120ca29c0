//! Text for lists and logs.

/// A text in one line of at most `most` characters, without control characters. A longer text ends with `…`.
///
/// ```
/// use backstitch_core::text::one_line;
///
/// assert_eq!(one_line("Mend\n\tthe coat", 60), "Mend the coat");
/// assert_eq!(one_line("Mend the coat", 4), "Mend…");
/// ```
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|character| !character.is_control()));
        if let Some((end, _)) = line.char_indices().nth(most) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}
