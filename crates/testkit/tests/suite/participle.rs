//! Participles: words that say what was done. They do not say what a type is, or what a function does.

/// Participles that do not end with "ed". Those that equal their verb, such as "put" and "read", are left out.
const IRREGULAR: &str = "begun bound broken brought built caught chosen done drawn driven fallen forgotten found frozen \
    given gone grown heard held hidden kept known laid led left lent lost made meant met paid said seen sent shown spent \
    spoken stuck sunk swept taken thrown told torn undone withdrawn won written";

/// Words that end with "ed" and are not participles.
const OTHERS: &str = "bed embed exceed feed heed need proceed seed speed succeed";

/// Whether a word, in lower case, is a participle.
pub(crate) fn is_participle(word: &str) -> bool {
    let is_of = |list: &str| list.split_whitespace().any(|one| one == word);
    is_of(IRREGULAR) || word.ends_with("ed") && !is_of(OTHERS)
}
