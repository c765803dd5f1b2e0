//! Where sentences end.
//!
//! The candidates are the sentence bounds of UAX #29, an ellipsis, and in Greek the question mark `;`.
//! Rules then refuse a candidate or move it: abbreviations, initials and labels ("Figure 6.1. …") end
//! nothing; closing quotation marks and brackets belong to the sentence that they close, with the French
//! space before them; what goes on in lower case goes on; a parenthesis, or a quotation that began in
//! the middle of a sentence, is not torn apart.
//!
//! In doubt two sentences stay one: a quotation may be longer than need be, never half of what was said.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// How far ahead the end of a parenthesis or quotation is looked for, in bytes.
const PARENTHESIS: usize = 600;
/// How far back a word or a label is looked at, in bytes.
const WORD: usize = 64;

/// Titles before a name, as they are written.
const TITLES: &[&str] = &[
    "M", "MM", "Mme", "Mmes", "Mlle", "Mlles", "Me", "Mgr", "Dr", "Drs", "Pr", "Prof", "St", "Ste",
    "Sts", "Mr", "Mrs", "Ms", "Messrs", "Rev", "Hon", "Gen", "Gov", "Sen", "Capt", "Lt", "Col",
    "Sgt", "Hr", "Fr", "Sr", "κ", "κκ", "Δρ", "Καθ", "Αγ", "Στρ", "Abp", "Bp",
];

/// Abbreviations that something always follows, in lower case.
const OPEN: &[&str] = &[
    "cf", "conf", "vs", "viz", "ca", "approx", "resp", "esp", "incl", "al", "env", "réf", "tél",
    "trad", "éd", "éds", "ed", "eds", "hrsg", "vgl", "bzw", "usw", "coll", "suiv", "sqq", "op",
    "cit", "loc", "ibid", "id", "bd", "av", "apr", "chap", "vol", "vols", "figs", "pp", "sect",
    "βλ", "πρβλ", "δηλ", "σελ", "σσ", "αρ", "αριθ", "εκδ", "τόμ", "κεφ", "άρθρ", "παρ", "μτφρ",
    "επιμ", "λ", "χ", "στ", "ό", "π", "ενν", "τηλ",
];

/// Abbreviations that are words of their own too: only a number after them tells.
const BEFORE_NUMBER: &[&str] = &[
    "no", "nos", "n", "nr", "num", "fig", "p", "art", "ch", "sec", "v", "ver", "t", "l", "ff",
    "eq", "tab", "pl", "bk", "pt", "lib", "cap", "εικ", "πίν", "σ", "αρ",
];

/// Abbreviations that may be the last word of a sentence, in lower case; a capital after them decides.
const MAY_END: &[&str] = &[
    "etc", "inc", "ltd", "corp", "co", "jr", "bros", "κλπ", "κτλ", "κ.λπ", "κ.λ.π", "κ.τ.λ", "κ.ά",
    "κ.α", "κ.ο.κ", "μ.μ", "π.μ", "μ.χ", "π.χ.", "a.m", "p.m", "u.s", "u.k", "j.-c", "s.a", "n.b.",
];

/// German abbreviations that something always follows, in lower case.
const GERMAN: &[&str] = &[
    "sog",
    "bezw",
    "vergl",
    "anm",
    "abb",
    "aufl",
    "jahrg",
    "kap",
    "ges",
    "übers",
    "hg",
    "nr",
    "bzgl",
    "ggf",
    "evtl",
    "inkl",
    "zit",
    "bezügl",
    "beziehungsw",
    "ev",
    "event",
    "bd",
    "bde",
];

/// The sentences of a block's text, in order: trimmed, not empty, and with nothing but white space
/// between them.
pub fn sentences(text: &str, language: &str) -> Vec<Range<usize>> {
    let language = Language::of(language);
    let mut sentences = Vec::new();
    let mut open = Sentence::at(0);
    let mut push = |range: Range<usize>| {
        let trimmed = trim(text, range);
        if !trimmed.is_empty() {
            sentences.push(trimmed);
        }
    };
    for candidate in candidates(text, language) {
        // Taken in already, with the marks that closed an earlier candidate.
        if candidate <= open.scanned {
            continue;
        }
        let (end, next) = language.with_closers(text, candidate);
        if end <= open.scanned {
            continue;
        }
        open.scan(text, end);
        if next < text.len() && language.ends_sentence(text, &open, end, next) {
            push(open.start..end);
            open = Sentence::at(next);
        }
    }
    push(open.start..text.len());
    sentences
}

/// Byte positions after which a sentence may begin, in order.
fn candidates(text: &str, language: Language) -> Vec<usize> {
    let mut found: Vec<usize> =
        text.split_sentence_bound_indices().map(|(at, _)| at).filter(|at| *at > 0).collect();
    let own = |c: char| c == '…' || (language.greek && matches!(c, ';' | '\u{37e}'));
    let mut after_space = false;
    for (at, c) in text.char_indices() {
        if own(c) {
            found.push(at + c.len_utf8());
        } else if after_space && matches!(c, '—' | '–') {
            // To UAX #29 a dash goes on with the sentence; in dialogue it gives the word to another.
            found.push(at);
        }
        after_space = c.is_whitespace();
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// What is known of the sentence that is being read.
struct Sentence {
    start: usize,
    /// Everything before this has been looked at.
    scanned: usize,
    letters: bool,
    parentheses: usize,
    /// Quotations that began in the middle of the sentence.
    quotations: usize,
}

impl Sentence {
    fn at(start: usize) -> Sentence {
        Sentence { start, scanned: start, letters: false, parentheses: 0, quotations: 0 }
    }

    fn scan(&mut self, text: &str, end: usize) {
        for c in text[self.scanned..end].chars() {
            match c {
                '(' | '[' => self.parentheses += 1,
                ')' | ']' => self.parentheses = self.parentheses.saturating_sub(1),
                '«' | '“' if self.letters => self.quotations += 1,
                '»' | '”' => self.quotations = self.quotations.saturating_sub(1),
                _ => self.letters |= c.is_alphabetic(),
            }
        }
        self.scanned = end;
    }

    /// Whether something that began in this sentence ends soon after `at`.
    fn is_inside(&self, text: &str, at: usize) -> bool {
        let ahead = floor(text, at.saturating_add(PARENTHESIS));
        let ahead = text.get(at..ahead).unwrap_or_default();
        (self.parentheses > 0 && ahead.contains([')', ']']))
            || (self.quotations > 0 && ahead.contains(['»', '”']))
    }
}

/// What of a language matters here.
#[derive(Debug, Clone, Copy)]
struct Language {
    greek: bool,
    /// Quotation marks point inwards: »so«, „so“.
    german: bool,
}

impl Language {
    fn of(tag: &str) -> Language {
        let primary = tag.split(['-', '_']).next().unwrap_or(tag).to_ascii_lowercase();
        Language {
            greek: matches!(primary.as_str(), "el" | "grc"),
            german: matches!(primary.as_str(), "de" | "da"),
        }
    }

    /// Closes with white space before it too.
    fn closes_after_space(self, c: char) -> bool {
        matches!(c, '»' | '›') && !self.german
    }

    /// Closes where it touches what it closes.
    fn closes(self, c: char) -> bool {
        matches!(c, ')' | ']' | '}' | '”' | '’' | '"' | '\'' | '›' | '»')
            || (self.german && matches!(c, '“' | '‘' | '«' | '‹'))
    }

    /// The end of what comes before a candidate, closing marks taken in, and the start of what follows.
    fn with_closers(self, text: &str, candidate: usize) -> (usize, usize) {
        let mut end = text[..candidate].trim_end().len();
        loop {
            let rest = &text[end..];
            let after = rest.trim_start();
            let touches = after.len() == rest.len();
            match after.chars().next() {
                Some(c) if (touches && self.closes(c)) || self.closes_after_space(c) => {
                    end = text.len() - after.len() + c.len_utf8();
                }
                // More of the same: "?!", "! …"
                Some(c) if touches && matches!(c, '!' | '?' | '…' | '.') => end += c.len_utf8(),
                _ => return (end, text.len() - after.len()),
            }
        }
    }

    /// Whether the sentence so far ends at `end`, another one beginning at `next`.
    fn ends_sentence(self, text: &str, sentence: &Sentence, end: usize, next: usize) -> bool {
        let rest = &text[next..];
        let core = text[sentence.start..end].trim_end_matches(|c: char| {
            self.closes(c) || self.closes_after_space(c) || c.is_whitespace()
        });
        let Some(terminator) = core.chars().next_back() else {
            return false;
        };
        // Scripts that write no spaces need none here.
        if end == next && matches!(terminator, '.' | '!' | '?' | '…' | ';') {
            return false;
        }
        if core == "." {
            // The end of a sentence that a list or some code stood in the middle of.
            return true;
        }
        if !sentence.letters || rest.starts_with([',', ';', ':', ')', ']', '}', '!', '?']) {
            return false;
        }
        let Some(first) = rest.chars().take(WORD).find(|c| c.is_alphanumeric()) else {
            // Nothing but signs: they belong to what they follow.
            return rest.len() > WORD;
        };
        if first.is_lowercase() || sentence.is_inside(text, end) {
            return false;
        }
        match terminator {
            '.' => core.ends_with("..") || self.full_stop_ends(core, first),
            // A dash in the middle of a sentence is a candidate too.
            c => !c.is_alphanumeric() && !matches!(c, ',' | ':' | '-' | '—' | '–' | '%' | '/'),
        }
    }

    /// Whether the full stop at the end of `core` ends the sentence, `first` being the next letter or
    /// digit.
    fn full_stop_ends(self, core: &str, first: char) -> bool {
        let tail = &core[ceil(core, core.len().saturating_sub(WORD))..core.len() - 1];
        let mut back = tail.rsplit(char::is_whitespace);
        let word = back.next().unwrap_or_default();
        let before = back.next().unwrap_or_default();
        let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        // Of "l'art." and "d'env." the article is no part.
        let bare = word.rsplit(['\'', '’']).next().unwrap_or(word);
        if is_label(core) {
            return false;
        }
        let lower = bare.to_lowercase();
        if MAY_END.contains(&lower.as_str()) {
            return true;
        }
        if BEFORE_NUMBER.contains(&lower.as_str()) && first.is_numeric() {
            return false;
        }
        let measures = before.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
            && !before.is_empty();
        if TITLES.contains(&bare) && !measures {
            return false;
        }
        if OPEN.contains(&lower.as_str()) || (self.german && GERMAN.contains(&lower.as_str())) {
            return false;
        }
        // "p. ex.", "z. B.", "d. h."
        let two_part = before.strip_suffix('.').is_some_and(|before| is_short_word(before, 1));
        if two_part && is_short_word(word, 2) {
            return false;
        }
        // Initials, and abbreviations of letters: "J.", "J.-P.", "e.g.", "π.χ.", "κ.ε."
        let mut pieces = word.split(['.', '-']);
        let dotted = word.contains('.');
        let letters = |piece: &str| {
            let count = piece.chars().count();
            count <= if dotted { 2 } else { 1 } && piece.chars().all(char::is_alphabetic)
        };
        let initial = !word.is_empty() && pieces.all(letters);
        let capital = word.chars().next().is_some_and(char::is_uppercase);
        // German has them in lower case too: "z. B."
        !(initial && (dotted || ((capital || self.german) && !measures)))
    }
}

fn is_short_word(word: &str, longest: usize) -> bool {
    (1..=longest).contains(&word.chars().count()) && word.chars().all(char::is_alphabetic)
}

/// Whether this is the number of what follows: "2.1.", "A.3.", "XIV.", "Figure 6.1.", "Étape 3."
fn is_label(core: &str) -> bool {
    if core.len() > WORD {
        return false;
    }
    let mut words = core.split_whitespace();
    let (Some(first), second, None) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let number = |word: &str| {
        let word = word.trim_end_matches('.');
        !word.is_empty()
            && word.split(['.', '-']).all(|piece| {
                piece.chars().all(|c| c.is_ascii_digit())
                    || piece.chars().count() == 1
                    || piece.chars().all(|c| "IVXLC".contains(c))
            })
    };
    match second {
        None => number(first),
        Some(second) => {
            first.chars().next().is_some_and(char::is_uppercase)
                && first.chars().all(char::is_alphabetic)
                && number(second)
        }
    }
}

/// The range without white space at its ends.
pub(crate) fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let start = range.end - slice.trim_start().len();
    start..start + slice.trim().len()
}

/// The last character boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sentences are written with a bar between them.
    fn check(language: &str, marked: &str) {
        let text = marked.replace('|', "");
        let expected: Vec<String> = marked.split('|').map(|part| part.trim().to_owned()).collect();
        let found: Vec<&str> =
            sentences(&text, language).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn plain_sentences() {
        check("en", "One. |Two! |Three? |Four");
        check(
            "en",
            "It costs 3.14 euros. |Debian 2.0 came later. |See sources.list and https://x.org/a?b.c!d for more.",
        );
        check("en", "Wait... |Then it came. |Wait… |Then it came. |And… so it went.");
        check("en", "It runs on Debian 11. |Then it stops.");
        check("en", "Is it? no. |Yes!");
        check("en", "Run apt.Then stop.");
    }

    #[test]
    fn abbreviations() {
        check(
            "en",
            "See e.g. Debian, i.e. Linux. |Dr. Smith and Mrs. Jones met Mr. Brown. |They left.",
        );
        check("en", "Cf. Smith et al. 1999, vol. 2, pp. 3-5, fig. 3. |Then etc. |The end.");
        check("en", "The answer is no. |Then see no. 5. |It took 5 ms. |Good.");
        check(
            "fr",
            "M. Dupont et Mme. Durand, p. ex. Marie, etc. |Puis cf. Lacan, vol. 2, p. 12. |Fin.",
        );
        check("fr", "Il mesure 3 m. |Elle aussi. |C'est de l'art. |Vraiment.");
        check(
            "el",
            "Βλ. Φρόυντ, π.χ. Τότεμ, σελ. 12 κ.λπ. |Το τέλος. |Ο κ. Παπαδόπουλος, δηλ. Εκείνος.",
        );
    }

    #[test]
    fn german_abbreviations() {
        check(
            "de",
            "Die sog. Übertragung, z. B. bei Dr. Sachs (s. d.), vergl. Jahrg. VI, u. dgl. |Sie endet.",
        );
        check("de", "Vgl. J. Sadger, Bd. 2, Nr. 3. |„Durch Hunger und durch Liebe.“ |Er schwieg.");
    }

    #[test]
    fn verse() {
        check("en", "Sing, goddess, the anger\nof Achilles. |Sing it,\nand be heard!");
        check(
            "fr",
            "Ô temps, suspends ton vol, et vous, heures propices,\nSuspendez votre cours\u{a0}! |Laissez-nous savourer",
        );
    }

    #[test]
    fn initials_and_labels() {
        check("fr", "J. Lacan et J.-P. Sartre et S. Freud parlent. |Ils rient.");
        check("en", "1. First comes this. |Then that.");
        check("en", "1.2.3. Title of it. |Text.");
        check("fr", "Figure 6.1. Gestionnaire de paquets");
        check("el", "Πίνακας 3.2. Απαιτήσεις συστήματος");
        check("en", "A.1. Preliminaries");
        check("fr", "Il parle de Louis XVI. |Il a tort.");
    }

    #[test]
    fn quotations_stay_whole() {
        check("fr", "« Bonjour\u{a0}! » |Il partit.");
        check("fr", "«\u{a0}Quoi\u{202f}?\u{a0}» dit-il. |Puis rien.");
        check("fr", "Il dit : « Va. Viens. » et partit. |Fin.");
        check("fr", "« Va. |Viens. » |Puis rien.");
        check("en", "“Stop!” she said. |“Why?” |He left.");
        check("en", "He left (see above. It matters.) at once. |Good.");
        check("en", "She said \"Stop.\" |Then left. |(It was late.) |Good night.");
        check("de", "Er sagte: »Halt!« |Dann ging er. |„Nein.“ |Gut.");
        check("el", "«Τι είναι;» ρώτησε. |«Ναι.» |Έφυγε.");
    }

    #[test]
    fn dialogue_with_dashes() {
        check("fr", "— Viens-tu\u{a0}? |— Non. |— Pourquoi\u{a0}? demanda-t-il. |— Parce que.");
        check("fr", "Il vint — enfin\u{a0}! — et partit.");
    }

    #[test]
    fn greek_question_mark_and_ano_teleia() {
        check("el", "Τι είναι; |Είναι Debian· ένα σύστημα. |Πώς; |«Έτσι» είπε.");
        check("el", "Πού πας; ρώτησε.");
        check("en", "One thing; Another thing.");
    }

    #[test]
    fn other_scripts() {
        check("zh", "你好。|再见。");
        check("ar", "ما هذا؟ |هذا كتاب.");
        check("en", "Party 🎉! |Then 👩\u{200d}👩\u{200d}👧. |Done.");
    }

    #[test]
    fn signs_alone_end_nothing() {
        check("en", "Done. →");
        check("en", "... Well.");
        check("en", ". |Then well.");
        assert!(sentences("", "fr").is_empty());
        assert!(sentences(" \u{a0} ", "fr").is_empty());
    }

    #[test]
    fn long_input_takes_no_long() {
        let began = std::time::Instant::now();
        for unit in ["a! ", "(A. ", "« A. B ", "x… ", ".)", "A", "J. ", "1. "] {
            let text = unit.repeat(100_000 / unit.len());
            sentences(&text, "el");
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn covers_the_text(
            text in "(\\PC|[A-Za-zéα.!?;:…»«“”()\\[\\]0-9 \u{a0}\u{202f}—-]|M\\. |etc\\. |κ\\.λπ\\. ){0,60}",
            language in "(fr|en|el|de|xx)",
        ) {
            let found = sentences(&text, &language);
            let mut at = 0;
            for range in &found {
                prop_assert!(range.start >= at && range.end > range.start);
                prop_assert!(text[at..range.start].trim().is_empty());
                let slice = &text[range.clone()];
                prop_assert_eq!(slice.trim(), slice);
                at = range.end;
            }
            prop_assert!(text[at..].trim().is_empty());
        }
    }
}
