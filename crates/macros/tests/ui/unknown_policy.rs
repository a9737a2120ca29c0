use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan", policy = "forever")]
struct Plan;

fn main() {}
