//! The compiler.
/// What a function was compiled to.
pub struct Code {}
