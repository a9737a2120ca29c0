//! Objects that are read ahead, because each question to their store costs a round trip.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ObjectFacts, Objects, Workspace as _};
use backstitch_core::session::BoxError;
use backstitch_workspace::ObjectsAhead;

use crate::support::{MemoryObjects, Place};

/// Objects that count the questions to them.
struct RemoteObjects {
    objects: Arc<MemoryObjects>,
    asked: AtomicU64,
}

impl RemoteObjects {
    fn of(place: &Place) -> Arc<Self> {
        Arc::new(Self { objects: place.objects.clone(), asked: AtomicU64::new(0) })
    }

    /// Returns the number of questions since the last time.
    fn asked(&self) -> u64 {
        self.asked.swap(0, Ordering::SeqCst)
    }

    fn ask(&self) -> &MemoryObjects {
        self.asked.fetch_add(1, Ordering::SeqCst);
        &self.objects
    }
}

impl Objects for RemoteObjects {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        self.ask().get(id)
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        self.ask().contains(id)
    }

    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        self.ask().is_redacted(id)
    }

    fn get_many(&self, ids: &[ObjectId]) -> Result<Vec<Object>, BoxError> {
        self.ask().get_many(ids)
    }

    fn find_many(&self, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, BoxError> {
        self.ask().find_many(ids)
    }
}

#[test]
fn a_root_is_restored_and_captured_again_with_few_questions() {
    let place = Place::new();
    for number in 0..400 {
        place.write(format!("d{}/e/{number}.txt", number % 20), format!("file {number}"));
    }
    place.write("large", vec![7; 9 << 20]);
    place.link("link", "large");
    place.mode("d1/e/1.txt", 0o600);
    let (root, picture) = {
        let workspace = place.open();
        (place.capture(&workspace), place.picture())
    };
    // A file of the root, and one that is not in it, are here already.
    place.shell("rm -rf d1* d2 d3 large link; echo other > d4/e/4.txt; echo new > new.txt");
    let remote = RemoteObjects::of(&place);
    let ahead = Arc::new(ObjectsAhead::new(remote.clone()));
    let workspace = place.open_with(|options| options.objects = ahead.clone());
    ahead.prepare(root).unwrap();
    workspace.restore_covering(root, None).unwrap();
    assert_eq!(place.picture(), picture);
    let captured = workspace.capture().unwrap();
    assert_eq!((captured.root, captured.objects.len()), (root, 0));
    let asked = remote.asked();
    assert!(asked <= 20, "{asked} questions for 401 files in 41 directories");
    ahead.finish();
    // What is known about the store is not believed for longer than that.
    assert!(ahead.contains(root.tree).unwrap());
    assert_eq!(remote.asked(), 1);
}

#[test]
fn a_capture_asks_about_many_objects_at_once() {
    let place = Place::new();
    for number in 0..2_500 {
        place.write(format!("d{}/{number}.txt", number % 50), format!("file {number}"));
    }
    place.write("large", vec![7; 9 << 20]);
    place.link("link", "large");
    place.mode("d1/1.txt", 0o600);
    let remote = RemoteObjects::of(&place);
    let open = |cache: &str| {
        place.open_with(|options| {
            options.objects = remote.clone();
            options.cache = Some(place.above.join(cache));
        })
    };
    let first = open("one.stat");
    let captured = first.capture().unwrap();
    let asked = remote.asked();
    assert!(asked <= 6, "{asked} questions about 2,502 files in 51 directories");
    // Files, trees, the list and the trees of modes, and the manifest; each once, and after those that it names.
    assert_eq!(captured.objects.len(), 2_502 + 51 + 3 + 1);
    assert_eq!(captured.objects.last().map(Object::id), Some(captured.root.manifest));
    let root = place.store(captured);

    // What was new is asked about, and then known.
    let again = first.capture().unwrap();
    assert_eq!((again.root, again.objects.len()), (root, 0));
    assert!(remote.asked() <= 7);
    drop(first);

    // Without a cache everything is read, and nothing of it is new.
    let second = open("two.stat");
    let captured = second.capture().unwrap();
    assert_eq!((captured.root, captured.objects.len()), (root, 0));
    assert_eq!(second.files_read(), 2_502);
    assert!(remote.asked() <= 6);
    // The answers are remembered. A file, its tree and that of the root are new.
    place.write("d2/2.txt", "changed");
    assert_eq!(second.capture().unwrap().objects.len(), 3);
    assert!(remote.asked() <= 3);
}
