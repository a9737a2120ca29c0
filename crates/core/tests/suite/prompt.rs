//! Prompts: their errors, and their rendering for a session.

use backstitch_core::journal::Effect;
use backstitch_core::prompt::{
    OPEN_SECTIONS, Prompt, PromptBuilder, PromptError, READ_SECTION, RenderedPrompt, Section, fingerprint,
    register_slices,
};
use backstitch_core::session::Session;
use backstitch_core::slices::{Visibility, VisibilityOverrides, WorkspaceDigest};
use backstitch_core::tool::{Tool, ToolResult};
use serde::Serialize;
use serde_json::json;

use crate::samples::{Note, note, session};

pub(crate) fn tool(name: &str) -> Tool {
    let builder = Tool::builder(name, format!("Does {name}.")).unwrap().effect(Effect::Pure);
    builder.handler(|_, (): ()| async { Ok(ToolResult::ok("done")) })
}

pub(crate) fn prompt() -> PromptBuilder {
    Prompt::builder("tests", "tailor")
}

pub(crate) fn names(rendered: &RenderedPrompt) -> Vec<&str> {
    rendered.tools.iter().map(|tool| tool.name().as_str()).collect()
}

fn with_override(path: &str, visibility: Visibility) -> Session {
    let mut session = session();
    let mut overrides = VisibilityOverrides::default();
    overrides.set(path, visibility);
    session.append(overrides).unwrap();
    session
}

/// Sections of all kinds: open ones, one that is closed with tools below it, one that is closed without.
fn workshop() -> Prompt {
    let machine = Section::new("machine", "Machine").body("It hums.").tool(tool("start_machine"));
    let iron = Section::new("iron", "Iron").body("It is hot.").tool(tool("press"));
    prompt()
        .section(Section::new("task", "Task").body("Mend the $cloth.").tool(tool("sew")))
        .section(
            Section::new("room", "Room")
                .body("There are machines.")
                .summarised("A room with $count machines.")
                .tool(tool("enter"))
                .child(machine)
                .child(iron.summarised("An iron.")),
        )
        .section(
            Section::new("stitches", "Stitches")
                .body("A backstitch goes back.")
                .summarised("Which there are.")
                .child(Section::new("hem", "Hem").body("A hem is folded.")),
        )
        .build()
        .unwrap()
}

fn rendered(session: &Session) -> RenderedPrompt {
    workshop().bind(&json!({"cloth": "coat", "count": 2})).unwrap().render(session).unwrap()
}

#[test]
fn sections_are_numbered_by_their_place_and_closed_ones_are_short() {
    let text = "\
## 1. Task

Mend the coat.

## 2. Room

A room with 2 machines.

(This is a summary. `open_sections` with \"room\" shows all of it and offers its tools.)

## 3. Stitches

Which there are.

(This is a summary. `read_section` with \"stitches\" gives all of it.)";
    let rendered = rendered(&session());
    assert_eq!(rendered.text, text);
    assert_eq!(names(&rendered), ["sew", READ_SECTION, OPEN_SECTIONS]);
}

#[test]
fn a_preamble_stands_before_all_sections_as_it_is() {
    let of = |builder: PromptBuilder| builder.build().unwrap().bind(&()).unwrap();
    let plain = of(prompt().preamble("It costs $5.\n"));
    assert_eq!(plain.render(&session()).unwrap().text, "It costs $5.");
    let with_section =
        of(prompt().preamble("You sew.").section(Section::new("task", "Task").body("Mend it.")));
    assert_eq!(with_section.render(&session()).unwrap().text, "You sew.\n\n## 1. Task\n\nMend it.");
    let digest = |builder: PromptBuilder| builder.build().unwrap().descriptor().unwrap();
    assert_ne!(digest(prompt()), digest(prompt().preamble("You sew.")));
}

#[test]
fn what_is_opened_has_its_text_its_tools_and_its_sections() {
    let rendered = rendered(&with_override("room", Visibility::Full));
    let room = "\
## 2. Room

There are machines.

### 2.1. Machine

It hums.

### 2.2. Iron

An iron.

(This is a summary. `open_sections` with \"room.iron\" shows all of it and offers its tools.)";
    assert!(rendered.text.contains(room), "{}", rendered.text);
    assert_eq!(names(&rendered), ["sew", "enter", "start_machine", READ_SECTION, OPEN_SECTIONS]);
    let numbers: Vec<_> = rendered.sections.iter().map(|section| section.number.as_str()).collect();
    assert_eq!(numbers, ["1", "2", "2.1", "2.2", "3"]);
    assert_eq!(rendered.sections[3].path, "room.iron");
    assert_eq!(rendered.sections[3].visibility, Visibility::Summary);
}

#[test]
fn what_has_no_summary_cannot_be_closed_and_what_has_one_can() {
    let rendered = rendered(&with_override("task", Visibility::Summary));
    assert!(rendered.text.contains("Mend the coat."));
    let prompt =
        prompt().section(Section::new("a", "A").body("the long text").summary("in short")).build().unwrap();
    let open = prompt.bind(&()).unwrap().render(&session()).unwrap();
    assert!(open.text.contains("the long text") && open.tools.is_empty());
    let closed = prompt.bind(&()).unwrap().render(&with_override("a", Visibility::Summary)).unwrap();
    assert!(closed.text.contains("in short") && !closed.text.contains("the long text"));
}

#[test]
fn a_section_that_is_not_enabled_has_no_number_no_text_and_no_tools() {
    let prompt = prompt()
        .section(
            Section::new("notes", "Notes")
                .body("There are notes.")
                .tool(tool("forget"))
                .enabled_when(|session| Ok(session.latest::<Note>()?.is_some())),
        )
        .section(Section::new("task", "Task").body("Sew."))
        .build()
        .unwrap();
    assert!(prompt.depends_on_session());
    let bound = prompt.bind(&()).unwrap();
    let without = bound.render(&session()).unwrap();
    assert_eq!((without.text.as_str(), without.tools.len()), ("## 1. Task\n\nSew.", 0));
    let mut session = session();
    session.append(note(1, "one")).unwrap();
    let with = bound.render(&session).unwrap();
    assert_eq!(with.text, "## 1. Notes\n\nThere are notes.\n\n## 2. Task\n\nSew.");
    assert_eq!(names(&with), ["forget"]);
}

#[test]
fn a_section_may_be_shown_by_what_the_session_holds() {
    let by_notes = |section: Section| {
        section.visibility_by(|session: &Session| {
            let has_notes = session.latest::<Note>()?.is_some();
            Ok(if has_notes { Visibility::Full } else { Visibility::Summary })
        })
    };
    let section = by_notes(Section::new("notes", "Notes").body("All notes.").summary("Notes."));
    let prompt = prompt().section(section.tool(tool("forget"))).build().unwrap();
    assert!(prompt.depends_on_session());
    let bound = prompt.bind(&()).unwrap();
    let closed = bound.render(&session()).unwrap();
    assert!(!closed.text.contains("All notes.") && names(&closed) == [OPEN_SECTIONS], "{closed:?}");
    let mut noted = session();
    noted.append(note(1, "one")).unwrap();
    assert!(bound.render(&noted).unwrap().text.contains("All notes."));
    // Overrides of the session take precedence.
    assert!(bound.render(&with_override("notes", Visibility::Full)).unwrap().text.contains("All notes."));
    let refused = self::prompt().section(by_notes(Section::new("a", "A").body("x"))).build().unwrap_err();
    assert!(matches!(refused, PromptError::NoSummary { .. }), "{refused}");
}

#[test]
fn parameters_have_a_field_for_each_name_and_no_others() {
    #[derive(Serialize)]
    struct Order<'a> {
        cloth: &'a str,
        count: u32,
    }
    let prompt = workshop();
    let bound = prompt.bind(&Order { cloth: "$count", count: 3 }).unwrap();
    assert!(bound.render(&session()).unwrap().text.contains("Mend the $count."), "values are not read again");

    let missing = prompt.bind(&json!({"cloth": "coat"})).unwrap_err();
    assert!(
        matches!(&missing, PromptError::MissingField { path, field } if path == "room" && field == "count"),
        "{missing}"
    );
    let unknown = prompt.bind(&json!({"cloth": "coat", "count": 1, "colour": "red"})).unwrap_err();
    assert!(
        matches!(&unknown, PromptError::UnknownField { field, known } if field == "colour" && *known == ["cloth", "count"]),
        "{unknown}"
    );
    assert!(matches!(prompt.bind(&[1]).unwrap_err(), PromptError::NoFields { .. }));
    assert!(matches!(prompt.bind(&()).unwrap_err(), PromptError::MissingField { .. }));
}

#[test]
fn what_is_wrong_with_a_prompt_is_said_when_it_is_built() {
    let section = || Section::new("a", "A");
    let error = |builder: PromptBuilder| builder.build().unwrap_err();
    assert!(matches!(error(Prompt::builder("Tests", "x")), PromptError::InvalidName { .. }));
    assert!(matches!(error(Prompt::builder("tests", "")), PromptError::InvalidName { .. }));
    assert!(matches!(error(prompt().section(Section::new("a.b", "A"))), PromptError::InvalidName { .. }));
    let twice = error(prompt().section(section()).section(section()));
    assert!(matches!(&twice, PromptError::DuplicateSection { path } if path == "a"), "{twice}");
    let below = section().tool(tool("sew")).child(Section::new("b", "B").tool(tool("sew")));
    let twice = error(prompt().section(below));
    assert!(matches!(&twice, PromptError::DuplicateTool { path, .. } if path == "a.b"), "{twice}");
    let taken = error(prompt().section(section().tool(tool(READ_SECTION))));
    assert!(matches!(taken, PromptError::DuplicateTool { .. }), "{taken}");
    let closed = error(prompt().section(section().visibility(Visibility::Summary)));
    assert!(matches!(closed, PromptError::NoSummary { .. }), "{closed}");
    let sign = error(prompt().section(section().body("one\ncosts $5")));
    assert!(matches!(&sign, PromptError::Template { source, .. } if source.line == 2), "{sign}");
    // The same key may occur below different sections.
    let apart = Section::new("b", "B").child(section());
    assert!(prompt().section(section()).section(apart).build().is_ok());
}

#[test]
fn a_digest_of_the_workspace_is_shown_where_there_is_one() {
    let section = Section::new("files", "Files").workspace_digest("Nothing is known of $place yet.");
    let prompt = prompt().section(section.visibility(Visibility::Summary)).build().unwrap();
    let bound = prompt.bind(&json!({"place": "src"})).unwrap();
    let mut session = session();
    register_slices(&mut session);
    assert!(bound.render(&session).unwrap().text.contains("Nothing is known of src yet."));
    session.append(WorkspaceDigest::new("elsewhere", "short", "long")).unwrap();
    session.append(WorkspaceDigest::new("files", "old", "old")).unwrap();
    session.append(WorkspaceDigest::new("files", "three files, $5", "a.rs, b.rs, c.rs")).unwrap();
    let text = bound.render(&session).unwrap().text;
    assert!(text.contains("three files, $5") && !text.contains("a.rs"), "{text}");
    assert_eq!(session.all::<WorkspaceDigest>().unwrap().len(), 2, "of each section the latest counts");

    // The slice is a cache: a missing digest is computed if a function for it is registered.
    let mut computing = crate::samples::session();
    computing.register_cache::<WorkspaceDigest>(|_| Ok(vec![WorkspaceDigest::new("files", "computed", "")]));
    assert!(bound.render(&computing).unwrap().text.contains("computed"));
}

#[test]
fn a_fingerprint_is_that_of_text_tools_and_output() {
    let (one, other) = (tool("sew"), tool("press"));
    let specs = [&*one.spec, &*other.spec];
    let of =
        |text, tools: &[_], output| fingerprint("a", "b", Some(text), tools.iter().copied(), output).unwrap();
    let schema = json!({"type": "object"});
    let first = of("text", &specs, None);
    assert_eq!(first, of("text", &[specs[1], specs[0]], None), "the order of tools does not matter");
    for different in
        [of("texts", &specs, None), of("text", &specs[..1], None), of("text", &specs, Some(&schema))]
    {
        assert_ne!(first, different);
    }
}

#[test]
fn a_descriptor_is_that_of_the_prompt_and_not_of_what_it_is_rendered_for() {
    let same = workshop().descriptor().unwrap();
    assert_eq!(workshop().descriptor().unwrap(), same);
    let one = prompt().section(Section::new("a", "A").body("$x").tool(tool("sew")));
    let others = [
        prompt().section(Section::new("a", "A").body("$y").tool(tool("sew"))),
        prompt().section(Section::new("a", "A").body("$x").tool(tool("press"))),
        prompt().section(Section::new("a", "A").body("$x").tool(tool("sew")).summary("x")),
        prompt().section(Section::new("b", "A").body("$x").tool(tool("sew"))),
    ];
    let descriptor = |builder: PromptBuilder| builder.build().unwrap().descriptor().unwrap();
    let one = descriptor(one);
    for other in others {
        assert_ne!(descriptor(other), one);
    }
}
