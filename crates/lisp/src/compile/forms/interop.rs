//! `(.method object ...)`, `(Class. ...)`, `(new Class ...)`: the Java calls that the library supports.

use super::{foreign, invalid, list};
use crate::compile::analyse::{Analyser, call, with_hint};
use crate::compile::builtins::without_package;
use crate::compile::node::Expr;
use crate::error::{Error, ErrorKind, Result, did_you_mean};
use crate::reader::{Form, Name, Span};

/// The methods that there are. The type of an object is not known here, and a method with a similar name may
/// mean something else.
const METHODS: &str = "dates have .plusDays .minusDays .plusWeeks .plusMonths .plusYears .isBefore .isAfter .getYear \
.getMonthValue .getDayOfMonth .getDayOfWeek .getDayOfYear .toEpochDay .lengthOfMonth .isLeapYear .plus .minus .format; \
instants have .toEpochMilli .plusSeconds .truncatedTo .atOffset; date-times have .toLocalDate .toLocalTime .getHour .toInstant; \
durations have .toDays .toHours .toMinutes .toMillis; strings have .length .substring .indexOf .contains \
.startsWith .endsWith .trim .toUpperCase .toLowerCase .replace .split; lists have .indexOf .contains";

impl Analyser<'_> {
    /// Compiles `.method` and `Class.` in call position; `None` for any other name.
    pub(crate) fn interop(&mut self, name: &Name, items: &[Form], span: Span) -> Result<Option<Expr>> {
        let text = name.full();
        let is_method = text.len() > 1 && text.starts_with('.') && text != "..";
        let is_constructor = text.len() > 1 && text.ends_with('.') && !text.starts_with('.');
        if !is_method && !is_constructor {
            return Ok(None);
        }
        let Some(function) = self.builtin(text.strip_prefix(".-").map_or(text, |_| text)) else {
            let kind = if is_method { "method" } else { "class" };
            let error = Error::new(ErrorKind::UnboundVar, format!("there is no {kind} `{text}`"));
            let called = if is_method { text } else { without_package(text).unwrap_or(text) };
            if let Some(advice) = foreign(called) {
                return Err(error.hint(advice));
            }
            if is_method {
                return Err(error.hint(METHODS));
            }
            let known = self.around.builtins.names().filter(|other| other.ends_with('.'));
            return Err(with_hint(error, did_you_mean(text, known)));
        };
        let arguments = self.forms(&items[1..])?;
        Ok(Some(call(Expr::constant(function, span), arguments, span)))
    }

    pub(super) fn form_new(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let [class, rest @ ..] = arguments else { return Err(invalid("(new Class argument...)")) };
        let class = class.as_symbol().ok_or_else(|| invalid("(new Class argument...)"))?;
        self.form(&list(&format!("{}.", class.full()), rest.iter().cloned(), span), false)
    }

    pub(super) fn form_dot(&mut self, arguments: &[Form], span: Span) -> Result<Expr> {
        let expected = || invalid("(. object method argument...)");
        let [object, rest @ ..] = arguments else { return Err(expected()) };
        let (method, rest) = match rest {
            [method] if method.as_list().is_some() => match method.as_list() {
                Some([method, rest @ ..]) => (method, rest),
                _ => return Err(expected()),
            },
            [method, rest @ ..] => (method, rest),
            [] => return Err(expected()),
        };
        let method = method.as_symbol().ok_or_else(expected)?;
        let object = std::iter::once(object.clone());
        self.form(&list(&format!(".{}", method.full()), object.chain(rest.iter().cloned()), span), false)
    }
}
