//! `YearMonth`: a month of a year. It is kept as the first day of the month.

use jiff::civil::Date;

use super::civil::{date_or_month, parse_by, unfit};
use super::text::parse_month;
use super::zones::now;
use super::{as_temporal, integer, month_number, temporal, text};
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, Native, type_error};
use crate::value::{Temporal, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("YearMonth/parse", Arity::between(1, 2), &[], |c, a| {
        let written = text(c.name, &a[0])?;
        let first = match a.get(1) {
            None => parse_month(written)?,
            Some(formatter) => {
                let fields = parse_by(c.name, written, formatter)?;
                fields.month().ok_or_else(|| unfit(written, formatter))?
            }
        };
        Ok(month(first))
    }),
    Native::binary("YearMonth/of", |c, a| {
        let (year, number) = (integer(c.name, &a[0])?, month_number(c.name, &a[1])?);
        let first = || Date::new(year.try_into().ok()?, number.try_into().ok()?, 1).ok();
        let none = || Error::new(ErrorKind::InvalidArgument, format!("there is no month {year}-{number:02}"));
        Ok(month(first().ok_or_else(none)?))
    }),
    Native::unary("YearMonth/from", |c, a| Ok(month(date_or_month(c.name, &a[0])?.first_of_month()))),
    Native::leaf("YearMonth/now", Arity::between(0, 1), &[], |c, a| {
        Ok(month(now(c.name, c, a)?.0.date().first_of_month()))
    }),
    Native::binary(".atDay", |c, a| {
        let first = first_day(c.name, &a[0])?;
        let day = integer(c.name, &a[1])?;
        let date = || Date::new(first.year(), first.month(), day.try_into().ok()?).ok();
        let none = || {
            let month = first.strftime("%Y-%m");
            Error::new(ErrorKind::InvalidArgument, format!("there is no date {month}-{day:02}"))
        };
        Ok(temporal(Temporal::LocalDate(date().ok_or_else(none)?)))
    }),
    Native::unary(".atEndOfMonth", |c, a| {
        Ok(temporal(Temporal::LocalDate(first_day(c.name, &a[0])?.last_of_month())))
    }),
];

fn month(first: Date) -> Value {
    temporal(Temporal::YearMonth(first))
}

fn first_day(function: &str, value: &Value) -> Result<Date> {
    match as_temporal(value) {
        Some(Temporal::YearMonth(first)) => Ok(*first),
        _ => Err(type_error(function, "a month such as (YearMonth/of 2026 1)", value)),
    }
}

/// A number of a date or of a month.
pub(super) fn on_month(function: &str, arguments: &[Value], part: fn(Date) -> i64) -> Result<Value> {
    date_or_month(function, &arguments[0]).map(|date| Value::Integer(part(date)))
}
