//! Content that is about to be overwritten is rescued as far as it fits.

use backstitch_core::ports::Workspace as _;

use crate::support::Place;

#[test]
fn what_fits_is_kept_and_the_rest_is_listed() {
    let place = Place::new();
    place.write("old", vec![1; 500]);
    place.write("never", vec![9; 5_000]);
    let workspace = place.open_with(|options| options.file_bytes = 4_000);
    let before = place.capture(&workspace);
    place.write("a-small", vec![2; 300]);
    place.write("b-large", vec![3; 2_000]);
    place.write("c-small", vec![4; 300]);
    place.write("d-huge", vec![5; 8_000]);
    place.write("e-copy-of-old", vec![1; 500]);
    let rescued = workspace.rescue_covering(&workspace.coverage(), 1_500).unwrap();
    let left: Vec<_> = rescued.left_out.iter().map(|left| (left.path.as_str(), left.bytes)).collect();
    assert_eq!(left, [("b-large", Some(2_000)), ("d-huge", Some(8_000))]);
    let rescue = place.store(rescued.captured);
    let coverage = workspace.coverage();
    workspace.restore(before).unwrap();
    assert_eq!(place.picture().len(), 3);
    assert_eq!(workspace.coverage(), coverage);

    let paths: Vec<_> =
        workspace.diff(before, rescue).unwrap().into_iter().map(|change| change.path).collect();
    assert_eq!(paths, ["a-small", "c-small", "e-copy-of-old"]);
    workspace.restore(rescue).unwrap();
    assert_eq!(std::fs::read(place.path("c-small")).unwrap(), vec![4; 300]);
}

#[test]
fn an_ignored_directory_over_its_budget_is_listed_as_one() {
    let place = Place::new();
    place.write(".gitignore", "out\n");
    let workspace = place.open_with(|options| options.ignored.entries = 10);
    let before = place.capture(&workspace);
    (0..50).for_each(|number| place.write(format!("out/{number}"), "x"));
    let rescued = workspace.rescue_covering(&workspace.coverage(), 1_000_000).unwrap();
    assert_eq!(rescued.left_out.iter().map(|left| left.path.as_str()).collect::<Vec<_>>(), ["out"]);
    workspace.restore(before).unwrap();
    assert!(!place.path("out").exists());
}
