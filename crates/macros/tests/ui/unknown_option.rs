use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan", polciy = "log")]
struct Plan;

fn main() {}
