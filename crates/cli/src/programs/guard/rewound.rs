//! What the model of an open window has to know after a rewind.
//!
//! A rewind does not reach into a program that runs. Its next prompt continues the whole conversation, with work that was undone.
//! So the hook of that prompt adds a text for the model, and the log says that the conversation was not cut.

use backstitch::filesystem::format;
use backstitch::host::{ObservedSession, one_line};
use backstitch_bridge::Program;

use crate::open::{OpenStore, short};

/// The most files that the text for the model names.
const MOST_NAMED: usize = 50;

/// The most characters of a path in it.
const LONGEST: usize = 200;

/// Returns the text for the model, if files were rewound since the last prompt of the conversation.
pub(super) async fn context(
    place: &OpenStore,
    session: &ObservedSession,
    program: Program,
    conversation: &str,
) -> anyhow::Result<Option<String>> {
    let Some(unseen) = session.unseen_rewind(conversation).await? else { return Ok(None) };
    if unseen.cuts {
        let (title, at) = (program.title(), unseen.at);
        let text =
            format!("The conversation of {title} was not cut by the rewind at {at}: its window was open");
        session.note(text).await?;
    }
    let roots = unseen.before.zip(unseen.now).filter(|(before, now)| before != now);
    let Some((before, now)) = roots else { return Ok(None) };
    let changes = format::diff(&*place.objects, before, now).unwrap_or_default();
    // A name may hold anything, and must not look like more than a name.
    let paths = changes.iter().take(MOST_NAMED + 1).map(|change| one_line(&change.path, LONGEST));
    let paths: Vec<String> = paths.collect();
    let files = match &paths[..] {
        [] => "Read files again before you use or change them.".to_owned(),
        paths => {
            let more = if paths.len() > MOST_NAMED { " and more" } else { "" };
            let named = paths.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!(
                "These files differ from what you have seen: {named}{more}. Read them again before you use or change them."
            )
        }
    };
    let point = match &unseen.call {
        Some((call, name)) => format!("before the call {name} [{}]", short(*call)),
        None => "an earlier point".to_owned(),
    };
    Ok(Some(match unseen.cuts {
        true => format!(
            "The person has rewound this session with Backstitch, to {point}. Changes of files since then are undone, although \
             this conversation still shows them. {files}"
        ),
        false => format!("The person has restored files of this session with Backstitch. {files}"),
    }))
}
