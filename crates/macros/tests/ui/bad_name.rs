use backstitch::Slice;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "Plan")]
struct Uppercase;

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "")]
struct Empty;

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "-plan")]
struct StartsWithDash;

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "plän")]
struct NotAscii;

#[derive(Serialize, Deserialize, Slice)]
#[slice(name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
struct TooLong;

fn main() {}
