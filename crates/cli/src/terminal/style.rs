//! Lines with colours.
//!
//! A [`Text`] is one line of spans, each with a [`Role`]. What is added is escaped at once, newlines included, so that a
//! text is always a single line without foreign controls, and its width is the width that is printed.
//!
//! Colours are used where a stream is a terminal. `--color always` and `--color never` decide otherwise; without
//! them `NO_COLOR` switches colours off and `CLICOLOR_FORCE` switches them on.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};

use super::escape::safe_line;
use super::layout;

/// When the command prints colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ColorChoice {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// Sets when colours are printed, for the whole process. Later calls change nothing.
pub(crate) fn choose(choice: ColorChoice) {
    let _ = CHOICE.set(choice);
}

/// Whether standard output has colours.
pub(crate) fn stdout_has_colors() -> bool {
    has_colors(io::stdout().is_terminal())
}

/// Whether standard error has colours.
pub(crate) fn stderr_has_colors() -> bool {
    has_colors(io::stderr().is_terminal())
}

fn has_colors(is_terminal: bool) -> bool {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match CHOICE.get().copied().unwrap_or_default() {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if variable("NO_COLOR").is_some() => false,
        ColorChoice::Auto if variable("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto if variable("CLICOLOR").is_some_and(|value| value == "0") => false,
        ColorChoice::Auto => is_terminal && super::is_capable(),
    }
}

/// What a span of a line means. The colours follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ordinary text.
    Plain,
    /// The header of a table, or the title of a part.
    Heading,
    /// An id of a session or a call, or a point.
    Id,
    /// Less important text.
    Dim,
    /// Something that worked.
    Success,
    /// Something that failed.
    Failure,
    /// Something that needs attention.
    Warning,
    /// A line that was added to a file.
    Added,
    /// A line that was removed from a file.
    Removed,
    /// A name that stands out: a model, a tool, a command to type.
    Accent,
    /// Text with emphasis.
    Emphasis,
    /// Code in an answer.
    Code,
    /// Text of an answer with weak emphasis.
    Italic,
    /// Text of an answer that is a link.
    Link,
    /// A word of a programming language.
    Keyword,
    /// A string or a number in code.
    Literal,
}

impl Role {
    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Heading | Self::Emphasis => Style::new().bold(),
            Self::Id | Self::Code => color(AnsiColor::Cyan),
            Self::Dim => Style::new().dimmed(),
            Self::Success | Self::Added | Self::Literal => color(AnsiColor::Green),
            Self::Failure => color(AnsiColor::Red).bold(),
            Self::Warning => color(AnsiColor::Yellow),
            Self::Removed => color(AnsiColor::Red),
            Self::Accent => color(AnsiColor::Blue).bold(),
            Self::Italic => Style::new().italic(),
            Self::Link => Style::new().underline(),
            Self::Keyword => color(AnsiColor::Blue),
        }
    }
}

/// Spaces for most gaps.
const SPACES: &str = "                                                                ";

/// One line of spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub(crate) struct Text {
    spans: Vec<(Role, Cow<'static, str>)>,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a span.
    pub(crate) fn add(mut self, role: Role, text: impl AsRef<str>) -> Self {
        self.push(role, text);
        self
    }

    /// Adds ordinary text.
    pub(crate) fn plain(self, text: impl AsRef<str>) -> Self {
        self.add(Role::Plain, text)
    }

    /// Adds spaces.
    pub(crate) fn spaces(mut self, count: usize) -> Self {
        match SPACES.get(..count) {
            Some("") => {}
            Some(spaces) => self.spans.push((Role::Plain, spaces.into())),
            None => self.spans.push((Role::Plain, " ".repeat(count).into())),
        }
        self
    }

    /// Adds a span.
    pub(crate) fn push(&mut self, role: Role, text: impl AsRef<str>) {
        let text = text.as_ref();
        if !text.is_empty() {
            self.spans.push((role, safe_line(text).into_owned().into()));
        }
    }

    /// Adds text to the last span if that has the same role, else as a span of its own.
    pub(crate) fn extend_last(&mut self, role: Role, text: &str) {
        match self.spans.last_mut() {
            Some((last, span)) if *last == role => span.to_mut().push_str(&safe_line(text)),
            _ => self.push(role, text),
        }
    }

    /// Adds all spans of another line.
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The spans, with their roles.
    pub(super) fn spans(&self) -> impl Iterator<Item = (Role, &str)> {
        self.spans.iter().map(|(role, text)| (*role, &**text))
    }

    /// Returns the text without colours.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| &**text).collect()
    }

    /// Returns the columns that the line takes.
    pub(crate) fn width(&self) -> usize {
        match &self.spans[..] {
            [] => 0,
            [(_, text)] => layout::width(text),
            // Characters of several spans may combine.
            _ => layout::width(&self.text()),
        }
    }

    /// Returns the beginning of the line that fits into the columns, with `…` at its end if something was cut off.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        let whole = self.text();
        let cut = layout::cut(&whole, columns);
        if cut == whole {
            return self.clone();
        }
        let mut left = cut.strip_suffix('…').unwrap_or_default().len();
        let mut spans = Vec::new();
        let mut last = Role::Plain;
        for (role, text) in &self.spans {
            last = *role;
            if text.len() >= left {
                spans.push((*role, text.get(..left).unwrap_or_default().to_owned().into()));
                break;
            }
            left -= text.len();
            spans.push((*role, text.clone()));
        }
        if cut.ends_with('…') {
            spans.push((last, "…".into()));
        }
        Self { spans }
    }

    /// Returns the line with a space for each tab, so that its width does not depend on where it starts.
    pub(crate) fn without_tabs(mut self) -> Self {
        for (_, text) in self.spans.iter_mut().filter(|(_, text)| text.contains('\t')) {
            *text = text.replace('\t', " ").into();
        }
        self
    }

    /// Returns the line without spaces at its end.
    pub(crate) fn trimmed(mut self) -> Self {
        while let Some((_, text)) = self.spans.last_mut() {
            let length = text.trim_end_matches(' ').len();
            if length > 0 {
                if length < text.len() {
                    text.to_mut().truncate(length);
                }
                break;
            }
            self.spans.pop();
        }
        self
    }

    /// Returns the line as it is printed, without a newline.
    pub(crate) fn rendered(&self, colored: bool) -> String {
        let mut rendered = String::new();
        self.render(colored, &mut rendered);
        rendered
    }

    /// Adds the line as it is printed to others, without a newline.
    pub(crate) fn render(&self, colored: bool, rendered: &mut String) {
        for (role, text) in &self.spans {
            if colored {
                let style = role.style();
                let _ = write!(rendered, "{style}{text}{style:#}");
            } else {
                rendered.push_str(text);
            }
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new().plain(text)
    }
}

#[cfg(test)]
pub(super) mod tests;
