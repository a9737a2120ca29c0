//! Choosing a conversation from a list on a terminal.
//!
//! Typing filters the list by words, the arrow keys move, Enter chooses, Esc leaves, and Tab lists the sessions of all projects. A terminal
//! without control sequences, and a screen reader, get a numbered list and a question instead.

use std::path::Path;

use crate::common::Common;
use crate::look::conversations::{self, PastConversation};
use crate::people::keyboard::{Key, Keyboard};
use crate::terminal::{self, RedrawnLines, Role, Text};
use crate::usage;

/// The most conversations that are shown at once.
const SHOWN: usize = 10;

/// Rows of the terminal around the list: its heading, its footer, and the line of the cursor.
const AROUND: usize = 4;

/// The most conversations of a numbered list.
const NUMBERED: usize = 20;

/// Lets a person choose one of these conversations. `None` if none is chosen.
pub(crate) async fn choose(
    common: &Common,
    heading: &str,
    from: Vec<PastConversation>,
) -> anyhow::Result<Option<PastConversation>> {
    if !terminal::is_capable() {
        return choose_by_number(heading, from);
    }
    let mut picker = Picker::new(heading, from);
    let (mut keys, mut lines) = (Keyboard::open()?, RedrawnLines::default());
    loop {
        lines.draw(&picker.lines(terminal::rows().saturating_sub(AROUND).clamp(1, SHOWN)));
        let step = picker.press(keys.next());
        match step {
            PickerStep::Stay => {}
            PickerStep::AllProjects => picker.replace(conversations::of_all_projects(common).await?),
            PickerStep::Leave => {
                lines.clear();
                return Ok(None);
            }
            PickerStep::Chosen(chosen) => {
                lines.clear();
                return Ok(Some(*chosen));
            }
        }
    }
}

fn choose_by_number(heading: &str, from: Vec<PastConversation>) -> anyhow::Result<Option<PastConversation>> {
    let now = conversations::now();
    for (number, one) in (1..).zip(from.iter().take(NUMBERED)) {
        terminal::error_line(&Text::new().plain(format!("{number:>3}  ")).join(one.line(now)));
    }
    let most = from.len().min(NUMBERED);
    let answer = terminal::ask(&format!("{heading} [1-{most}, or Enter for none] "))?;
    match answer.parse::<usize>() {
        _ if answer.is_empty() => Ok(None),
        Ok(number) if (1..=most).contains(&number) => Ok(from.into_iter().nth(number - 1)),
        _ => usage::refuse(format!("`{answer}` is not a number from 1 to {most}")),
    }
}

/// What follows a key.
#[derive(Debug)]
enum PickerStep {
    Stay,
    Leave,
    AllProjects,
    Chosen(Box<PastConversation>),
}

/// A list with a filter and a cursor.
struct Picker {
    heading: String,
    all: Vec<PastConversation>,
    filter: String,
    /// Place in the filtered list.
    cursor: usize,
    is_of_all_projects: bool,
}

impl Picker {
    fn new(heading: &str, all: Vec<PastConversation>) -> Self {
        Self { heading: heading.to_owned(), all, filter: String::new(), cursor: 0, is_of_all_projects: false }
    }

    /// Lists these conversations, which are those of all projects.
    fn replace(&mut self, all: Vec<PastConversation>) {
        (self.all, self.cursor, self.is_of_all_projects) = (all, 0, true);
    }

    /// Returns the conversations with all words of the filter.
    fn candidates(&self) -> Vec<&PastConversation> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let is_found = |one: &&PastConversation| {
            let searched = one.search_text();
            words.iter().all(|word| searched.contains(word))
        };
        self.all.iter().filter(is_found).collect()
    }

    fn press(&mut self, key: Key) -> PickerStep {
        let last = self.candidates().len().saturating_sub(1);
        match key {
            Key::Up => self.cursor = self.cursor.saturating_sub(1),
            Key::Down => self.cursor = (self.cursor + 1).min(last),
            Key::PageUp => self.cursor = self.cursor.saturating_sub(SHOWN),
            Key::PageDown => self.cursor = (self.cursor + SHOWN).min(last),
            Key::Character(character) => {
                self.filter.push(character);
                self.cursor = 0;
            }
            Key::Backspace => {
                self.filter.pop();
                self.cursor = 0;
            }
            Key::Erase => {
                self.filter.clear();
                self.cursor = 0;
            }
            Key::Tab if !self.is_of_all_projects => return PickerStep::AllProjects,
            Key::Enter => {
                if let Some(chosen) = self.candidates().get(self.cursor) {
                    return PickerStep::Chosen(Box::new((*chosen).clone()));
                }
            }
            Key::Escape | Key::End => return PickerStep::Leave,
            Key::Tab | Key::PasteStart | Key::PasteEnd | Key::Other => {}
        }
        PickerStep::Stay
    }

    /// Returns the lines to draw, with at most so many conversations.
    fn lines(&self, most: usize) -> Vec<Text> {
        let (found, now) = (self.candidates(), conversations::now());
        let first = (self.cursor + 1).saturating_sub(most);
        let heading = Text::new().add(Role::Heading, &self.heading).plain(" ");
        let mut lines = vec![heading.plain(&self.filter).add(Role::Dim, "_")];
        for (place, one) in found.iter().enumerate().skip(first).take(most) {
            let mark = if place == self.cursor { "> " } else { "  " };
            let mut line = Text::new().add(Role::Accent, mark);
            let project = one.directory().filter(|_| self.is_of_all_projects).and_then(Path::file_name);
            if let Some(project) = project {
                line.push(Role::Heading, format!("{}  ", project.to_string_lossy()));
            }
            lines.push(line.join(one.line(now)));
        }
        if found.is_empty() {
            lines.push(Text::new().add(Role::Dim, "  nothing matches"));
        }
        let place = format!("{} of {}", (self.cursor + 1).min(found.len()), found.len());
        let others = if self.is_of_all_projects { "" } else { " · Tab all projects" };
        let footer = format!("  {place} · Enter continues · Esc leaves · type to filter{others}");
        lines.push(Text::new().add(Role::Dim, footer));
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn past(mission: &str, status: &str) -> PastConversation {
        let session = json!({
            "v": 1, "session": "01890a5d-ac96-774b-bcce-123456789abc", "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z", "records": 3, "status": status, "outcome": null,
            "mission": mission, "agent": null, "workspace": "/home/ada/coat", "isolated_from": null, "name": null,
            "tags": {}, "holder": null, "waiting": false, "origin": "root", "parent": null, "fork_of": null,
            "failure": null, "stopped": null, "turns": 1, "spent": {},
        });
        let store = backstitch::stores::StoreAddress::new("/stores/store.db");
        PastConversation { session: serde_json::from_value(session).unwrap(), store }
    }

    fn picker() -> Picker {
        let all = vec![past("Mend the coat", "idle"), past("Sew a hat", "paused"), past("Sew a hem", "idle")];
        Picker::new("Which?", all)
    }

    fn missions(picker: &Picker) -> Vec<&str> {
        picker.candidates().iter().map(|one| &*one.session.mission).collect()
    }

    #[test]
    fn typing_filters_by_words_and_arrows_move() {
        let mut picker = picker();
        for character in "sew H".chars() {
            picker.press(Key::Character(character));
        }
        assert_eq!(missions(&picker), ["Sew a hat", "Sew a hem"]);
        for key in [Key::Down, Key::Down, Key::Down] {
            assert!(matches!(picker.press(key), PickerStep::Stay));
        }
        let PickerStep::Chosen(chosen) = picker.press(Key::Enter) else { panic!("nothing was chosen") };
        assert_eq!(&*chosen.session.mission, "Sew a hem");
        picker.press(Key::Erase);
        for character in "PAUSED".chars() {
            picker.press(Key::Character(character));
        }
        assert_eq!(missions(&picker), ["Sew a hat"]);
        picker.press(Key::Character('!'));
        assert!(matches!(picker.press(Key::Enter), PickerStep::Stay), "nothing matches");
        assert!(matches!(picker.press(Key::Escape), PickerStep::Leave));
    }

    #[test]
    fn a_long_list_scrolls_with_its_cursor() {
        let mut picker = picker();
        picker.press(Key::Down);
        picker.press(Key::Down);
        let lines: Vec<String> = picker.lines(2).iter().map(Text::text).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].contains("Sew a hat") && !lines[1].starts_with('>'), "{lines:?}");
        assert!(lines[2].contains("Sew a hem") && lines[2].starts_with('>'), "{lines:?}");
        assert!(lines[3].contains("3 of 3"), "{lines:?}");
    }
}
