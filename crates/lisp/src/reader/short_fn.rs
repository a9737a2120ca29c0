//! `#(...)`: finds the arguments that its body names, and expands it to a function.

use super::form::{Form, FormKind};
use super::names::Names;
use crate::error::{Error, ErrorKind, Result, Span};

/// The most arguments of a function in Clojure.
const MOST: usize = 20;

/// The arguments found while reading the body.
#[derive(Default)]
pub(super) struct ShortFn {
    /// The highest `%n`.
    highest: usize,
    /// True if `%&` occurs.
    rest: bool,
}

impl ShortFn {
    /// Registers an argument, given without its `%`. Returns its name in the function if that differs.
    pub(super) fn note(&mut self, place: &str) -> Result<Option<String>> {
        match place {
            "" => {
                self.highest = self.highest.max(1);
                Ok(Some("%1".to_owned()))
            }
            "&" => {
                self.rest = true;
                Ok(None)
            }
            _ => match place.parse::<usize>() {
                Ok(number)
                    if (1..=MOST).contains(&number) && place.bytes().all(|byte| byte.is_ascii_digit()) =>
                {
                    self.highest = self.highest.max(number);
                    // `%01` is the argument `%1`.
                    Ok(Some(format!("%{number}")))
                }
                _ => Err(Error::new(ErrorKind::Parse, format!("`%{place}` is not an argument of `#()`"))
                    .hint(format!("the arguments are %, %1 to %{MOST} and %&"))),
            },
        }
    }

    /// Returns the function with this body.
    pub(super) fn write_out(self, body: Form, names: &mut Names) -> Form {
        let span = body.span;
        let opener = Span::new(span.start, span.start + 2);
        let mut symbol = |name: &str| Form::new(FormKind::Symbol(names.share(name)), opener);
        let mut parameters: Vec<Form> =
            (1..=self.highest).map(|number| symbol(&format!("%{number}"))).collect();
        if self.rest {
            parameters.extend([symbol("&"), symbol("%&")]);
        }
        Form::list([symbol("fn*"), Form::vector(parameters, opener), body], span)
    }
}
