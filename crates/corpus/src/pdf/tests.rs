use super::*;

/// A PDF with these pages, one line of text each.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let mut kids = Vec::new();
    for text in pages {
        let lines: String = text.lines().map(|line| format!("({line}) Tj 0 -14 Td ")).collect();
        let stream = format!("BT /F1 12 Tf 72 720 Td {lines}ET");
        let page = objects.len() + 1;
        kids.push(format!("{page} 0 R"));
        objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>", page + 1));
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len());
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend(format!("{} 0 obj\n{object}\nendobj\n", number + 1).bytes());
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    for place in &places {
        out.extend(format!("{place:010} 00000 n \n").bytes());
    }
    out.extend(
        format!(
            "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
            places.len() + 1
        )
        .bytes(),
    );
    out
}

#[test]
fn pages_are_places() {
    let pages = pages(&pdf(&["The first page\ngoes on", "to the second. Done."])).unwrap();
    assert_eq!(pages.len(), 2);
    let document =
        content(&(pages.join("\u{c}") + "\u{c}")).unwrap().into_document("c", "a.pdf", "en");
    assert_eq!(document.text, "The first page goes on to the second. Done.");
    let place = document.place(&(0..document.text.len())).unwrap();
    assert_eq!(place.pages, Some(("1".into(), "2".into())));
}

#[test]
fn a_scan_is_said_to_be_one() {
    assert!(content("\u{c}\n\u{c} \u{c}").unwrap_err().contains("scan"));
    let thin = content(&format!("stamp{}", "\u{c}".repeat(30))).unwrap();
    assert_eq!(thin.warnings.len(), 1);
}

#[test]
fn running_heads_and_page_numbers_are_no_text() {
    let pages: String = (1..=6)
        .map(|number| {
            format!("ON METHOD {number}\n\nSentence {}.\n\n{number}\n\u{c}", "word ".repeat(number))
        })
        .collect();
    let text = content(&pages).unwrap().text;
    assert!(!text.contains("METHOD") && !text.contains('6'), "{text}");
    assert_eq!(text.matches("Sentence").count(), 6);
}

#[cfg(unix)]
#[test]
fn a_process_that_hangs_fails_or_floods_is_an_error() {
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        text_from(command, &[b'x'; 1 << 20], Duration::from_millis(300))
    };
    assert!(run("exec sleep 60").unwrap_err().contains("more than"));
    assert!(run("echo oh no >&2; exit 3").unwrap_err().contains("oh no"));
    assert!(run("kill -9 $$").unwrap_err().contains("signal"));
    assert_eq!(run("cat >/dev/null; printf 'a\\fb\\f'").unwrap(), "a\u{c}b\u{c}");
    assert!(run("printf '\\377'").unwrap_err().contains("no text"));
    let missing = text_from(Command::new("/no/such/program"), b"", TIME).unwrap_err();
    assert!(missing.contains("start"), "{missing}");
}
