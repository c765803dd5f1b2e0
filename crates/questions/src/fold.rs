//! When two wordings are the same question.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Folds a text to the form in which two wordings of one question are equal: case, accents, the
/// Greek final sigma, ligatures, the kind of apostrophe, punctuation and white space do not count.
///
/// An elision (`l'`, `d'`, `qu'`) is parted from its word and kept: `l’archive`, `L'archive` and
/// `l' archive` are equal, `l'archive` and `d'archive` are not. Signs that carry meaning (`C++`,
/// `C#`, `≤`) stay, and so do the vowel signs of scripts in which they are letters.
///
/// Folding twice gives the same as folding once.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut gap = false;
    let decomposed: String = text.nfkd().flat_map(char::to_lowercase).collect();
    // Marks that an accent kept apart are put in order once it is gone.
    for c in decomposed.nfkd().filter(|&c| !is_accent(c)).nfkd() {
        if is_kept(c) {
            if gap && !folded.is_empty() {
                folded.push(' ');
            }
            gap = false;
            match c {
                'ς' => folded.push('σ'),
                'ß' => folded.push_str("ss"),
                'œ' => folded.push_str("oe"),
                'æ' => folded.push_str("ae"),
                c => folded.push(c),
            }
        } else {
            gap = true;
        }
    }
    folded
}

/// Diacritics of Latin, Greek and Cyrillic, the points of Hebrew and Arabic. The stroke that negates
/// a sign (`≠`) is none.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}'
        | '\u{0591}'..='\u{05BD}' | '\u{05BF}' | '\u{05C1}'..='\u{05C2}' | '\u{05C4}'..='\u{05C5}'
        | '\u{064B}'..='\u{065F}' | '\u{0670}')
        && c != '\u{0338}'
        // Soft hyphens and joiners leave no gap where they stood.
        || matches!(c, '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
}

fn is_kept(c: char) -> bool {
    c.is_alphanumeric()
        || is_combining_mark(c)
        || matches!(c,
            '+' | '#' | '%' | '$' | '&' | '@' | '=' | '<' | '>' | '^' | '~' | '°'
            | '\u{20A0}'..='\u{20CF}' | '\u{2190}'..='\u{22FF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_does_not_count() {
        for (one, other) in [
            ("Qu’est-ce que l’APT ?", "qu'est ce que l' apt"),
            ("Où est l'ŒUVRE ?", "ou est l'oeuvre"),
            ("Τι είναι ο ΛΟΓΟΣ;", "τι ειναι ο λογος"),
            ("ἐν ἀρχῇ ἦν ὁ λόγος", "ΕΝ ΑΡΧΗ ΗΝ Ο ΛΟΓΟΣ"),
            ("Straße", "STRASSE"),
            ("pa\u{AD}quet", "paquet"),
            ("  a \t b ", "A, b."),
            ("e\u{301}te", "été"),
            ("שָׁלוֹם", "שלום"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} / {other}");
        }
    }

    #[test]
    fn what_counts() {
        for (one, other) in [
            ("What is C++?", "What is C?"),
            ("l'archive", "d'archive"),
            ("a ≠ b", "a = b"),
            ("का", "की"),
            ("A defeats B", "B defeats A"),
        ] {
            assert_ne!(fold(one), fold(other), "{one} / {other}");
        }
        assert_eq!(fold("L’archive"), "l archive");
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in any::<String>()) {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once.clone());
            prop_assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "));
        }
    }
}
