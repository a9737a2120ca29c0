//! The decimal digits of a double, rounded as in Java: half up, from the shortest digits that identify the
//! double.

/// A finite double that is not negative: `0.d1d2d3... * 10^point`. Zero has no digits.
pub(super) struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    pub(super) fn of(value: f64) -> Self {
        if value == 0.0 {
            return Self { digits: Vec::new(), point: 0 };
        }
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        Self { digits, point: exponent.parse::<i64>().unwrap_or(0) + 1 }
    }

    /// Returns the first `count` digits, rounded, and the new position of the point: a carry may move it.
    fn round(&self, count: i64) -> (Vec<u8>, i64) {
        let Ok(count) = usize::try_from(count) else { return (Vec::new(), self.point) };
        if count >= self.digits.len() {
            return (self.digits.clone(), self.point);
        }
        let mut digits = self.digits[..count].to_vec();
        if self.digits[count] < 5 {
            return (digits, self.point);
        }
        for at in (0..digits.len()).rev() {
            if digits[at] < 9 {
                digits[at] += 1;
                return (digits, self.point);
            }
            digits[at] = 0;
        }
        digits.insert(0, 1);
        (digits, self.point + 1)
    }

    /// Formats with `places` digits after the point.
    pub(super) fn fixed(&self, places: usize) -> String {
        let (digits, point) = self.round(self.point.saturating_add(places as i64));
        let mut out = String::new();
        if point <= 0 {
            out.push('0');
        }
        for at in 0..point.max(0) {
            out.push(digit_at(&digits, at));
        }
        if places > 0 {
            out.push('.');
            for at in point..point + places as i64 {
                out.push(digit_at(&digits, at));
            }
        }
        out
    }

    /// Formats with one digit before the point and `places` after it; also returns the exponent.
    pub(super) fn scientific(&self, places: usize) -> (String, i64) {
        let (digits, point) = self.round(places as i64 + 1);
        let exponent = if self.digits.is_empty() { 0 } else { point - 1 };
        let mut out = String::from(digit_at(&digits, 0));
        if places > 0 {
            out.push('.');
            (1..=places as i64).for_each(|at| out.push(digit_at(&digits, at)));
        }
        (out, exponent)
    }

    /// Returns the exponent after rounding to `digits` digits; `None` for zero.
    pub(super) fn rounded_exponent(&self, digits: usize) -> Option<i64> {
        if self.digits.is_empty() { None } else { Some(self.round(digits as i64).1 - 1) }
    }
}

fn digit_at(digits: &[u8], at: i64) -> char {
    let digit = usize::try_from(at).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
    char::from(b'0' + digit)
}
