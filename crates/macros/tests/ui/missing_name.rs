use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
struct Plan {
    steps: u8,
}

fn main() {}
