//! Rule 5: ordinary code checks every quotation against the passage that was named.
//!
//! This module knows no model, no prompt and no page. It compares bytes.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What became of a proposed quotation. Only [`Outcome::Exact`] is ever shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It stands, byte for byte, in the passage named: at these bytes of the passage.
    Exact(Vec<Range<usize>>),
    /// It does not stand in the passage named but in another one. Never reassigned: rejected.
    Misattributed,
    /// It stands in none of the passages supplied.
    Absent,
    /// There is nothing in it, or nothing in the passage.
    Empty,
    /// It has fewer letters and digits than the setting asks for.
    TooShort,
    /// The passage named is not among those supplied.
    UnknownPassage,
}

impl Outcome {
    /// Whether the quotation may be shown.
    pub fn accepted(&self) -> bool {
        matches!(self, Outcome::Exact(places) if !places.is_empty())
    }
}

/// Checks `quotation` against the passage `named`, the one the model gave as its source; `others`
/// are the further passages it was shown. `shortest` is the least count of letters and digits.
///
/// Nothing is normalised: a changed digit, a dropped accent, another dash, an ellipsis is no longer
/// a quotation.
pub fn verify<'a>(
    quotation: &str,
    named: Option<&str>,
    others: impl IntoIterator<Item = &'a str>,
    shortest: usize,
) -> Outcome {
    let letters = quotation.chars().filter(|c| c.is_alphanumeric()).count();
    let Some(passage) = named else { return Outcome::UnknownPassage };
    if letters == 0 || passage.is_empty() {
        return Outcome::Empty;
    }
    if letters < shortest {
        return Outcome::TooShort;
    }
    let places = occurrences(quotation, passage);
    if !places.is_empty() {
        return Outcome::Exact(places);
    }
    if others.into_iter().any(|other| other.contains(quotation)) {
        return Outcome::Misattributed;
    }
    Outcome::Absent
}

/// Every place where `quotation` stands in `passage`, overlapping ones too.
fn occurrences(quotation: &str, passage: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = passage.get(from..).and_then(|rest| rest.find(quotation)) {
        let start = from + found;
        places.push(start..start + quotation.len());
        from = start + passage[start..].chars().next().map_or(1, char::len_utf8);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSAGE: &str =
        "Η βιβλιοθήκη κάηκε το 1872. The lamp was not lit in 1872; it was lit in 1873.";
    const OTHER: &str = "Another passage says: the keeper slept.";

    fn outcome(quotation: &str) -> Outcome {
        verify(quotation, Some(PASSAGE), [OTHER], 3)
    }

    #[test]
    fn what_stands_there_is_exact_at_every_place() {
        let Outcome::Exact(places) = outcome("it was lit in") else { panic!() };
        assert_eq!(&PASSAGE[places[0].clone()], "it was lit in");
        let Outcome::Exact(places) = verify("aa b aa", Some("aa b aa b aa"), [], 1) else {
            panic!()
        };
        assert_eq!(places, [0..7, 5..12]);
    }

    #[test]
    fn every_lie_is_rejected() {
        for lie in [
            "The lamp was lit in 1872",         // a dropped "not"
            "The lamp was not lit in 1873; it", // an altered digit
            "the lamp was not lit in 1872",     // case
            "The lamp … was lit in 1873",       // an ellipsis
            "The lamp was not lit in 1872: it", // other punctuation
            "Η βιβλιοθηκη κάηκε",               // a dropped accent
            "Thе lamp was not lit",             // a Cyrillic e
            "The lamp was  not lit",            // white space
            "το 1872. The lamp\u{202e} was",    // a bidi override
        ] {
            assert_eq!(outcome(lie), Outcome::Absent, "{lie}");
        }
    }

    #[test]
    fn another_passages_sentence_is_misattributed_never_reassigned() {
        assert_eq!(outcome("the keeper slept"), Outcome::Misattributed);
        assert!(!outcome("the keeper slept").accepted());
    }

    #[test]
    fn it_fails_closed() {
        assert_eq!(outcome(""), Outcome::Empty);
        assert_eq!(outcome(" \n"), Outcome::Empty);
        assert_eq!(outcome("; "), Outcome::Empty);
        assert_eq!(outcome("it"), Outcome::TooShort);
        assert_eq!(verify("anything", Some(""), [OTHER], 1), Outcome::Empty);
        assert_eq!(verify("the keeper slept", None, [OTHER], 1), Outcome::UnknownPassage);
        assert!(!Outcome::Exact(Vec::new()).accepted());
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_a_slice_of_the_passage_named(
            quotation in "\\PC{0,12}", passage in "\\PC{0,40}", other in "\\PC{0,40}",
        ) {
            if let Outcome::Exact(places) = verify(&quotation, Some(&passage), [other.as_str()], 1) {
                prop_assert!(!places.is_empty());
                for place in places {
                    prop_assert_eq!(&passage[place], quotation.as_str());
                }
            }
        }

        #[test]
        fn every_slice_with_a_letter_is_accepted(passage in "[a-zα-ω·;« »\u{a0}]{1,40}", a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
            let bounds: Vec<usize> = passage.char_indices().map(|(at, _)| at).chain([passage.len()]).collect();
            let (a, b) = (bounds[a.index(bounds.len())], bounds[b.index(bounds.len())]);
            let slice = &passage[a.min(b)..a.max(b)];
            let accepted = verify(slice, Some(&passage), [], 1).accepted();
            prop_assert_eq!(accepted, slice.chars().any(char::is_alphanumeric));
        }
    }
}
