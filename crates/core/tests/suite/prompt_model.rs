//! Random prompts are rendered according to a plain model of them.

use backstitch_core::prompt::{OPEN_SECTIONS, PromptBuilder, Section};
use backstitch_core::slices::{Visibility, VisibilityOverrides};
use proptest::prelude::*;

use crate::prompt::{names, prompt, tool};
use crate::samples::session;

/// A random section: its parent, whether it is enabled, has a summary and is closed by the prompt, and its
/// override in the session.
#[derive(Debug, Clone)]
struct Drawn {
    below: usize,
    enabled: bool,
    summary: bool,
    closed: bool,
    session: Option<bool>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.8), prop::option::of(any::<bool>()));
    (any::<usize>(), flags).prop_map(|(below, (summary, closed, enabled, session))| Drawn {
        below,
        enabled,
        summary,
        closed: closed && summary,
        session,
    })
}

/// Returns the direct children of a section, by number from 1; 0 is the prompt itself.
fn below(all: &[Drawn], above: usize) -> Vec<usize> {
    let standing = all.iter().enumerate().filter(|(index, one)| one.below % (index + 1) == above);
    standing.map(|(index, _)| index + 1).collect()
}

fn written(all: &[Drawn], number: usize) -> Section {
    let one = &all[number - 1];
    let mut section = Section::new(format!("s{number}"), format!("S{number}"))
        .body(format!("body {number}."))
        .tool(tool(&format!("t{number}")));
    if one.summary {
        section = section.summary(format!("summary {number}."));
    }
    if one.closed {
        section = section.visibility(Visibility::Summary);
    }
    if !one.enabled {
        section = section.enabled_when(|_| Ok(false));
    }
    below(all, number).into_iter().fold(section, |section, child| section.child(written(all, child)))
}

/// Computes the expected sections: path, number and whether each is closed.
fn expected(all: &[Drawn], above: usize, path: &str, number: &str, shown: &mut Vec<(String, String, bool)>) {
    let mut place = 0;
    for child in below(all, above) {
        let one = &all[child - 1];
        if !one.enabled {
            continue;
        }
        place += 1;
        let join = |above: &str, own: String| if above.is_empty() { own } else { format!("{above}.{own}") };
        let (path, number) = (join(path, format!("s{child}")), join(number, place.to_string()));
        let closed = one.session.unwrap_or(one.closed) && one.summary;
        shown.push((path.clone(), number.clone(), closed));
        if !closed {
            expected(all, child, &path, &number, shown);
        }
    }
}

fn paths(all: &[Drawn], above: usize, path: &str, found: &mut Vec<(usize, String)>) {
    for child in below(all, above) {
        let own = if path.is_empty() { format!("s{child}") } else { format!("{path}.s{child}") };
        found.push((child, own.clone()));
        paths(all, child, &own, found);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_tree_shows_what_is_enabled_and_open_and_offers_its_tools(all in prop::collection::vec(drawn(), 1..12)) {
        let sections = below(&all, 0).into_iter().map(|number| written(&all, number));
        let prompt = sections.fold(prompt(), PromptBuilder::section).build().unwrap();
        let mut overrides = VisibilityOverrides::default();
        let mut found = Vec::new();
        paths(&all, 0, "", &mut found);
        for (number, path) in found {
            if let Some(closed) = all[number - 1].session {
                overrides.set(path, if closed { Visibility::Summary } else { Visibility::Full });
            }
        }
        let mut session = session();
        session.append(overrides).unwrap();
        let rendered = prompt.bind(&()).unwrap().render(&session).unwrap();

        let mut wanted = Vec::new();
        expected(&all, 0, "", "", &mut wanted);
        let shown: Vec<_> = rendered.sections.iter().map(|section| {
            (section.path.clone(), section.number.clone(), section.visibility == Visibility::Summary)
        }).collect();
        prop_assert_eq!(&shown, &wanted);
        let last = |path: &str| path.rsplit('.').next().unwrap()[1..].to_owned();
        let mut tools: Vec<_> =
            wanted.iter().filter(|(_, _, closed)| !closed).map(|(path, ..)| format!("t{}", last(path))).collect();
        if wanted.iter().any(|(_, _, closed)| *closed) {
            // Each section has a tool, so none can only be read.
            tools.push(OPEN_SECTIONS.to_owned());
        }
        prop_assert_eq!(names(&rendered), tools);
        for (path, number, closed) in &wanted {
            let heading = format!("# {number}. S{}\n\n", last(path));
            let text = if *closed { "summary" } else { "body" };
            let block = format!("{heading}{text} {}.", last(path));
            prop_assert!(rendered.text.contains(&block), "{block}: {}", rendered.text);
        }
        prop_assert_eq!(rendered.text.matches("body").count(), wanted.iter().filter(|(_, _, closed)| !closed).count());
    }

    #[test]
    fn any_text_can_be_written_down(text in "[a$ {}\n\u{e9}]{0,40}") {
        let section = Section::new("a", "A").body(text.replace('$', "$$"));
        let prompt = prompt().section(section).build().unwrap();
        let rendered = prompt.bind(&()).unwrap().render(&session()).unwrap();
        let told = text.trim_matches('\n').trim_end();
        let expected = if told.is_empty() { "## 1. A".to_owned() } else { format!("## 1. A\n\n{told}") };
        prop_assert_eq!(rendered.text, expected);
    }
}
