use backstitch::Slice;
use serde::{Deserialize, Serialize};

fn upcast(_: u32, item: serde_json::Value) -> Result<serde_json::Value, backstitch::session::UpcastError> {
    Ok(item)
}

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plan", upcast = upcast)]
struct Plan;

fn main() {}
