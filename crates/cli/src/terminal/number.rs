//! Numbers, amounts of money and lengths of time, as people read them.

use std::time::Duration;

/// Formats a number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats an amount of money: at least two digits after the point, and more for small amounts.
pub(crate) fn money(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{}.{part:06}", grouped(whole));
    // Fractions of a hundredth only matter where there is little else.
    let digits = if micros >= 1_000_000 { 2 } else { 4 };
    let text = &text[..text.len() - (6 - digits)];
    if micros > 0 && text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        "<0.0001".to_owned()
    } else {
        text.to_owned()
    }
}

/// Formats a length of time with a fitting unit.
pub(crate) fn duration(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{} s", took.subsec_millis() / 100),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_fitting_units() {
        let lengths = [0, 999, 1_000, 59_990, 60_000, 3_599_999, 3_600_000].map(Duration::from_millis);
        let expected = ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "59 min 59 s", "1 h 0 min"];
        assert_eq!(lengths.map(duration), expected);
    }

    #[test]
    fn numbers_are_readable() {
        let numbers = [0, 12, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "12", "999", "1,000", "1,234,567"]);
        let amounts = [0, 12, 100, 12_345, 2_500_000, 1_234_560_000].map(money);
        assert_eq!(amounts, ["0.0000", "<0.0001", "0.0001", "0.0123", "2.50", "1,234.56"]);
    }
}
