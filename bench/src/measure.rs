//! Samples, timings, clocks and counters.
//!
//! A sample is the time of many consecutive runs divided by their number, which hides the cost and the
//! resolution of the clock. The first samples are discarded. The median is the typical cost of a run, the
//! minimum its cost without disturbance; processor time excludes what other programs used, and counts do not depend on
//! the machine.

use std::hint::black_box;
use std::ops::Add;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::count::Counts;
pub(crate) use crate::count::Scope;

/// Times of one run, in nanoseconds, and counts.
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) minimum: f64,
    /// The median of processor time.
    pub(crate) cpu: f64,
    /// The medians of what was counted.
    pub(crate) counts: Counts,
    pub(crate) samples: usize,
    pub(crate) per_sample: usize,
}

/// The number of samples, and of runs per sample.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) samples: usize,
    pub(crate) per_sample: usize,
}

impl Effort {
    /// For operations of at most some microseconds.
    pub(crate) const SMALL: Self = Self { samples: 201, per_sample: 256 };
    /// For operations of milliseconds.
    pub(crate) const LARGE: Self = Self { samples: 25, per_sample: 1 };
}

/// Measures `run` by itself.
pub(crate) fn time<T>(effort: Effort, mut run: impl FnMut() -> T) -> Timing {
    time_with(effort, || (), |()| run())
}

/// Measures `run` over values that `prepare` creates: a fresh one for each run, all created before the clock
/// starts. Creating and dropping the values is not measured, nor is dropping the results of the runs.
pub(crate) fn time_with<V, T>(
    effort: Effort,
    mut prepare: impl FnMut() -> V,
    mut run: impl FnMut(&mut V) -> T,
) -> Timing {
    sample(effort, |count| {
        let mut values: Vec<V> = (0..count).map(|_| prepare()).collect();
        let mut results = Vec::with_capacity(count);
        let clock = Scope::Thread.start();
        for value in &mut values {
            results.push(black_box(run(black_box(value))));
        }
        clock.elapsed()
    })
}

/// Measures `run` repeatedly over one value that `prepare` creates for each sample.
pub(crate) fn time_repeated<V, T>(
    effort: Effort,
    mut prepare: impl FnMut() -> V,
    mut run: impl FnMut(&mut V) -> T,
) -> Timing {
    sample(effort, |count| {
        let mut value = prepare();
        let mut results = Vec::with_capacity(count);
        let clock = Scope::Thread.start();
        for _ in 0..count {
            results.push(black_box(run(black_box(&mut value))));
        }
        clock.elapsed()
    })
}

fn sample(effort: Effort, mut measure: impl FnMut(usize) -> Elapsed) -> Timing {
    let Effort { samples, per_sample } = effort;
    let warm_up = samples / 5 + 1;
    let all = (0..warm_up + samples).map(|_| measure(per_sample)).skip(warm_up).collect();
    Samples(all).timing().divided(per_sample)
}

impl Timing {
    /// The time of one run, if this is the time of `runs` runs together.
    pub(crate) fn divided(self, runs: usize) -> Self {
        let share = |time: f64| time / runs as f64;
        Self {
            median: share(self.median),
            minimum: share(self.minimum),
            cpu: share(self.cpu),
            counts: self.counts.map(share),
            per_sample: runs,
            ..self
        }
    }
}

/// Samples that are taken one by one, interleaved with samples of the subject they are compared with, so that a
/// disturbance affects both alike.
#[derive(Default)]
pub(crate) struct Samples(Vec<Elapsed>);

impl Samples {
    /// Takes a sample of `run`.
    pub(crate) fn measure<T>(&mut self, scope: Scope, run: impl FnOnce() -> T) -> T {
        let clock = scope.start();
        let result = black_box(run());
        self.add(clock.elapsed());
        result
    }

    pub(crate) fn add(&mut self, sample: Elapsed) {
        self.0.push(sample);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn timing(&self) -> Timing {
        let times = |time: fn(&Elapsed) -> Duration| {
            self.0.iter().map(move |elapsed| time(elapsed).as_nanos() as f64)
        };
        Timing {
            median: median(times(|elapsed| elapsed.wall)),
            minimum: times(|elapsed| elapsed.wall).fold(f64::INFINITY, f64::min),
            cpu: median(times(|elapsed| elapsed.cpu)),
            counts: Counts(std::array::from_fn(|index| {
                let counts = self.0.iter().map(|elapsed| elapsed.counts.0[index]);
                counts.collect::<Option<Vec<f64>>>().map(|counts| median(counts.into_iter()))
            })),
            samples: self.0.len(),
            per_sample: 1,
        }
    }

    /// The median of the ratios of wall time of samples that were taken in the same round.
    pub(crate) fn median_ratio(&self, other: &Self) -> f64 {
        let wall = |elapsed: &Elapsed| elapsed.wall.as_secs_f64().max(1e-9);
        median(self.0.iter().zip(&other.0).map(|(ours, theirs)| wall(ours) / wall(theirs)))
    }

    /// The ratio of all processor time.
    pub(crate) fn cpu_ratio(&self, other: &Self) -> f64 {
        let sum = |samples: &Self| samples.0.iter().map(|elapsed| elapsed.cpu.as_secs_f64()).sum::<f64>();
        sum(self) / sum(other).max(1e-9)
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Scope {
    pub(crate) fn start(self) -> Stopwatch {
        let cpu = self.processor_time();
        let counts = Counts::start(self);
        Stopwatch { scope: self, cpu, counts, wall: Instant::now() }
    }

    fn processor_time(self) -> Duration {
        match self {
            Self::Thread => time_of(ClockId::ThreadCPUTime),
            Self::Process => time_of(ClockId::ProcessCPUTime),
            Self::Children => time_of_children().unwrap_or_default(),
        }
    }
}

/// The processor time of child processes that have ended, if the system reports it. Its resolution is 10 ms.
pub(crate) fn time_of_children() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything. 13 fields after it are the time in user mode and that in the
    // kernel.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// A measurement that has started.
pub(crate) struct Stopwatch {
    scope: Scope,
    cpu: Duration,
    counts: Counts,
    wall: Instant,
}

impl Stopwatch {
    pub(crate) fn elapsed(&self) -> Elapsed {
        let wall = self.wall.elapsed();
        let counts = self.counts.since_start(self.scope);
        Elapsed { wall, cpu: self.scope.processor_time().saturating_sub(self.cpu), counts }
    }
}

/// Wall time, processor time and counts of a run.
#[derive(Clone, Copy)]
pub(crate) struct Elapsed {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) counts: Counts,
}

impl Add for Elapsed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let counts = self.counts.combine(other.counts, |first, second| first + second);
        Self { wall: self.wall + other.wall, cpu: self.cpu + other.cpu, counts }
    }
}

/// Measures one run on this thread.
pub(crate) fn once<T>(run: impl FnOnce() -> T) -> (T, Elapsed) {
    let clock = Scope::Thread.start();
    let value = run();
    (value, clock.elapsed())
}
