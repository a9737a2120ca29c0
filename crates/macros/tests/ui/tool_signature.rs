use backstitch::prelude::*;

struct Machine;

impl Machine {
    /// Is a method.
    #[tool]
    fn method(&self, left: u32) {}
}

/// Is generic.
#[tool]
fn generic<T>(value: T) {}

/// Takes what it does not own.
#[tool]
fn borrows(text: &str, several: &[u32]) {}

/// Hides its type.
#[tool]
fn hides(value: impl Into<String>) -> impl Into<String> {
    value
}

/// Wants two contexts.
#[tool]
fn twice(one: ToolContext, other: &ToolContext) {}

/// Takes an argument without a name.
#[tool]
fn unnamed((left, right): (u32, u32)) {}

/// Takes all arguments, and one more.
#[tool]
fn whole(#[args] all: Vec<u32>, more: u32) {}

/// Has an attribute of something else.
#[tool]
fn other(#[serde(default)] value: u32, #[arg(defualt = 3)] count: u32) {}

/// Is not a function.
#[tool]
struct Thing;

fn main() {}
