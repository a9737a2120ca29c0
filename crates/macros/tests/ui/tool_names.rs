use backstitch::tool;

/// Has a name with a dot.
#[tool(name = "files.read")]
fn dotted() {}

/// Has a name that is kept.
#[tool]
fn runtime() {}

/// Has a name of letters that not every provider takes.
#[tool]
fn größe() {}

fn main() {}
