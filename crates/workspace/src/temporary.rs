//! Names of temporary files.

/// Prefix of the temporary files of a restore or of a write. They are never captured or shown, and are swept.
pub(crate) const TEMPORARY: &[u8] = b".backstitch-tmp-";

/// Returns whether a name is reserved for temporary files.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(TEMPORARY)
}
