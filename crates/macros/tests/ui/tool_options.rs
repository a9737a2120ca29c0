use backstitch::tool;

/// Has an option that there is not.
#[tool(efect = "pure")]
fn misspelt() {}

/// Has an effect that there is not.
#[tool(effect = "none")]
fn effect() {}

/// Uses files in a way that there is not.
#[tool(workspace = "append")]
fn files() {}

/// Uses resources in a way that there is not.
#[tool(resources = "all")]
fn resources() {}

/// Says it twice.
#[tool(effect = "pure", effect = "pure")]
fn twice() {}

/// Does not say how long.
#[tool(timeout = "30")]
fn unit() {}

/// Never has time.
#[tool(timeout = "0s")]
fn zero() {}

/// Contradicts itself.
#[tool(effect = "pure", workspace = "write")]
fn pure() {}

/// Contradicts itself.
#[tool(effect = "pure", resources = "write")]
fn pure_resources() {}

/// Has a hook that is never called.
#[tool(effect = "workspace", reconcile = ask)]
fn hook() {}

/// Has an example that says nothing.
#[tool(example(description = "All"))]
fn example() {}

/// Has an example that is not an object.
#[tool(example(description = "All", arguments = [1]))]
fn list() {}

fn main() {}
