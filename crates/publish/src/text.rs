//! What may stand in a page, and how.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays as it is in a text directive. `-`, `,` and `&` part its pieces, so they never do.
const DIRECTIVE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~');
/// A quotation longer than this many characters is named by its first and last words.
const WHOLE: usize = 90;
/// How many words name its beginning, and its end.
const WORDS: usize = 5;

/// A text that is not a quotation, without the characters that cannot be seen and change how the
/// text after them is shown: control characters and direction overrides.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .filter(|c| {
            !c.is_control() && !matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
        })
        .collect()
}

/// A link target, if it is one that a page may lead to: http, https, or a place on the same site.
/// Browsers ignore blanks and control characters within a scheme, so none is let through.
pub(crate) fn link(url: &str) -> Option<&str> {
    if url.is_empty() || url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return None;
    }
    let colon = url.find(':');
    let path = url.find(['/', '?', '#']);
    let scheme = match (colon, path) {
        (Some(colon), Some(path)) if path < colon => None,
        (Some(colon), _) => url.get(..colon),
        (None, _) => None,
    };
    match scheme {
        Some(scheme)
            if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") =>
        {
            None
        }
        Some(_) => Some(url),
        None if url.starts_with("//") => None,
        None => Some(url),
    }
}

/// `url` with a text directive, so that a browser marks the quotation in the original; the anchor
/// before it serves browsers that know none.
pub(crate) fn text_fragment(url: &str, quotation: &str) -> String {
    let (base, anchor) = url.split_once('#').unwrap_or((url, ""));
    // Someone else's directive would be taken for a part of ours.
    let anchor = anchor.split_once(":~:").map_or(anchor, |(anchor, _)| anchor);
    let encode = |words: &[&str]| utf8_percent_encode(&words.join(" "), DIRECTIVE).to_string();
    // A directive's pieces may not run from one block into the next.
    let lines: Vec<&str> = quotation.lines().filter(|line| !line.trim().is_empty()).collect();
    let words =
        |line: &&str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let (Some(first), Some(last)) = (lines.first().map(words), lines.last().map(words)) else {
        return url.to_owned();
    };
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let last: Vec<&str> = last.iter().map(String::as_str).collect();
    let short = lines.len() == 1 && quotation.chars().count() <= WHOLE;
    let text = if short || (lines.len() == 1 && first.len() <= 2 * WORDS) {
        encode(&first)
    } else {
        let head = first.get(..WORDS).unwrap_or(&first);
        let tail = last.get(last.len().saturating_sub(WORDS)..).unwrap_or(&last);
        format!("{},{}", encode(head), encode(tail))
    };
    format!("{base}#{anchor}:~:text={text}")
}

/// Escapes for Markdown: the text is shown, and nothing in it is obeyed.
pub(crate) fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    let mut line_start = true;
    for c in text.chars() {
        let always = matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '|' | '~' | '!'
        );
        let at_start = line_start && matches!(c, '+' | '-' | '=' | ':');
        // "1." and "1)" begin a list.
        let after_number = matches!(c, '.' | ')')
            && escaped.rsplit('\n').next().is_some_and(|line| {
                let line = line.trim_start();
                !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())
            });
        if always || at_start || after_number {
            escaped.push('\\');
        }
        escaped.push(c);
        line_start = c == '\n' || (line_start && c == ' ');
    }
    escaped
}

/// Escapes for HTML, in text and in attribute values, and changes nothing else: unescaped, and
/// also parsed by a browser, the result is `text`. A carriage return is escaped because parsers
/// turn a bare one into a line feed.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\r' => escaped.push_str("&#13;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The inverse of [`escape`].
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        plain.push_str(before);
        let known = [
            ("&amp;", '&'),
            ("&lt;", '<'),
            ("&gt;", '>'),
            ("&quot;", '"'),
            ("&#39;", '\''),
            ("&#13;", '\r'),
        ];
        match known.iter().find_map(|(name, c)| Some((entity.strip_prefix(name)?, c))) {
            Some((after, c)) => {
                plain.push(*c);
                rest = after;
            }
            None => {
                plain.push('&');
                rest = &entity[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// The writing direction of a language.
pub(crate) fn direction(language: &str) -> &'static str {
    const RIGHT_TO_LEFT: [&str; 12] =
        ["ar", "arc", "ckb", "dv", "fa", "he", "nqo", "ps", "sd", "syr", "ug", "ur"];
    let primary = language.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let other_script = language.split('-').any(|part| part.eq_ignore_ascii_case("latn"));
    if !other_script && (RIGHT_TO_LEFT.contains(&primary.as_str()) || primary == "yi") {
        "rtl"
    } else {
        "ltr"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_web_pages_only() {
        for good in [
            "https://a.example/b:c?d#e",
            "HTTP://a.example",
            "/source/1#p",
            "a/b",
            "#here",
            "?q=a:b",
        ] {
            assert_eq!(link(good), Some(good), "{good}");
        }
        for bad in [
            "",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            " javascript:alert(1)",
            "java\nscript:alert(1)",
            "java\tscript:x",
            "data:text/html,x",
            "vbscript:x",
            "//evil.example",
            "\\\\evil.example",
            "https://a b",
            "\u{1}javascript:x",
            "file:///etc/passwd",
        ] {
            assert_eq!(link(bad), None, "{bad}");
        }
    }

    #[test]
    fn escaping_is_undone_exactly() {
        for text in
            ["", "a & b", "<p title=\"x\">'</p>", "&amp;lt;", "\r\n", "&", "&#39;&", "«é»", "]]>"]
        {
            let escaped = escape(text);
            assert!(!escaped.contains(['<', '>', '"', '\'', '\r']));
            assert_eq!(unescape(&escaped), text);
        }
    }

    #[test]
    fn overrides_are_taken_out_of_titles() {
        assert_eq!(plain("a\u{202E}b\u{0}c\u{2066}d\ne"), "abcd e");
        assert_eq!(plain("شكرا\u{200F}"), "شكرا\u{200F}");
    }

    #[test]
    fn fragments_name_the_text_and_keep_the_anchor() {
        for (url, quotation, expected) in [
            (
                "https://a.example/b#c",
                "Dead wood, well-aged & dry",
                "https://a.example/b#c:~:text=Dead%20wood%2C%20well%2Daged%20%26%20dry",
            ),
            ("https://a.example/b", "Été", "https://a.example/b#:~:text=%C3%89t%C3%A9"),
            ("https://a.example/b#c:~:text=other", "x", "https://a.example/b#c:~:text=x"),
            (
                "https://a.example/b#c",
                "first line\n\n- second line",
                "https://a.example/b#c:~:text=first%20line,%2D%20second%20line",
            ),
            ("https://a.example/b#c", " \n", "https://a.example/b#c"),
        ] {
            assert_eq!(text_fragment(url, quotation), expected);
        }
        let long = (0..40).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(
            text_fragment("u#a", &long),
            "u#a:~:text=word0%20word1%20word2%20word3%20word4,word35%20word36%20word37%20word38%20word39"
        );
    }

    #[test]
    fn markdown_is_shown_and_not_obeyed() {
        for (text, escaped) in [
            ("<script>*a*</script>", "\\<script\\>\\*a\\*\\</script\\>"),
            ("- a\n1. b\n# c", "\\- a\n1\\. b\n\\# c"),
            ("[x](javascript:y)", "\\[x\\](javascript:y)"),
            ("3.5 to 4", "3\\.5 to 4"),
            ("plain-text, really.", "plain-text, really."),
        ] {
            assert_eq!(markdown(text), escaped);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_fragment_is_one_directive(quotation in "\\PC{0,120}") {
            let url = text_fragment("https://a.example/b#c", &quotation);
            if let Some((_, text)) = url.split_once("#c:~:text=") {
                proptest::prop_assert!(!text.contains(['-', '&', '#', ' ', '"']));
                proptest::prop_assert!(text.matches(',').count() <= 1);
            } else {
                proptest::prop_assert!(quotation.trim().is_empty());
            }
        }

        #[test]
        fn unescaping_undoes_escaping(text in "\\PC{0,80}") {
            proptest::prop_assert_eq!(unescape(&escape(&text)), text);
        }
    }

    #[test]
    fn directions() {
        assert_eq!(direction("he"), "rtl");
        assert_eq!(direction("ar-EG"), "rtl");
        assert_eq!(direction("he-Latn"), "ltr");
        assert_eq!(direction("el"), "ltr");
    }
}
