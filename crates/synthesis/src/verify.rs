//! Rule 5: ordinary code checks every quotation against the passage that was named.
//!
//! This module knows no model, no prompt and no page. It compares bytes; where they differ it says
//! how, and nothing but [`Outcome::Exact`] is shown unless a setting admits [`Outcome::Equivalent`].

mod glyphs;

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What became of a proposed quotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It stands, byte for byte, in the passage named: at these bytes of the passage.
    Exact(Vec<Range<usize>>),
    /// It stands there but for glyphs that say the same: canonical equivalence, white space,
    /// quotation marks, dashes, ligatures, soft hyphens. The ranges are the source's own bytes, and
    /// these are what would be shown. Rejected unless a setting admits it.
    Equivalent(Vec<Range<usize>>),
    /// Pieces of the passage with something left out between them.
    Ellipsis,
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
    /// The bytes of the passage that may be shown, every occurrence; none when it is rejected.
    pub fn places(&self, equivalent: bool) -> &[Range<usize>] {
        match self {
            Outcome::Exact(places) => places,
            Outcome::Equivalent(places) if equivalent => places,
            _ => &[],
        }
    }

    /// The outcome in a word, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Exact(_) => "exact",
            Outcome::Equivalent(_) => "equivalent",
            Outcome::Ellipsis => "ellipsis",
            Outcome::Misattributed => "misattributed",
            Outcome::Absent => "absent",
            Outcome::Empty => "empty",
            Outcome::TooShort => "too short",
            Outcome::UnknownPassage => "unknown passage",
        }
    }
}

/// Checks `quotation` against the passage `named`, the one the model gave as its source; `others`
/// are the further passages it was shown. `shortest` is the least count of letters and digits.
///
/// A changed digit, a dropped accent, another letter case, other punctuation is no quotation; there
/// is no edit distance anywhere.
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
    let sought = glyphs::plain(quotation);
    let (plain, origins) = glyphs::plain_with_origins(passage);
    let places = glyphs::places(&sought, &plain, &origins);
    if !places.is_empty() {
        return Outcome::Equivalent(places);
    }
    if has_gaps(&sought, &plain) {
        return Outcome::Ellipsis;
    }
    let stands = |other: &str| other.contains(quotation) || glyphs::plain(other).contains(&sought);
    if others.into_iter().any(stands) {
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

/// Whether a text is two or more pieces of the passage, in their order, with marks of omission
/// between, before or after them.
fn has_gaps(sought: &str, passage: &str) -> bool {
    let marked = sought.replace("[...]", "\u{2026}").replace("(...)", "\u{2026}");
    let marked = marked.replace("...", "\u{2026}");
    if !marked.contains('\u{2026}') {
        return false;
    }
    let mut from = 0;
    let mut pieces = 0;
    for piece in marked.split('\u{2026}') {
        let piece = piece.trim_matches(|c: char| c.is_whitespace() || "[]()".contains(c));
        if piece.is_empty() {
            continue;
        }
        let Some(at) = passage.get(from..).and_then(|rest| rest.find(piece)) else { return false };
        from += at + piece.len();
        pieces += 1;
    }
    pieces > 0
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
            "The lamp was not lit in 1872: it", // other punctuation
            "Η βιβλιοθηκη κάηκε",               // a dropped accent
            "Thе lamp was not lit",             // a Cyrillic e
            "το 1872. The lamp\u{202e} was",    // a bidi override
        ] {
            assert_eq!(outcome(lie), Outcome::Absent, "{lie}");
        }
    }

    #[test]
    fn what_is_left_out_is_named_an_ellipsis() {
        for elided in ["The lamp … was lit in 1873", "The lamp [...] in 1873", "was not lit..."] {
            assert_eq!(outcome(elided), Outcome::Ellipsis, "{elided}");
        }
        // An ellipsis of the source's own is a part of it; pieces in another order are nothing.
        let own = verify("wait… here", Some("So wait… here it is."), [], 3);
        assert!(matches!(own, Outcome::Exact(_)));
        assert_eq!(outcome("was lit in 1873 … The lamp"), Outcome::Absent);
    }

    #[test]
    fn other_glyphs_for_the_same_are_equivalent_and_give_the_sources_own_bytes() {
        let source = "Il dit\u{a0}: «\u{202f}Une \u{fb01}n d\u{2019}e\u{301}te\u{301} — peut\u{ad}-être.\u{202f}»";
        for (wording, part) in [
            ("Il dit : \"Une fin d'été - peut-être.\"", source),
            ("Une fin d\u{2019}été", "Une \u{fb01}n d\u{2019}e\u{301}te\u{301}"),
            ("dit  :\n«", "dit\u{a0}: «"),
        ] {
            let outcome = verify(wording, Some(source), [], 3);
            let Outcome::Equivalent(places) = &outcome else { panic!("{wording}: {outcome:?}") };
            assert_eq!(source[places[0].clone()].trim(), part, "{wording}");
            assert!(outcome.places(false).is_empty(), "rejected by default");
            assert_eq!(outcome.places(true).len(), 1);
        }
        // Half of a ligature is no place in the source.
        assert_eq!(verify("ne f", Some("Une \u{fb01}n"), [], 1), Outcome::Absent);
        for other in ["il dit", "Une fin d'ete", "Une fin, d'été", "Il dit ; «", "peutêtre"] {
            assert_eq!(verify(other, Some(source), [], 3), Outcome::Absent, "{other}");
        }
    }

    #[test]
    fn another_passages_sentence_is_misattributed_never_reassigned() {
        assert_eq!(outcome("the keeper slept"), Outcome::Misattributed);
        assert!(outcome("the keeper slept").places(true).is_empty());
    }

    #[test]
    fn it_fails_closed() {
        assert_eq!(outcome(""), Outcome::Empty);
        assert_eq!(outcome(" \n"), Outcome::Empty);
        assert_eq!(outcome("; "), Outcome::Empty);
        assert_eq!(outcome("it"), Outcome::TooShort);
        assert_eq!(verify("anything", Some(""), [OTHER], 1), Outcome::Empty);
        assert_eq!(verify("the keeper slept", None, [OTHER], 1), Outcome::UnknownPassage);
        assert!(Outcome::Exact(Vec::new()).places(true).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_a_slice_of_the_passage_named(
            quotation in "\\PC{0,12}", passage in "\\PC{0,40}", other in "\\PC{0,40}",
        ) {
            match verify(&quotation, Some(&passage), [other.as_str()], 1) {
                Outcome::Exact(places) => {
                    prop_assert!(!places.is_empty());
                    for place in places {
                        prop_assert_eq!(&passage[place], quotation.as_str());
                    }
                }
                Outcome::Equivalent(places) => {
                    prop_assert!(!places.is_empty());
                    for place in places {
                        // A slice of the source, whose letters and digits are those quoted.
                        let letters = |text: &str| -> Vec<char> {
                            glyphs::plain(text).chars().filter(|c| c.is_alphanumeric()).collect()
                        };
                        prop_assert_eq!(letters(&passage[place]), letters(&quotation));
                    }
                }
                _ => {}
            }
        }

        #[test]
        fn every_slice_with_a_letter_is_accepted(passage in "[a-zα-ω·;« »\u{a0}]{1,40}", a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
            let bounds: Vec<usize> = passage.char_indices().map(|(at, _)| at).chain([passage.len()]).collect();
            let (a, b) = (bounds[a.index(bounds.len())], bounds[b.index(bounds.len())]);
            let slice = &passage[a.min(b)..a.max(b)];
            let outcome = verify(slice, Some(&passage), [], 1);
            let accepted = matches!(outcome, Outcome::Exact(ref places) if !places.is_empty());
            prop_assert_eq!(accepted, slice.chars().any(char::is_alphanumeric));
        }
    }
}
