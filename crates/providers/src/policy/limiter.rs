//! One limiter for each address and key, over all sessions of a process.
//!
//! A server that asks one request to wait limits the account, so all requests with the same address and key wait,
//! those of sub-agents too. They continue spread over a little more time, so that they do not all arrive at once. A
//! server may also say in an answer that nothing is left until a certain time. Dropping a request ends its wait, so
//! cancellation and deadlines interrupt it. Keys are held as digests.
//!
//! A limiter that no request uses is forgotten once its time has passed, so a process that asks many addresses or
//! changes its keys does not grow.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::digest::Digest;
use tokio::time::Instant;

use crate::error::{ErrorKind, LONGEST_WAIT, ProviderError};

static LIMITERS: LazyLock<Mutex<HashMap<Digest, Arc<Limiter>>>> = LazyLock::new(Mutex::default);

/// The names of limits in headers: what is left, and when it is there again.
const LIMITS: [(&str, &str); 7] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// Delays the requests to one address with one key.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    closed: Mutex<Option<Closed>>,
}

/// When requests may be sent again, and for how long they could not.
#[derive(Debug, Clone, Copy)]
struct Closed {
    until: Instant,
    span: Duration,
}

impl Limiter {
    /// Returns the limiter of an address and the secrets of its requests.
    pub(super) fn of(address: &str, secrets: &[&str]) -> Arc<Self> {
        let identity = identity(address, secrets);
        let mut all = LIMITERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&identity) {
            return known.clone();
        }
        // Requests get their limiter under this lock, so one that only the map holds is not in use.
        all.retain(|_, limiter| Arc::strong_count(limiter) > 1 || limiter.is_closed());
        all.entry(identity).or_default().clone()
    }

    fn is_closed(&self) -> bool {
        let closed = *self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.is_some_and(|closed| closed.until > Instant::now())
    }

    /// Waits until requests may be sent.
    pub(super) async fn wait(&self) {
        loop {
            let closed = *self.closed.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(Closed { until, span }) = closed else { return };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left + span.mul_f64(random() / 10.0)).await;
        }
    }

    /// Lets requests wait as an error asks for, or as its headers say.
    pub(super) fn heed_error<'a>(&self, error: &ProviderError, header: impl Fn(&str) -> Option<&'a str>) {
        let is_limited = matches!(error.kind, ErrorKind::RateLimited | ErrorKind::Overloaded);
        match error.retry_after.filter(|_| is_limited) {
            None => self.heed_headers(header),
            wait => self.close(wait),
        }
    }

    /// Lets requests wait if the headers of an answer say that nothing is left.
    pub(super) fn heed_headers<'a>(&self, header: impl Fn(&str) -> Option<&'a str>) {
        for (left, reset) in LIMITS {
            if header(left).is_some_and(|left| left.trim() == "0") {
                self.close(header(reset).and_then(reset_after));
            }
        }
    }

    /// Closes for this long. The server refuses requests by itself if it asks for more than a request may wait.
    fn close(&self, wait: Option<Duration>) {
        let Some(span) = wait.filter(|wait| !wait.is_zero() && *wait <= LONGEST_WAIT) else { return };
        let until = Instant::now() + span;
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.is_none_or(|before| before.until < until) {
            *closed = Some(Closed { until, span });
        }
    }
}

fn identity(address: &str, secrets: &[&str]) -> Digest {
    let texts: Vec<_> = std::iter::once(&address).chain(secrets).copied().collect();
    Digest::of(texts.join("\0").as_bytes())
}

/// A random number below 1.
fn random() -> f64 {
    let drawn = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(drawn >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// Reads when a limit is lifted: a duration such as `6m0s` or `120ms`, a number of seconds, a date, or the time
/// since 1970 in seconds or milliseconds.
fn reset_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    let until = |date: jiff::Timestamp| Duration::try_from(date.duration_since(jiff::Timestamp::now())).ok();
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            number if !(0.0..1e15).contains(&number) => None,
            number if number >= 1e12 => until(jiff::Timestamp::from_millisecond(number as i64).ok()?),
            number if number >= 1e9 => until(jiff::Timestamp::from_second(number as i64).ok()?),
            number => Some(Duration::from_secs_f64(number)),
        };
    }
    if let Ok(date) = text.parse::<jiff::Timestamp>() {
        return until(date);
    }
    Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[&str] = &["sk-0123456789"];

    fn is_known(address: &str) -> bool {
        LIMITERS.lock().unwrap().contains_key(&identity(address, SECRET))
    }

    /// Asks for limiters of other addresses, which forgets those that are not used.
    fn sweep() {
        static SWEPT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = SWEPT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Limiter::of(&format!("http://sweep-{number}.test"), SECRET);
    }

    #[test]
    fn limiters_that_nobody_uses_are_forgotten() {
        let used = Limiter::of("http://used.test", SECRET);
        Limiter::of("http://open.test", SECRET);
        Limiter::of("http://closed.test", SECRET).close(Some(Duration::from_secs(100)));
        let passed = Limiter::of("http://passed.test", SECRET);
        *passed.closed.lock().unwrap() = Some(Closed { until: Instant::now(), span: Duration::ZERO });
        drop(passed);
        sweep();
        assert!(is_known("http://used.test"), "a request uses it");
        assert!(is_known("http://closed.test"), "its time has not passed");
        assert!(!is_known("http://open.test") && !is_known("http://passed.test"));
        assert!(Limiter::of("http://closed.test", SECRET).is_closed(), "the wait holds");
        drop(used);
        sweep();
        assert!(!is_known("http://used.test"));
        for number in 0..1_000 {
            Limiter::of(&format!("http://many-{number}.test"), SECRET);
        }
        let many = (0..1_000).filter(|number| is_known(&format!("http://many-{number}.test"))).count();
        assert!(many <= 1, "{many} are left");
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_that_are_dropped_leave_nothing_and_others_continue() {
        const ADDRESS: &str = "http://waiters.test";
        let limiter = Limiter::of(ADDRESS, SECRET);
        limiter.close(Some(Duration::from_secs(100)));
        let waiters: Vec<_> = (0..8)
            .map(|_| {
                let limiter = Limiter::of(ADDRESS, SECRET);
                tokio::spawn(async move { limiter.wait().await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&limiter), 10, "the map, this test and the waiters");
        waiters[..4].iter().for_each(tokio::task::JoinHandle::abort);
        let mut ended = 0;
        for waiter in waiters {
            ended += usize::from(waiter.await.is_ok());
        }
        assert_eq!(ended, 4);
        assert_eq!(Arc::strong_count(&limiter), 2, "no waiter is left");
        // Another one has nothing to wait for.
        limiter.wait().await;
        drop(limiter);
        sweep();
        assert!(!is_known(ADDRESS));
    }

    #[test]
    fn resets_are_read_in_all_forms() {
        let seconds = |text: &str| reset_after(text).map(|wait| wait.as_secs_f64());
        for (text, expected) in
            [("6m0s", 360.0), ("120ms", 0.12), ("1s", 1.0), ("2m59.5s", 179.5), ("7", 7.0), ("1.5", 1.5)]
        {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for wrong in ["soon", "5 years", "s", "-1", "", "1e300"] {
            assert!(seconds(wrong).is_none_or(|seconds| seconds == 0.0), "{wrong}");
        }
        let later = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3_600);
        for text in [later.to_string(), later.as_millisecond().to_string(), later.as_second().to_string()] {
            assert!(seconds(&text).is_some_and(|seconds| seconds > 1_800.0), "{text}");
        }
        assert_eq!(seconds("2001-01-01T00:00:00Z"), None);
    }
}
