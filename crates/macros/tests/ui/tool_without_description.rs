use backstitch::tool;

#[tool]
fn silent() {}

///
#[tool]
fn nearly_silent() {}

fn main() {}
