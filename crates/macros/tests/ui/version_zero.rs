use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan", version = 0)]
struct Plan;

fn main() {}
