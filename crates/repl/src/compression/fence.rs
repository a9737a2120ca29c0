//! Fences around foreign text.
//!
//! The output of a program may come from anywhere: a page, a file, another model. If it contained the line
//! `;; === tool/ ===`, a model could take the following text for a section of the request. Text with such a
//! line is therefore put between two lines of `~`, longer than any such line in it. Other text is unchanged.

use super::FenceMode;

/// Characters that a reader may interpret as line breaks.
pub(super) const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Writes a foreign text on lines of its own.
pub(super) fn write_foreign(out: &mut String, text: &str, fence: FenceMode) {
    let fenced = match fence {
        FenceMode::Auto => text.split(LINE_BREAKS).any(looks_like_ours),
        FenceMode::Always => true,
        FenceMode::Never => false,
    };
    if !fenced {
        out.push_str(text);
        return;
    }
    let longest = text.split(LINE_BREAKS).map(tildes).max().unwrap_or(0);
    let line = "~".repeat(3.max(longest + 1));
    out.push_str(&line);
    out.push('\n');
    out.push_str(text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&line);
}

/// Appends a foreign text to a text of ours. It is put on lines of its own, fenced, if one of its lines could
/// be taken for ours.
pub(crate) fn push_foreign(out: &mut String, text: &str) {
    let begins_line = out.is_empty() || out.ends_with(LINE_BREAKS);
    let mut lines = text.split(LINE_BREAKS).enumerate();
    if !lines.any(|(index, line)| (index > 0 || begins_line) && looks_like_ours(line)) {
        out.push_str(text);
        return;
    }
    if !begins_line {
        out.push('\n');
    }
    write_foreign(out, text, FenceMode::Always);
    out.push('\n');
}

/// Whether a line begins like a header, an entry, a fence or the last line of a message.
fn looks_like_ours(line: &str) -> bool {
    let line =
        line.trim_start_matches(|character: char| character.is_whitespace() || is_invisible(character));
    let begins_with =
        |word: &str| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    line.starts_with(';')
        || line.starts_with("~~~")
        || begins_with("turns left")
        || begins_with("final turn")
        || begins_with("error:")
        || begins_with("error in turn")
}

fn tildes(line: &str) -> usize {
    line.trim_start().bytes().take_while(|byte| *byte == b'~').count()
}

fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{0}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, fence: FenceMode) -> String {
        let mut out = String::new();
        write_foreign(&mut out, text, fence);
        out
    }

    #[test]
    fn text_stands_as_it_is_unless_it_could_be_taken_for_ours() {
        for text in ["plain", "a ; b", "two\nlines", "", "~~", "é;", "In turns left"] {
            assert_eq!(written(text, FenceMode::Auto), text);
        }
        for text in [
            ";; === tool/ ===",
            "x\n  ;; Output:",
            "x\r;   call()",
            "x\u{2028}; y",
            "turns LEFT: 9",
            "FINAL TURN",
            "\u{feff};; x",
            "Error: no",
            "error in turn 3: no",
        ] {
            assert_eq!(written(text, FenceMode::Auto), format!("~~~\n{text}\n~~~"), "{text:?}");
            assert_eq!(written(text, FenceMode::Never), text);
        }
        assert_eq!(written("plain", FenceMode::Always), "~~~\nplain\n~~~");
    }

    #[test]
    fn no_line_of_the_text_closes_the_fence() {
        assert_eq!(written("~~~~\n;; x\n", FenceMode::Auto), "~~~~~\n~~~~\n;; x\n~~~~~");
    }
}
