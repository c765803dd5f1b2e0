//! When two passages say the same: editions of one text differ by a word, a spelling, a comma.

use florilegium_fold::words;

/// Passages that share this part of their words say nearly the same (Jaccard's coefficient).
const NEARLY: f64 = 0.9;
/// Shorter ones must be equal: one word of a few may turn their meaning.
const SHORTEST: usize = 10;

/// The words of a passage, folded and sorted.
pub(crate) struct Content(Vec<String>);

impl Content {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = words(text);
        words.sort_unstable();
        Content(words)
    }

    /// Whether both say the same, or nearly.
    pub(crate) fn is_nearly(&self, other: &Content) -> bool {
        if self.0.is_empty() || self.0 == other.0 {
            return self.0 == other.0;
        }
        let shorter = self.0.len().min(other.0.len());
        shorter >= SHORTEST && self.in_common(other) as f64 >= NEARLY * self.union(other) as f64
    }

    fn union(&self, other: &Content) -> usize {
        self.0.len() + other.0.len() - self.in_common(other)
    }

    /// How many words stand in both, each as often as it stands in both.
    fn in_common(&self, other: &Content) -> usize {
        let mut rest = other.0.iter().peekable();
        let mut common = 0;
        for word in &self.0 {
            while rest.next_if(|next| *next < word).is_some() {}
            common += usize::from(rest.next_if_eq(&word).is_some());
        }
        common
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "The dream is the guardian of sleep and not its disturber, as has been said so often before now.";

    fn alike(one: &str, other: &str) -> bool {
        Content::of(one).is_nearly(&Content::of(other))
    }

    #[test]
    fn editions_that_differ_by_a_word_are_one() {
        assert!(alike(TEXT, &TEXT.replace("often", "frequently")));
        assert!(alike(TEXT, &TEXT.to_uppercase()));
    }

    #[test]
    fn different_texts_and_short_ones_are_not() {
        assert!(!alike(TEXT, "Sleep is the guardian of the dream, and nobody has ever said so."));
        assert!(!alike("It is permitted.", "It is not permitted."));
        assert!(alike("It is permitted.", "It is permitted"));
    }
}
