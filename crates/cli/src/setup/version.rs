//! What `--version` says about this build. `build.rs` finds it out.

/// The commit that the command was built from, or `unknown` in builds for development.
pub(crate) const COMMIT: &str = env!("BACKSTITCH_COMMIT");

/// The features of this build.
pub(crate) const FEATURES: &str = env!("BACKSTITCH_FEATURES");

/// The text of `--version`. `-V` prints its first line.
pub(crate) const TEXT: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("BACKSTITCH_COMMIT"),
    "\nfeatures: ",
    env!("BACKSTITCH_FEATURES"),
    "\ntarget: ",
    env!("BACKSTITCH_TARGET"),
);
