//! The kinds of errors. Their names are stable: agents, tests and stored turns refer to them.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kind of an error. The name of a kind never changes.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant,)*];

            /// Returns the stable name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorKind::$variant => $name,)*
                }
            }

            /// Returns the kind with this name.
            pub fn from_name(name: &str) -> Option<ErrorKind> {
                match name {
                    $($name => Some(ErrorKind::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    // Reading.
    /// The text is not a program.
    Parse = "parse_error",
    /// The text ends inside a form: more text could make it a program.
    IncompleteForm = "incomplete_form",
    /// Something Clojure has and this language does not.
    Unsupported = "unsupported",

    // Compiling.
    /// A special form is malformed.
    InvalidForm = "invalid_form",
    /// A name that is not defined.
    UnboundVar = "unbound_var",
    /// A bare name that is both a tool and a data item.
    AmbiguousReference = "ambiguous_reference",
    /// `recur` outside of a tail position, or with the wrong number of arguments.
    InvalidRecur = "invalid_recur",

    // Evaluating.
    /// A function was called with a number of arguments that it does not take.
    Arity = "arity_error",
    /// A value is of a type that the operation does not take.
    Type = "type_error",
    /// A value has the right type but cannot be used.
    InvalidArgument = "invalid_argument",
    /// Division by zero, integer overflow.
    Arithmetic = "arithmetic_error",
    /// An index beyond the end.
    IndexOutOfBounds = "index_out_of_bounds",
    /// Text that is not the number, date or JSON it should be.
    InvalidText = "invalid_text",
    /// A pattern that is not a valid regular expression, or that is too large.
    InvalidRegex = "invalid_regex",
    /// The value in call position is not a function.
    NotCallable = "not_callable",
    /// No clause of `case` or `condp` matches.
    NoMatchingClause = "no_matching_clause",
    /// An assertion does not hold.
    Assertion = "assertion_error",
    /// The program threw a value and did not catch it.
    Thrown = "uncaught_exception",
    /// An effect that is not allowed at this point, such as `return` or `swap!` of an outer atom inside
    /// `pmap`.
    ForbiddenEffect = "forbidden_effect",

    // Tools.
    /// No tool of this name.
    UnknownTool = "unknown_tool",
    /// The arguments of a tool call do not fit its schema.
    InvalidToolArguments = "invalid_tool_arguments",
    /// The tool ran and failed.
    Tool = "tool_error",

    // Limits.
    /// The program used all of its fuel.
    FuelExceeded = "fuel_exceeded",
    /// The program uses more memory than its limit.
    MemoryExceeded = "memory_exceeded",
    /// Calls are nested too deep.
    StackExceeded = "stack_exceeded",
    /// Forms or values are nested too deep.
    NestingExceeded = "nesting_exceeded",
    /// A collection or a text exceeds its size limit.
    SizeExceeded = "size_exceeded",
    /// A number has more digits than the limit.
    NumberSizeExceeded = "number_size_exceeded",
    /// The program printed too often or too much.
    PrintLimitExceeded = "print_limit_exceeded",
    /// The program called tools too often.
    ToolCallLimitExceeded = "tool_call_limit_exceeded",
    /// Too many concurrent branches.
    ParallelismExceeded = "parallelism_exceeded",
    /// The host stopped the program.
    Stopped = "stopped",

    // Stored memory.
    /// A stored value is damaged or has an unknown version.
    InvalidStored = "invalid_stored_value",
    /// A value cannot be written in the requested form.
    NotRepresentable = "not_representable",

    /// A broken invariant of this crate. It is a bug worth reporting.
    Internal = "internal_error",
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
