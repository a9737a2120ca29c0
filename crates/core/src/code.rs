//! Error codes: one stable word for each kind of failure that a user can see.
//!
//! A code appears in the journal (as the `kind` of a stop or a failure), in the output of programs and in documentation. It is never
//! renamed and never gets another meaning. Each error type has a method `code` with an exhaustive match, so that a new variant
//! does not compile without one. Errors that only a defect can cause share [`ErrorCode::Internal`].

use std::fmt;
use std::str::FromStr;

use crate::text_form::stored_as_text;

macro_rules! codes {
    ($($code:ident = $word:literal: $summary:literal,)*) => {
        /// A stable word for an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(
                #[doc = $summary]
                $code,
            )*
        }

        impl ErrorCode {
            /// All codes, grouped by subject.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// The word itself.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)*
                }
            }

            /// Describes the failure in one sentence.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$code => $summary,)*
                }
            }
        }
    };
}

/// Calls a macro with the list of codes, each as `Variant = "word": "summary",`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_error_codes {
    ($callback:ident) => {
        $callback! {
            // The command.
            Usage = "usage": "The command was called with arguments that it cannot use.",
            Io = "io": "The system refused access to a file, a directory or a terminal.",
            AlreadyExists = "already_exists": "The target exists, and the command never overwrites one.",
            ConfigFile = "config_file": "A setting cannot be used.",
            SettingsInvalid = "settings_invalid": "The settings of another program cannot be read or edited.",
            NotTrusted = "not_trusted": "A file of the project, or an address, is not trusted.",
            Signal = "signal": "A signal ended the run before the session could be paused.",
            Panic = "panic": "The command panicked.",
            Internal = "internal": "Backstitch contradicts itself.",
            QueryInvalid = "query_invalid": "The SQL of the query is wrong, or does something other than reading.",
            QueryStopped = "query_stopped": "The query needed too much time or memory, and was stopped.",
            // The server.
            AccessDenied = "access_denied": "The server does not let the request in.",
            ServerReadOnly = "server_read_only": "The server only reads, and the request would change something.",
            BeyondRights = "beyond_rights": "The request asks for more than the person allowed who started the server.",
            RequestInvalid = "request_invalid": "The server cannot use the request.",
            NoSuchRoute = "no_such_route": "The server has no such path, or another method for it.",
            ServerBusy = "server_busy": "The server has no place for the request now.",
            // The store.
            StoreNotFound = "store_not_found": "There is no store where the command looked for one.",
            StoreLocation = "store_location": "The store of this project cannot be kept in its default location.",
            StoreFull = "store_full": "The store has no room left.",
            StoreReadOnly = "store_read_only": "The store can only be read.",
            StoreBusy = "store_busy": "Another process kept the store locked for too long.",
            StoreUnavailable = "store_unavailable": "The server of the store does not answer.",
            StoreDenied = "store_denied": "The server of the store refused the user.",
            HistoryLost = "history_lost": "The server of the store has lost records that it had acknowledged.",
            StoreReplaced = "store_replaced": "The store was removed, moved or replaced while it was open.",
            StoreDamaged = "store_damaged": "The store holds something other than what was written to it.",
            StoreNewer = "store_newer": "A newer version of Backstitch wrote the store.",
            StoreOlder = "store_older": "The store has an older schema and was opened for reading only.",
            StoreUnsupported = "store_unsupported": "A store of this kind cannot do that, or is not available.",
            NotAStore = "not_a_store": "The file is not a store of Backstitch.",
            BundleInvalid = "bundle_invalid": "The file is not a bundle, or its content is damaged or incomplete.",
            Pruned = "pruned": "The files of this point were deleted by retention.",
            Redacted = "redacted": "The content was removed by a redaction.",
            ValueRefused = "value_refused": "The value cannot be redacted.",
            ErasurePending = "erasure_pending": "The store's files may still hold data that was deleted or redacted.",
            ObjectLost = "object_lost": "Content was lost when a damaged store was salvaged.",
            ObjectMissing = "object_missing": "Content that the journal refers to is not in the store.",
            NotStorable = "not_storable": "A value cannot be stored so that it reads back the same.",
            TooLarge = "too_large": "A value is larger than the store can hold in one piece.",
            Store = "store": "The layer below the store failed.",
            // Sessions.
            SessionNotFound = "session_not_found": "There is no such session in this store.",
            SessionAmbiguous = "session_ambiguous": "The id matches more than one session.",
            SessionConflict = "session_conflict": "The store has a session with the same id and another journal.",
            SubAgent = "sub_agent": "The session belongs to a call of another session, and is moved with it.",
            SessionHeld = "session_held": "Another process drives the session.",
            SessionShared = "session_shared": "Other sessions depend on the session, so it is not removed.",
            ClaimLost = "lease_lost": "Another process took the session over.",
            WriteUnknown = "write_unknown": "The last write to the session may or may not have been stored.",
            EvaluationOpen = "evaluation_open": "The session has not answered its current request yet.",
            EvaluationNotFound = "evaluation_not_found": "The session has no such evaluation.",
            NoMessages = "no_messages": "The session has no messages, so there is nothing to continue.",
            FileNotFound = "file_not_found": "The files of this point hold no such path.",
            PointNotFound = "point_not_found": "The session has no such point or call.",
            RequestNotFound = "request_not_found": "The journal of this session has no such request.",
            NothingToUndo = "nothing_to_undo": "There is no rewind or restore to undo.",
            NothingToRedo = "nothing_to_redo": "There is no undone rewind to repeat.",
            NothingToRewind = "nothing_to_rewind": "The session is at that point already.",
            NothingToCompact = "nothing_to_compact": "There are no answers that a summary could replace.",
            NothingToCancel = "nothing_to_cancel": "There is no open evaluation to cancel.",
            NothingToPause = "nothing_to_pause": "There is no open evaluation to pause.",
            NothingToAccept = "nothing_to_accept": "There is no truncated answer to accept.",
            DecisionRefused = "decision_refused": "The decision does not fit what the session waits for.",
            PromptMismatch = "prompt_mismatch": "The evaluation cannot continue with another prompt.",
            JournalInvalid = "journal_invalid": "The journal does not fit together.",
            State = "state": "The session's state refused a change.",
            Snapshot = "snapshot": "A snapshot or an exported conversation is damaged.",
            Checkpoint = "checkpoint": "A checkpoint could not be saved, loaded or deleted.",
            Message = "message": "A message cannot be built or read.",
            Shutdown = "shutdown": "The runtime is shutting down.",
            Entropy = "entropy": "The system gave no random bytes for a new session.",
            // Files and processes.
            GuardedSession = "guarded_session": "The session belongs to another program, and only that can continue it.",
            GuardBusy = "guard_busy": "The program of a guarded session may still change files.",
            EngineMissing = "engine_missing": "The program that an agent is driven by is not installed, or too old.",
            EngineFailed = "engine_failed": "The program that an agent is driven by failed.",
            WorkspaceHeld = "workspace_held": "Another session uses the directory.",
            WorkspaceGone = "workspace_gone": "The directory of the session is gone.",
            WorkspaceRefused = "workspace_refused": "The directory cannot be the workspace of a session.",
            WorkspaceBlocked = "workspace_blocked": "A file could not be restored, because something is in the way.",
            WorkspaceLimit = "workspace_limit": "The workspace exceeds a limit.",
            CopyFailed = "copy_failed": "The project could not be copied for an isolated session.",
            SetupFailed = "setup_failed": "A command that sets up the copy of a project failed.",
            NotIsolated = "not_isolated": "The session does not work in a copy, so there is nothing to apply.",
            ApplyConflict = "apply_conflict": "The session and the directory changed the same things.",
            NothingToApply = "nothing_to_apply": "There is no apply to undo.",
            ApplyPending = "apply_pending": "An interrupted apply has to be completed first.",
            Workspace = "workspace": "The files of the session could not be accessed.",
            PlatformUnsupported = "platform_unsupported": "This platform does not support host directories.",
            Process = "process": "A process could not be started, recorded or ended.",
            Poisoned = "poisoned": "The session waits, because files or resources could not be restored.",
            // Agents and models.
            UnknownAgent = "unknown_agent": "The process does not know the agent of the session.",
            AgentFile = "agent_file": "The agent's definition cannot be used.",
            Script = "script": "The script of a scripted model cannot be used.",
            MissingKey = "missing_key": "There is no API key for the model's provider.",
            NoModel = "no_model": "The agent has neither a model nor a policy.",
            NestedCall = "nested_call": "A handler made a call that would wait for the handler's own call.",
            NoAsyncRuntime = "no_async_runtime": "The library was called outside of a tokio runtime.",
            Model = "model": "The model of the agent cannot be opened.",
            Transport = "transport": "Requests cannot be sent from this process.",
            DuplicateTool = "duplicate_tool": "Two tools of the agent have the same name.",
            Prompt = "prompt": "The agent's prompt cannot be rendered.",
            OutputSchema = "output_schema": "The schema for the answer cannot be used.",
            EmptyMission = "empty_mission": "The mission is empty.",
            AnswerType = "answer_type": "The answer is not a value of the type that the program asked for.",
            // Providers.
            Auth = "auth": "The provider rejected the API key.",
            OutOfCredit = "out_of_credit": "The account has no credit left.",
            RateLimited = "rate_limited": "The provider received too many requests or tokens.",
            Overloaded = "overloaded": "The provider is overloaded.",
            Server = "server": "The provider failed.",
            InvalidRequest = "invalid_request": "The request is not one that the provider accepts.",
            ContextTooLong = "context_too_long": "The conversation is too long for the model.",
            ContentFilter = "content_filter": "The provider or the model refused to answer.",
            Network = "network": "The provider could not be reached.",
            CutStream = "cut_stream": "The answer broke off.",
            Malformed = "malformed": "The answer does not have the provider's own form.",
            NotRecorded = "not_recorded": "The cassette has no answer to this request.",
            UnsupportedMedia = "unsupported_media": "The model does not accept media that the conversation holds.",
            UnsupportedOption = "unsupported_option": "The provider does not support an option of the request.",
            NotRendered = "not_rendered": "The request could not be rendered for the provider.",
            RequestTooLarge = "request_too_large": "The request is larger than the provider accepts.",
            ScriptEnded = "script_ended": "The script of the scripted model has no reply left.",
            FunctionFailed = "function_failed": "The function that decides for the agent returned an error.",
            WaitsForPerson = "waits_for_person": "The person who decides for the agent has not answered yet.",
            Policy = "policy": "The agent's policy failed with a code of its own.",
            // Failed evaluations.
            MaxTurns = "max_turns": "There was no answer within the allowed number of turns.",
            LoopDetected = "loop_detected": "The model repeated the same calls with the same arguments.",
            AgentFailed = "agent_failed": "The agent reported that it cannot do the task.",
            EmptyAnswer = "empty_answer": "The model returned an empty answer twice in a row.",
            InvalidOutput = "invalid_output": "The answer does not fit its schema.",
            InvalidAnswer = "invalid_answer": "The returned value does not fit the signature.",
            OutputRefused = "output_refused": "A reducer of the session refused the answer.",
            VisibilityExpansionLimit = "visibility_expansion_limit": "The model opened sections of its prompt too many times.",
            Interrupted = "interrupted": "The provider interrupted too many answers in a row.",
            Cancelled = "cancelled": "The evaluation was cancelled.",
            Superseded = "superseded": "Another evaluation took the place of this one.",
            Unknown = "unknown": "The evaluation failed, and its record has no reason.",
            // Pauses.
            Approval = "approval": "A call waits for approval.",
            EffectUnknown = "effect_unknown": "It is unknown whether a call took effect.",
            Budget = "budget": "The budget of the evaluation is spent.",
            Deadline = "deadline": "The deadline of the evaluation has passed.",
            Files = "files": "It is unknown whether an interrupted call or others changed files.",
            Truncated = "truncated": "The answer reached its token limit before it was complete.",
            Asked = "asked": "The session was asked to pause.",
            Waiting = "waiting": "A call waits for a time or a signal.",
        }
    };
}
#[doc(hidden)]
pub use with_error_codes;

with_error_codes!(codes);
stored_as_text!(ErrorCode, "a string");

impl ErrorCode {
    /// Returns the code of a failure by its recorded kind. Kinds are an open set, because policies bring
    /// their own; the code of an unknown kind is `otherwise`.
    pub fn of_kind(kind: &str, otherwise: Self) -> Self {
        kind.parse().unwrap_or(otherwise)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.as_str().to_owned()
    }
}

/// The word is not an error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no error code {word:?}")]
pub struct UnknownCode {
    /// The word.
    pub word: String,
}

impl FromStr for ErrorCode {
    type Err = UnknownCode;

    fn from_str(word: &str) -> Result<Self, UnknownCode> {
        let code = Self::ALL.iter().find(|code| code.as_str() == word);
        code.copied().ok_or_else(|| UnknownCode { word: word.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_distinct_words_that_parse() {
        let words: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
            let text = serde_json::to_string(code).unwrap();
            assert_eq!(text, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&text).unwrap(), *code);
            assert!(code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
            assert!(code.summary().ends_with('.'), "{code}");
        }
        assert_eq!("no_code".parse::<ErrorCode>(), Err(UnknownCode { word: "no_code".to_owned() }));
        assert_eq!(ErrorCode::of_kind("odd", ErrorCode::Policy), ErrorCode::Policy);
    }
}
