use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan")]
struct Plan<T> {
    steps: Vec<T>,
}

#[derive(Serialize, Slice)]
#[slice(name = "borrowed")]
struct Borrowed<'a> {
    steps: &'a str,
}

fn main() {}
