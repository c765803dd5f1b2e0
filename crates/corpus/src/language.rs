//! Which language a text is in.

use whatlang::{Detector, Lang};

use crate::document::{BlockKind, Document};

/// BCP 47 tags and the detector's names for them.
const KNOWN: [(&str, Lang); 8] = [
    ("en", Lang::Eng),
    ("fr", Lang::Fra),
    ("el", Lang::Ell),
    ("de", Lang::Deu),
    ("es", Lang::Spa),
    ("it", Lang::Ita),
    ("pt", Lang::Por),
    ("ru", Lang::Rus),
];

/// A block with fewer letters than this is too short to be told apart from its neighbours.
const ENOUGH_LETTERS: usize = 40;

/// The language of `text` among `allowed`; the first of these when it cannot be told. Detection is
/// weak on short texts, so a caller that knows the language should say it.
pub fn detect(text: &str, allowed: &[String]) -> String {
    detector(allowed)
        .and_then(|detector| tag(detector.detect_lang(text)?))
        .map(str::to_owned)
        .or_else(|| allowed.first().cloned())
        .unwrap_or_else(|| "en".to_owned())
}

/// The language of each block of a document: the document's own, unless a block of prose is plainly
/// in another one of `allowed`. Translations are often unfinished, paragraph by paragraph. What is
/// no prose, or too short to tell, goes with the block before it.
pub(crate) fn of_blocks(document: &Document, allowed: &[String]) -> Vec<String> {
    let own = KNOWN.iter().any(|(tag, _)| *tag == document.language);
    let mut among = allowed.to_vec();
    if !among.contains(&document.language) {
        among.push(document.language.clone());
    }
    let detector = if own && among.len() > 1 { detector(&among) } else { None };
    let mut current = document.language.clone();
    let mut headings: Option<&[String]> = None;
    document
        .blocks
        .iter()
        .map(|block| {
            if headings != Some(&block.headings) {
                headings = Some(&block.headings);
                current.clone_from(&document.language);
            }
            let prose =
                matches!(block.kind, BlockKind::Paragraph | BlockKind::Item | BlockKind::Note);
            let text = document.slice(&block.range).unwrap_or_default();
            let letters = text.chars().filter(|c| c.is_alphabetic()).count();
            if let Some(detector) = &detector
                && prose
                && letters >= ENOUGH_LETTERS
                && let Some(tag) = detector.detect_lang(text).and_then(tag)
            {
                current = tag.to_owned();
            }
            current.clone()
        })
        .collect()
}

fn detector(allowed: &[String]) -> Option<Detector> {
    let candidates: Vec<Lang> = KNOWN
        .iter()
        .filter(|(tag, _)| allowed.iter().any(|allowed| allowed == tag))
        .map(|(_, lang)| *lang)
        .collect();
    (!candidates.is_empty()).then(|| Detector::with_allowlist(candidates))
}

fn tag(lang: Lang) -> Option<&'static str> {
    KNOWN.iter().find(|(_, known)| *known == lang).map(|(tag, _)| *tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_in_the_three_languages_are_told_apart() {
        let allowed = ["en", "fr", "el"].map(str::to_owned);
        assert_eq!(detect("D'où vient le nom de Debian ?", &allowed), "fr");
        assert_eq!(detect("What does the free software directory contain?", &allowed), "en");
        assert_eq!(detect("Ποιος έφτιαξε τον πυρήνα του Linux;", &allowed), "el");
        assert_eq!(detect("???", &allowed), "en");
    }
}
