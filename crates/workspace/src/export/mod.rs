//! Roots as a repository that git reads.
