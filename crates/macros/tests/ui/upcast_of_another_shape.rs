use backstitch::Slice;
use serde::{Deserialize, Serialize};

fn upcast(item: serde_json::Value) -> serde_json::Value {
    item
}

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan", version = 2, upcast = upcast)]
struct Plan;

fn main() {}
