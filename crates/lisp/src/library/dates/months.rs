//! `YearMonth`: a month of a year. It is kept as the first day of the month.

use jiff::civil::Date;

use super::civil::{date_or_month, parse};
use super::pattern::Fields;
use super::text::parse_month;
use super::zones::now;
use super::{as_temporal, civil_date, integer, month_number, temporal};
use crate::error::{Error, Result};
use crate::library::{Arity, Native, type_error};
use crate::value::{Temporal, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("YearMonth/parse", Arity::between(1, 2), &[], |c, a| {
        parse(c.name, a, parse_month, Fields::month).map(month)
    }),
    Native::binary("YearMonth/of", |c, a| {
        let (year, number) = (integer(c.name, &a[0])?, month_number(c.name, &a[1])?);
        let none = || Error::argument(format!("there is no month {year}-{number:02}"));
        civil_date(year, number, 1).map(month).ok_or_else(none)
    }),
    Native::unary("YearMonth/from", |c, a| Ok(month(date_or_month(c.name, &a[0])?.first_of_month()))),
    Native::leaf("YearMonth/now", Arity::between(0, 1), &[], |c, a| {
        Ok(month(now(c.name, c, a)?.0.date().first_of_month()))
    }),
    Native::binary(".atDay", |c, a| {
        let first = first_day(c.name, &a[0])?;
        let day = integer(c.name, &a[1])?;
        let date = civil_date(first.year().into(), first.month().into(), day);
        let none = || {
            let month = first.strftime("%Y-%m");
            Error::argument(format!("there is no date {month}-{day:02}"))
        };
        Ok(temporal(Temporal::LocalDate(date.ok_or_else(none)?)))
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
