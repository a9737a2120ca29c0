//! The version of reports.

pub use backstitch_runtime::Version;
