use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan", name = "other")]
struct InOneAttribute;

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan")]
#[slice(policy = "log")]
#[slice(policy = "state")]
struct InSeveral;

fn main() {}
