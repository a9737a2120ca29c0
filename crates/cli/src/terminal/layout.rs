//! Widths of text on a terminal, and text that is fitted to them.
//!
//! Widths count columns, not characters: a wide character takes two, a combining one none, and a tab reaches to the next
//! multiple of eight. Text is cut between graphemes only. What is returned is escaped.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::escape::safe_line;

/// Distance of tab stops, in columns.
const TAB: usize = 8;

/// Returns the columns that a line takes, once it is escaped.
pub(crate) fn width(text: &str) -> usize {
    // Most cells of a table.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    safe_line(text).graphemes(true).fold(0, advanced)
}

/// Returns the beginning of a line that fits into the columns. If something was cut off, it ends with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let line = safe_line(text);
    let (mut column, mut fitting) = (0, 0);
    for (at, grapheme) in line.grapheme_indices(true) {
        column = advanced(column, grapheme);
        if column > columns {
            // One column is left for the mark, if there is one at all.
            return if columns == 0 { String::new() } else { format!("{}…", &line[..fitting]) };
        }
        if column < columns {
            fitting = at + grapheme.len();
        }
    }
    line.into_owned()
}

/// The column after a grapheme that starts at a column.
fn advanced(column: usize, grapheme: &str) -> usize {
    if grapheme == "\t" { (column / TAB + 1) * TAB } else { column + grapheme.width() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::style::tests::{foreign, has_no_controls};
    use super::*;

    #[test]
    fn wide_and_combining_characters_and_tabs_have_their_widths() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("漢字"), 4);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("a\tb"), 9);
        assert_eq!(width("\u{1b}"), 6, "as it is printed");
    }

    #[test]
    fn text_is_cut_between_graphemes() {
        assert_eq!(cut("backstitch", 10), "backstitch");
        assert_eq!(cut("backstitch", 6), "backs…");
        assert_eq!(cut("漢字漢", 5), "漢字…");
        assert_eq!(cut("漢字漢", 4), "漢…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut("two\nlines", 40), "two\\u000alines");
    }

    proptest! {
        #[test]
        fn what_is_cut_fits_and_controls_nothing(text in foreign(), columns in 0_usize..50) {
            let cut = cut(&text, columns);
            prop_assert!(width(&cut) <= columns, "{cut:?}");
            prop_assert!(has_no_controls(&cut), "{cut:?}");
        }
    }
}
