//! Tests of texts, and what tests of other output share.

use proptest::prelude::*;

use super::*;

const ROLES: [Role; 16] = [
    Role::Plain,
    Role::Heading,
    Role::Id,
    Role::Dim,
    Role::Success,
    Role::Failure,
    Role::Warning,
    Role::Added,
    Role::Removed,
    Role::Accent,
    Role::Emphasis,
    Role::Code,
    Role::Italic,
    Role::Link,
    Role::Keyword,
    Role::Literal,
];

/// Text with many controls, wide and combining characters.
pub(in crate::terminal) fn foreign() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => any::<char>(),
        2 => prop::char::range('\0', '\u{a0}'),
        2 => prop::char::range('\u{2000}', '\u{2070}'),
        1 => prop_oneof![Just('漢'), Just('👍'), Just('\u{301}'), Just('\u{200d}'), Just('\u{1b}'), Just('[')],
        2 => prop_oneof![Just(' '), Just('\n'), Just('\t'), Just('a')],
    ];
    prop::collection::vec(character, 0..60).prop_map(|characters| characters.into_iter().collect())
}

pub(in crate::terminal) fn colored() -> impl Strategy<Value = Text> {
    let span = (prop::sample::select(ROLES.to_vec()), foreign());
    prop::collection::vec(span, 0..5)
        .prop_map(|spans| spans.into_iter().fold(Text::new(), |text, (role, span)| text.add(role, span)))
}

/// Removes the colours that this module prints.
pub(in crate::terminal) fn without_colors(rendered: &str) -> String {
    let mut sequences: Vec<String> = ROLES.iter().map(|role| role.style().render().to_string()).collect();
    sequences.push(anstyle::Reset.render().to_string());
    sequences.retain(|sequence| !sequence.is_empty());
    // The beginning of a sequence may be another one.
    sequences.sort_by_key(|sequence| std::cmp::Reverse(sequence.len()));
    sequences.iter().fold(rendered.to_owned(), |text, sequence| text.replace(sequence, ""))
}

pub(in crate::terminal) fn has_no_controls(text: &str) -> bool {
    !text.contains(|character| character == '\n' || crate::terminal::escape::steers(character))
}

proptest! {
    #[test]
    fn a_text_is_one_line_whose_only_controls_are_its_colors(text in colored(), columns in 0_usize..50) {
        for text in [text.clone(), text.cut(columns), text.clone().trimmed(), text.clone().join(text)] {
            let rendered = text.rendered(true);
            prop_assert!(has_no_controls(&without_colors(&rendered)), "{rendered:?}");
            prop_assert_eq!(text.rendered(false), text.text());
        }
    }

    #[test]
    fn a_text_is_cut_like_a_string(text in colored(), columns in 0_usize..50) {
        prop_assert_eq!(text.cut(columns).text(), layout::cut(&text.text(), columns));
        prop_assert!(text.cut(columns).width() <= columns);
    }
}

#[test]
fn spans_have_the_colors_of_their_roles() {
    let text = Text::new().add(Role::Id, "4f2a").plain("  ").add(Role::Failure, "failed\nmore");
    assert_eq!(text.rendered(false), "4f2a  failed\\u000amore");
    let rendered = text.rendered(true);
    assert!(rendered.starts_with("\u{1b}[36m4f2a\u{1b}[0m  "), "{rendered:?}");
    assert_eq!(text.cut(8).text(), "4f2a  f…");
    assert_eq!(Text::from("a").plain("  ").plain(" ").trimmed().text(), "a");
}
