//! Numbers in Java's notation.

use std::fmt::Write as _;

/// Formats a double as `Double.toString` does: the shortest digits that read back the same, plain from a
/// thousandth up to ten million, otherwise with an exponent. `Infinity`, `-Infinity` and `NaN` are words.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return format!("{sign}0.0");
    }
    if (1e-3..1e7).contains(&magnitude) {
        // `Debug` keeps the point: 1.0, not 1.
        return format!("{sign}{magnitude:?}");
    }
    let mut scientific = format!("{magnitude:e}");
    // Java writes at least two digits. They differ from one digit and a zero where doubles are that far
    // apart.
    if magnitude < 1e-320 && !scientific.contains('.') {
        scientific = format!("{magnitude:.1e}");
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mut text = String::with_capacity(scientific.len() + 4);
    let point = if digits.contains('.') { "" } else { ".0" };
    let _ = write!(text, "{sign}{digits}{point}E{exponent}");
    text
}
