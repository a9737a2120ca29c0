//! "Did you mean": the known names nearest to an unknown one.

/// Returns at most `most` known names, nearest to `wanted` first; names that differ too much are left out.
///
/// The distance counts inserted, deleted, changed and swapped characters. `_` equals `-`, and case is
/// ignored. A name may differ by a third of its length.
fn closest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    // A name of this length is not a misspelling of ours, and the distance is quadratic.
    const LONGEST: usize = 64;
    let wanted: Vec<char> = fold(wanted).take(LONGEST + 1).collect();
    if wanted.len() > LONGEST {
        return Vec::new();
    }
    let allowed = match wanted.len() {
        0..=3 => 1,
        4..=5 => 2,
        length => length / 3,
    };
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|name| name.len() <= 4 * LONGEST)
        .filter_map(|name| {
            let other: Vec<char> = fold(name).collect();
            if other.len().abs_diff(wanted.len()) > allowed {
                return None;
            }
            let distance = distance(&wanted, &other);
            // A short name with every character changed is a different name, not a misspelling.
            (distance <= allowed && distance < wanted.len().max(other.len())).then_some((distance, name))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(most).map(|(_, name)| name).collect()
}

/// Returns the hint `did you mean a, b or c?`, or `None` if no known name is near.
pub fn did_you_mean<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names = closest(wanted, known, 3);
    let (last, rest) = names.split_last()?;
    Some(match rest {
        [] => format!("did you mean `{last}`?"),
        rest => {
            let rest: Vec<String> = rest.iter().map(|name| format!("`{name}`")).collect();
            format!("did you mean {} or `{last}`?", rest.join(", "))
        }
    })
}

fn fold(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase).map(|character| if character == '_' { '-' } else { character })
}

/// Optimal string alignment distance: Levenshtein plus swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let change = last[j] + usize::from(x != y);
            let mut best = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
