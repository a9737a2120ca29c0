use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "Plan", version = 0, policy = "forever")]
struct Plan<T>(T);

fn main() {}
