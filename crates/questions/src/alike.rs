//! Questions that are nearly the same: for an editor to look at, not a fault.

use std::collections::{HashMap, HashSet};

use florilegium_fold::fold;

/// Two questions are nearly the same when they share this part of their letters, three at a time.
const NEARLY: f64 = 0.8;

/// The pairs of texts that are nearly the same, by their numbers, each with the smaller one first.
///
/// Two sets that share so much must share one of the first few of their members, the rarest first:
/// only texts that do are compared (prefix filtering), so that ten thousand take a moment.
pub(crate) fn alike(texts: &[(&str, &str)]) -> Vec<(usize, usize)> {
    let grams: Vec<HashSet<String>> = texts.iter().map(|(_, text)| trigrams(text)).collect();
    let mut frequency: HashMap<(&str, &str), usize> = HashMap::new();
    for ((language, _), grams) in texts.iter().zip(&grams) {
        grams.iter().for_each(|gram| *frequency.entry((language, gram)).or_default() += 1);
    }
    let mut seen: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    let mut pairs = Vec::new();
    for (number, ((language, _), own)) in texts.iter().zip(&grams).enumerate() {
        let mut sorted: Vec<&str> = own.iter().map(String::as_str).collect();
        sorted.sort_unstable_by_key(|gram| (frequency.get(&(*language, *gram)).copied(), *gram));
        let needed = (own.len() as f64 * NEARLY).ceil() as usize;
        let mut compared = HashSet::new();
        for gram in sorted.iter().take(own.len() + 1 - needed) {
            let others = seen.entry((language, gram)).or_default();
            for &other in others.iter().filter(|other| compared.insert(**other)) {
                if share(own, &grams[other]) >= NEARLY {
                    pairs.push((other, number));
                }
            }
            others.push(number);
        }
    }
    pairs.sort_unstable();
    pairs
}

fn trigrams(text: &str) -> HashSet<String> {
    let letters: Vec<char> = format!(" {} ", fold(text)).chars().collect();
    letters.windows(3).map(|three| three.iter().collect()).collect()
}

/// Jaccard's coefficient.
fn share(one: &HashSet<String>, other: &HashSet<String>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    common as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plural_or_a_slip_is_nearly_the_same_and_another_question_is_not() {
        let texts = [
            ("en", "How do I remove a package from the system?"),
            ("en", "How do I remove a packages from the system?"),
            ("fr", "How do I remove a package from the system?"),
            ("en", "How do I install a kernel on the system?"),
            ("en", "Who kept the lighthouse?"),
        ];
        assert_eq!(alike(&texts), [(0, 1)]);
    }

    proptest! {
        #[test]
        fn nothing_that_comparing_all_finds_is_missed(
            texts in prop::collection::vec("[ab ]{0,8}", 0..12),
        ) {
            let texts: Vec<(&str, &str)> = texts.iter().map(|text| ("en", text.as_str())).collect();
            let mut expected = Vec::new();
            for one in 0..texts.len() {
                for other in one + 1..texts.len() {
                    let (a, b) = (trigrams(texts[one].1), trigrams(texts[other].1));
                    if !a.is_empty() && share(&a, &b) >= NEARLY {
                        expected.push((one, other));
                    }
                }
            }
            prop_assert_eq!(alike(&texts), expected);
        }
    }
}
