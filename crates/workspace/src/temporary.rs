//! Names of files that are on their way to their place.

/// The names that temporary files of a restore or of a write begin with. They are never captured, never shown, and swept.
pub(crate) const TEMPORARY: &[u8] = b".backstitch-tmp-";

/// Whether a name is kept for temporary files.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(TEMPORARY)
}
