//! Names by which guarded sessions are recognized.

/// Tag of a guarded session: the program.
pub(crate) const PROGRAM: &str = "guard";

/// Tag of a guarded session: the conversation, as the program names it.
pub(crate) const CONVERSATION: &str = "guard.session";

/// Name of the mode of permissions in the origin of an evaluation.
pub(crate) const PERMISSION_MODE: &str = "permission_mode";

/// Name of a guarded command in tags and records, where others have that of their program.
pub(crate) const COMMAND: &str = "command";

/// Environment variable of a guarded command and its children: the session.
pub(crate) const COMMAND_VARIABLE: &str = "BACKSTITCH_GUARD_SESSION";
