//! Numbers and amounts of money, as people read them.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let numbers = [0, 12, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "12", "999", "1,000", "1,234,567"]);
        let amounts = [0, 12, 100, 12_345, 2_500_000, 1_234_560_000].map(money);
        assert_eq!(amounts, ["0.0000", "<0.0001", "0.0001", "0.0123", "2.50", "1,234.56"]);
    }
}
