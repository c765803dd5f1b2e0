//! When two wordings are the same, and the words of a text as a search compares them.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

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

/// The words of a text, folded, in order. Scripts that put no spaces between words are cut where
/// Unicode (UAX 29) allows it: into single signs, as a rule.
pub fn words(text: &str) -> Vec<String> {
    let folded = fold(text);
    let mut words = Vec::new();
    for word in folded.split(' ').filter(|word| !word.is_empty()) {
        if word.chars().any(is_unspaced) {
            words.extend(word.unicode_words().map(str::to_owned));
        } else {
            words.push(word.to_owned());
        }
    }
    words
}

/// Letters of scripts that are written without spaces: Thai to Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
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

    #[test]
    fn words_of_spaced_and_unspaced_scripts() {
        assert_eq!(words("L’État, c'est C++ !"), ["l", "etat", "c", "est", "c++"]);
        assert_eq!(words("Σωκράτης·ἀνήρ"), ["σωκρατησ", "ανηρ"]);
        assert_eq!(words("東京2026"), ["東", "京", "2026"]);
        assert_eq!(words(" ?!"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn words_are_whole_and_folded(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(!word.is_empty() && !word.contains(' '));
            }
        }

        #[test]
        fn folding_twice_is_folding_once(text in any::<String>()) {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once.clone());
            prop_assert!(!once.starts_with(' ') && !once.ends_with(' ') && !once.contains("  "));
        }
    }
}
