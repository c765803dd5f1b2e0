//! References: BibTeX, CSL-JSON, RIS, and a line of plain text.

use serde::Serialize;
use serde_json::{Value, json};

use crate::text::plain;

/// Something that can be cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Reference {
    /// Letters, digits and hyphens.
    pub(crate) key: String,
    /// "webpage" for what this site made, "document" for what it quotes.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// What it is a part of.
    pub(crate) container: String,
    pub(crate) author: Option<String>,
    /// As the source puts it, or an ISO date.
    pub(crate) date: Option<String>,
    pub(crate) edition: Option<String>,
    /// Pages, where the source has any.
    pub(crate) pages: Option<String>,
    pub(crate) language: String,
    pub(crate) licence: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) url: Option<String>,
}

impl Reference {
    /// The first year in the date.
    fn year(&self) -> Option<&str> {
        self.date.as_deref()?.split(|c: char| !c.is_ascii_digit()).find(|part| part.len() == 4)
    }

    /// Year, month and day of an ISO date; else the year.
    fn parts(&self) -> Option<Vec<u32>> {
        let date = self.date.as_deref()?;
        let numbers: Vec<u32> = date.split('-').map_while(|part| part.parse().ok()).collect();
        if numbers.len() == 3 && date.len() == 10 {
            return Some(numbers);
        }
        Some(vec![self.year()?.parse().ok()?])
    }
}

/// A BibTeX file.
pub(crate) fn bibtex(references: &[Reference]) -> String {
    let mut text = String::new();
    for reference in references {
        let kind = if reference.author.is_some() { "book" } else { "misc" };
        let kind = if reference.kind == "webpage" { "misc" } else { kind };
        text += &format!("@{kind}{{{},\n", reference.key);
        let mut field = |name: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                text += &format!("  {name} = {{{}}},\n", bibtex_text(value));
            }
        };
        field("title", Some(&reference.title));
        field(
            "author",
            reference.author.as_deref().map(|author| format!("{{{author}}}")).as_deref(),
        );
        let host = if kind == "book" { "series" } else { "howpublished" };
        field(host, Some(&reference.container));
        field("year", reference.year());
        field("edition", reference.edition.as_deref());
        field("pages", reference.pages.as_deref());
        field("language", Some(&reference.language));
        let note: Vec<&str> = [&reference.note, &reference.licence]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        field("note", Some(&note.join("; ")));
        // An address is for a program: escaped, it would lead elsewhere.
        if let Some(url) = &reference.url {
            text += &format!("  url = {{{}}},\n", url.replace(['{', '}'], ""));
        }
        text += "}\n";
    }
    text
}

/// BibTeX's own signs, so that they are printed and not obeyed. Braces around an author are ours.
fn bibtex_text(value: &str) -> String {
    let (open, inner, close) = match value.strip_prefix('{').and_then(|v| v.strip_suffix('}')) {
        Some(inner) => ("{", inner, "}"),
        None => ("", value, ""),
    };
    let mut escaped = open.to_owned();
    for c in inner.chars() {
        match c {
            '\\' => escaped += "\\textbackslash{}",
            '{' => escaped += "\\{",
            '}' => escaped += "\\}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '&' | '%' | '$' | '#' | '_' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped + close
}

/// A file in the JSON of the Citation Style Language.
pub(crate) fn csl_json(references: &[Reference]) -> String {
    let items: Vec<Value> = references
        .iter()
        .map(|reference| {
            let mut item = json!({
                "id": reference.key,
                "type": reference.kind,
                "title": reference.title,
                "container-title": reference.container,
                "language": reference.language,
            });
            let mut set = |name: &str, value: Option<Value>| {
                if let (Some(value), Some(item)) = (value, item.as_object_mut()) {
                    item.insert(name.to_owned(), value);
                }
            };
            let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
            set("author", reference.author.as_ref().map(|author| json!([{ "literal": author }])));
            set("issued", reference.parts().map(|parts| json!({ "date-parts": [parts] })));
            set("edition", text(&reference.edition));
            set("page", text(&reference.pages));
            set("note", text(&reference.note));
            set("license", text(&reference.licence));
            set("URL", text(&reference.url));
            item
        })
        .collect();
    serde_json::to_string_pretty(&items).unwrap_or_default() + "\n"
}

/// A RIS file.
pub(crate) fn ris(references: &[Reference]) -> String {
    let mut text = String::new();
    for reference in references {
        let mut line = |tag: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                // A line end would begin another field.
                text += &format!("{tag}  - {}\r\n", plain(value));
            }
        };
        line("TY", Some(if reference.kind == "webpage" { "ELEC" } else { "GEN" }));
        line("TI", Some(&reference.title));
        line("T2", Some(&reference.container));
        line("AU", reference.author.as_deref());
        line("PY", reference.year());
        if let Some([year, month, day]) = reference.parts().as_deref() {
            line("DA", Some(&format!("{year:04}/{month:02}/{day:02}")));
        }
        line("ET", reference.edition.as_deref());
        line("SP", reference.pages.as_deref());
        line("LA", Some(&reference.language));
        line("N1", reference.note.as_deref());
        line("UR", reference.url.as_deref());
        text += "ER  - \r\n";
    }
    text
}

/// One line for a footnote.
pub(crate) fn line(reference: &Reference) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(reference.author.clone());
    parts.push(reference.title.clone());
    parts.push(reference.container.clone());
    parts.extend(reference.edition.clone());
    parts.extend(reference.date.clone());
    parts.extend(reference.pages.clone());
    parts.extend(reference.note.clone());
    parts.extend(reference.url.clone());
    parts.retain(|part| !part.trim().is_empty());
    parts.dedup();
    let mut line = String::new();
    for part in parts {
        if !line.is_empty() {
            line += if line.ends_with(['.', '?', '!', ';']) { " " } else { ". " };
        }
        line += part.trim();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Reference {
        Reference {
            key: "gardens-prune".into(),
            kind: "document",
            title: "Roses & {thorns} 100%".into(),
            container: "The book".into(),
            author: Some("A. Gardener\nand B. Weeds".into()),
            date: Some("printed 1911".into()),
            edition: None,
            pages: Some("12–13".into()),
            language: "en".into(),
            licence: Some("CC0".into()),
            note: None,
            url: Some("https://a.example/x_y%20z#a:~:text=b".into()),
        }
    }

    #[test]
    fn bibtex_prints_its_own_signs() {
        let text = bibtex(&[reference()]);
        assert!(text.starts_with("@book{gardens-prune,\n"), "{text}");
        assert!(text.contains("title = {Roses \\& \\{thorns\\} 100\\%}"), "{text}");
        assert!(text.contains("url = {https://a.example/x_y%20z#a:~:text=b}"), "{text}");
        assert!(text.contains("year = {1911}"), "{text}");
        let opens = text.replace("\\{", "").matches('{').count();
        assert_eq!(opens, text.replace("\\}", "").matches('}').count());
    }

    #[test]
    fn csl_has_dates_in_parts() {
        let mut answer = reference();
        answer.date = Some("2026-11-30".into());
        let items: Value = serde_json::from_str(&csl_json(&[reference(), answer])).unwrap();
        assert_eq!(items[0]["issued"]["date-parts"][0], json!([1911]));
        assert_eq!(items[1]["issued"]["date-parts"][0], json!([2026, 11, 30]));
        assert_eq!(items[0]["author"][0]["literal"], "A. Gardener\nand B. Weeds");
    }

    #[test]
    fn ris_has_a_field_a_line() {
        let text = ris(&[reference()]);
        for line in text.lines() {
            assert!(line.get(2..6) == Some("  - "), "{line}");
        }
        assert!(text.contains("AU  - A. Gardener and B. Weeds\r\n"), "{text}");
        assert!(text.ends_with("ER  - \r\n"));
    }

    #[test]
    fn a_line_ends_each_part_once() {
        let mut reference = reference();
        reference.title = "Why?".into();
        reference.author = None;
        assert!(line(&reference).starts_with("Why? The book. printed 1911. 12–13."));
    }
}
