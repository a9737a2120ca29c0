use backstitch::prelude::*;

struct Opaque;

/// Gives what cannot be written.
#[tool]
fn gives() -> Opaque {
    Opaque
}

/// Fails with what is not an error.
#[tool]
fn fails() -> Result<String, Opaque> {
    Err(Opaque)
}

type Outcome = Result<String, String>;

/// Hides that it can fail.
#[tool]
fn alias() -> Outcome {
    Ok(String::new())
}

/// Has a default of another type.
#[tool]
fn default(#[arg(default = "many")] _count: u32) {}

/// Has a hook of another shape.
#[tool(reconcile = hook)]
fn hooked() {}

fn hook() {}

fn main() {}
