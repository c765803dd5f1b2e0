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
            let prose = matches!(
                block.kind,
                BlockKind::Paragraph | BlockKind::Item | BlockKind::Note | BlockKind::Verse
            );
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

/// Characters of a text that are looked at to tell its language.
const LOOKED_AT: usize = 20_000;

/// The language that a whole text is in, and how sure that is, in per cent.
pub(crate) fn guess(text: &str) -> (String, u8) {
    let end = crate::sentence::floor(text, LOOKED_AT);
    let Some(found) = whatlang::detect(&text[..end]) else { return ("und".to_owned(), 0) };
    let code = found.lang().code();
    let mut pairs = TWO_LETTERS.split_whitespace();
    let short = std::iter::from_fn(|| Some((pairs.next()?, pairs.next()?)));
    let tag = short.into_iter().find(|(long, _)| *long == code).map_or(code, |(_, short)| short);
    // The detector is surer than it should be where there is little to go by.
    let enough = text[..end].chars().filter(|c| c.is_alphabetic()).count() as f64 / 400.0;
    (tag.to_owned(), (found.confidence() * enough.min(1.0) * 100.0).round() as u8)
}

/// The detector's three letters, and the two of BCP 47, for those languages that have them.
const TWO_LETTERS: &str = "afr af amh am ara ar aze az bel be ben bn bul bg cat ca ces cs cmn zh \
    cym cy dan da deu de ell el eng en epo eo est et fin fi fra fr guj gu heb he hin hi hrv hr \
    hun hu hye hy ind id ita it jav jv jpn ja kan kn kat ka khm km kor ko lat la lav lv lit lt \
    mal ml mar mr mkd mk mya my nep ne nld nl nob nb ori or pan pa pes fa pol pl por pt ron ro \
    rus ru sin si slk sk slv sl sna sn spa es srp sr swe sv tam ta tel te tgl tl tha th tuk tk \
    tur tr ukr uk urd ur uzb uz vie vi yid yi zul zu";

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
    fn a_text_tells_its_language_and_how_surely() {
        let german =
            "Die Traumdeutung ist in Wirklichkeit die Königsstraße zur Kenntnis des Unbewußten. ";
        let (tag, long) = guess(&german.repeat(12));
        let (_, short) = guess("Der Traum.");
        assert_eq!(tag, "de");
        assert!(long > 80 && short < 20, "{long} {short}");
        assert_eq!(guess("12 34"), ("und".to_owned(), 0));
    }

    #[test]
    fn questions_in_the_three_languages_are_told_apart() {
        let allowed = ["en", "fr", "el"].map(str::to_owned);
        assert_eq!(detect("D'où vient le nom de Debian ?", &allowed), "fr");
        assert_eq!(detect("What does the free software directory contain?", &allowed), "en");
        assert_eq!(detect("Ποιος έφτιαξε τον πυρήνα του Linux;", &allowed), "el");
        assert_eq!(detect("???", &allowed), "en");
    }
}
