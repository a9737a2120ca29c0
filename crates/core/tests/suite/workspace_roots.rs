//! Views of files: the last recorded root, and whether the files still have to be restored to one.

use backstitch_core::journal::{CallVerdict, ObservationCause, Position, SessionRewound, WorkspaceObserved};
use backstitch_core::view::JournalView;

use super::journals::{Writer, root};

fn observe(writer: &mut Writer, name: &str, cause: ObservationCause) -> Position {
    writer.push(WorkspaceObserved::new(root(name), cause))
}

fn rewind(writer: &mut Writer, to: Position, to_root: Option<&str>) -> Position {
    let root = to_root.map(root);
    writer.push(SessionRewound { root, rescue: Some(root_found()), ..SessionRewound::new(to) })
}

fn root_found() -> backstitch_core::journal::WorkspaceRoot {
    root("as found")
}

#[test]
fn the_root_follows_calls_and_observations() {
    let mut writer = Writer::new(1);
    assert_eq!(writer.view().files().map(|files| files.root), None);
    observe(&mut writer, "start", ObservationCause::Started);
    assert_eq!(writer.view().files().map(|files| files.root), Some(root("start")));

    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "two calls", &["{}", "{}"]);
    writer.start_call(evaluation, calls[0]);
    assert_eq!(writer.view().files().map(|files| files.root), Some(root("before 1")));
    writer.finish_call(evaluation, calls[0], CallVerdict::Succeeded);
    assert_eq!(writer.view().files().map(|files| files.root), Some(root("after")));
    writer.start_call(evaluation, calls[1]);
    writer.finish_call(evaluation, calls[1], CallVerdict::Failed);
    assert_eq!(
        writer.view().files().map(|files| files.root),
        Some(root("before 1")),
        "the files of a failed call are restored"
    );
    observe(&mut writer, "edited", ObservationCause::Drifted);
    assert_eq!(writer.view().files().map(|files| files.root), Some(root("edited")));
    assert_eq!(writer.view().owed_files().map(|files| files.root), None);
}

#[test]
fn going_back_owes_the_files_until_they_were_put_back() {
    let mut writer = Writer::new(1);
    let cut = observe(&mut writer, "start", ObservationCause::Started).next();
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}"]);
    writer.start_call(evaluation, calls[0]);
    writer.finish_call(evaluation, calls[0], CallVerdict::Succeeded);

    let rewound = rewind(&mut writer, cut, Some("start"));
    assert_eq!(writer.view().owed_files().map(|files| files.root), Some(root("start")));
    observe(&mut writer, "start", ObservationCause::Restored);
    assert_eq!(
        (writer.view().owed_files().map(|files| files.root), writer.view().files().map(|files| files.root)),
        (None, Some(root("start")))
    );

    // Undoing the rewind requires a restore in the other direction; without a root, files are left unchanged.
    rewind(&mut writer, rewound, Some("after"));
    assert_eq!(writer.view().owed_files().map(|files| files.root), Some(root("after")));
    observe(&mut writer, "after", ObservationCause::Restored);
    rewind(&mut writer, cut, None);
    assert_eq!(
        (writer.view().owed_files().map(|files| files.root), writer.view().files().map(|files| files.root)),
        (None, Some(root("after")))
    );
}

#[test]
fn what_is_found_before_a_rewind_is_finished_does_not_finish_it() {
    let mut writer = Writer::new(1);
    let cut = observe(&mut writer, "start", ObservationCause::Started).next();
    rewind(&mut writer, cut, Some("start"));
    observe(&mut writer, "edited since", ObservationCause::Interrupted);
    let files = |view: JournalView| (view.owed_files().map(|files| files.root), view.files().unwrap().root);
    assert_eq!(files(writer.view()), (Some(root("start")), root("start")));
    observe(&mut writer, "start", ObservationCause::Restored);
    assert_eq!(files(writer.view()), (None, root("start")));
    // Without a pending restore, it records the state of the files.
    observe(&mut writer, "half", ObservationCause::Interrupted);
    assert_eq!(files(writer.view()), (None, root("half")));
}

#[test]
fn a_fork_owes_its_own_files() {
    let mut writer = Writer::new(1);
    observe(&mut writer, "start", ObservationCause::Started);
    let mut fork = writer.fork(2, writer.head());
    let view = JournalView::fold_fork(&writer.view(), &fork.records).unwrap();
    assert_eq!(view.owed_files().map(|files| files.root), Some(root("start")));
    observe(&mut fork, "start", ObservationCause::Restored);
    let view = JournalView::fold_fork(&writer.view(), &fork.records).unwrap();
    assert_eq!(view.owed_files().map(|files| files.root), None);
}

#[test]
fn a_call_is_restored_once_the_files_are_what_they_were_before_it() {
    let mut writer = Writer::new(1);
    observe(&mut writer, "start", ObservationCause::Started);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}"]);
    let is_restored = |writer: &Writer| writer.view().call(calls[0]).unwrap().files_restored;
    writer.start_call(evaluation, calls[0]);
    // The state before a restore, and a restore to another state, do not count.
    observe(&mut writer, "as found", ObservationCause::Interrupted);
    observe(&mut writer, "before 1", ObservationCause::Drifted);
    observe(&mut writer, "elsewhere", ObservationCause::Restored);
    assert!(!is_restored(&writer));
    let cut = writer.head();
    observe(&mut writer, "before 1", ObservationCause::Restored);
    assert!(is_restored(&writer));
    let fork = writer.fork(2, writer.head());
    let view = JournalView::fold_fork(&writer.view(), &fork.records).unwrap();
    assert!(view.call(calls[0]).unwrap().files_restored);

    // A rewind to before it, and starting the call again, undo that.
    observe(&mut writer, "edited", ObservationCause::Drifted);
    assert!(is_restored(&writer));
    rewind(&mut writer, cut, None);
    assert!(!is_restored(&writer));
    observe(&mut writer, "before 1", ObservationCause::Restored);
    assert!(is_restored(&writer));
    writer.start_call(evaluation, calls[0]);
    assert!(!is_restored(&writer));
}
