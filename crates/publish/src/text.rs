//! What may stand in a page, and how.

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
    fn directions() {
        assert_eq!(direction("he"), "rtl");
        assert_eq!(direction("ar-EG"), "rtl");
        assert_eq!(direction("he-Latn"), "ltr");
        assert_eq!(direction("el"), "ltr");
    }
}
