//! From files of every format to passages that can be shown with their places, with the real program.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use support::{Archive, florilegium, models, stderr, stdout};

/// A PDF with these pages, one line of text each.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let mut kids = String::new();
    for text in pages {
        let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        let page = objects.len() + 1;
        kids += &format!("{page} 0 R ");
        objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>", page + 1));
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len());
    let mut out = "%PDF-1.4\n".to_owned();
    let mut table = String::new();
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", out.len());
        out += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let count = objects.len() + 1;
    out += &format!(
        "xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n",
        out.len()
    );
    out.into_bytes()
}

fn read_pdf(bytes: &[u8]) -> Output {
    let mut command = florilegium(Path::new("."));
    command.arg("read-pdf").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A process that has failed early reads nothing more.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

#[test]
fn the_process_that_reads_a_pdf_gives_its_pages_or_says_what_is_wrong() {
    let output = read_pdf(&pdf(&["One page.", "Another page."]));
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let (greeting, text) = text.split_once('\n').unwrap();
    assert_eq!(greeting, "florilegium-pdf/1");
    let pages: Vec<&str> = text.split_terminator('\u{c}').map(str::trim).collect();
    assert_eq!(pages, ["One page.", "Another page."]);
    for bad in [&b"%PDF-1.4 nothing"[..], b"", &pdf(&["x"])[..200]] {
        let output = read_pdf(bad);
        assert!(!output.status.success());
        assert!(!stderr(&output).trim().is_empty());
    }
}

/// Damaged files end in a text, an error or a dead process: never in a hang, nor here. For longer than
/// a moment with `FLORILEGIUM_FUZZ_SECONDS`.
#[test]
fn hostile_pdf() {
    let seconds = std::env::var("FLORILEGIUM_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = seconds.map(Duration::from_secs);
    let whole = pdf(&["One page of text.", "Another page of text.", "(nested) (and) more"]);
    let tokens: [&[u8]; 12] = [
        b"0 R",
        b"endobj",
        b"<<",
        b">>",
        b"[",
        b"/Kids [2 0 R]",
        b"/Length 999999999",
        b"/Filter /FlateDecode",
        b"stream\n",
        b"-1",
        b"99999999999999999999",
        b"/Parent 2 0 R",
    ];
    let start = Instant::now();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let (mut inputs, mut read, mut slowest) = (0, 0, Duration::ZERO);
    while time.map_or(inputs < 20, |time| start.elapsed() < time) {
        let mut bytes = whole.clone();
        for _ in 0..1 + random(6) {
            let at = random(bytes.len());
            let token = tokens[random(tokens.len())];
            // As often as not nothing moves, so that the file's table still leads to its objects.
            let cut = if random(2) == 0 { token.len() } else { random(12) };
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, token.iter().copied());
        }
        let began = Instant::now();
        let output = read_pdf(&bytes);
        slowest = slowest.max(began.elapsed());
        inputs += 1;
        read += usize::from(output.status.success());
    }
    println!(
        "pdf: {inputs} inputs, {read} of them read, the slowest in {slowest:?}, {:?}",
        start.elapsed()
    );
    assert!(slowest < Duration::from_secs(150), "the limit of time is kept");
}

const TEI: &str = "<TEI xmlns=\"http://www.tei-c.org/ns/1.0\"><teiHeader><fileDesc><titleStmt><title>Libidotheorie</title><author>Freud</author></titleStmt><sourceDesc><bibl><date when=\"YEAR\"/></bibl></sourceDesc></fileDesc></teiHeader>
<text xml:lang=\"de\"><body><pb n=\"1\"/><fw type=\"pageNum\">296</fw><p>Die Psychoanalyse, die bald erkannte, daß sie alles seelische Ge<lb break=\"no\"/>schehen über dem Kräftespiel der<lb/>
elementaren Triebe aufbauen müsse<note>Vgl. Moll.</note>, sah sich in der WORD Lage.</p>
<pb n=\"2\"/><fw type=\"pageNum\">297</fw><p>Es herrschte vollste Willkür, und jeder Psychologe nahm solche Triebe an.</p></body></text></TEI>";

#[test]
fn texts_of_all_formats_are_read_reported_and_shown_in_their_places() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.5);
    let folder = archive.path("corpus/more");
    fs::create_dir_all(&folder).unwrap();
    let tei = |year: &str, word: &str| TEI.replace("YEAR", year).replace("WORD", word);
    for (name, bytes) in [
        ("freud-1923.xml", tei("1923", "übelsten").into_bytes()),
        ("freud-1926.xml", tei("1926", "schlimmsten").into_bytes()),
        (
            "book.pdf",
            pdf(&["A printed page that is long enough to be read.", "And another one behind it."]),
        ),
        ("scan.pdf", pdf(&["", ""])),
        ("notes.md", b"# Notes\n\nA thought[^1].\n\n[^1]: Its note.\n".to_vec()),
        (
            "rows.jsonl",
            b"{\"id\": \"r1\", \"text\": \"A record.\", \"url\": \"https://example.org/r1\"}\n"
                .to_vec(),
        ),
        ("nul.txt", b"A text\nwith a \0 in it.".to_vec()),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let mut pipeline = fs::read_to_string(archive.pipeline()).unwrap();
    pipeline += "[[collection]]\nid = \"more\"\ntitle = \"More\"\npath = \"corpus/more\"\nlanguage = \"auto\"\nrole = \"search\"\nlicence = \"CC0\"\nurl = \"https://example.org/{path}#{anchor}\"\n";
    fs::write(archive.pipeline(), pipeline).unwrap();

    let output = archive.florilegium(&["ingest", "--texts-only", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let more = &report["collections"][3]["report"];
    assert_eq!(more["documents"], 6);
    assert_eq!(more["skipped"][0]["path"], "scan.pdf");
    assert!(more["skipped"][0]["reason"].as_str().unwrap().contains("scan"));
    let nul = more["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|warning| warning["path"] == "nul.txt" && warning["line"] == 2);
    assert!(nul.is_some(), "{more}");

    let table = stdout(&archive.florilegium(&["ingest", "--texts-only"]));
    assert!(
        table.contains("more: nul.txt:2: warning:") && table.contains("0 files read"),
        "{table}"
    );
    let strict = archive.florilegium(&["ingest", "--texts-only", "--strict"]);
    assert_eq!(strict.status.code(), Some(2));

    let show = |id: &str, more: &[&str]| {
        let output = archive.florilegium(&[&["show", id, "--json"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str::<serde_json::Value>(&stdout(&output)).unwrap()
    };
    let whole = show("more/freud-1923.xml", &[]);
    let text = whole["text"].as_str().unwrap();
    assert!(text.contains(
        "seelische Geschehen über dem Kräftespiel der elementaren Triebe aufbauen müsse, sah"
    ));
    assert_eq!(whole["source"]["first_page"], "296");
    assert_eq!(whole["source"]["last_page"], "297");
    assert_eq!(whole["notes"][0], "Vgl. Moll.");
    assert_eq!((whole["date"].as_str(), whole["language"].as_str()), (Some("1923"), Some("de")));
    let start = text.find("elementaren").unwrap();
    let part = show("more/freud-1923.xml", &["--range", &format!("{start}..{}", start + 11)]);
    assert_eq!(part["text"], "elementaren");
    assert_eq!(part["source"]["first_line"], 3);
    assert_eq!(show("more/book.pdf", &[])["source"]["last_page"], "2");
    assert_eq!(show("more/rows.jsonl/r1", &[])["source"]["link"], "https://example.org/r1");
    let outside = archive.florilegium(&["show", "more/book.pdf", "--range", "0..100000"]);
    assert!(!outside.status.success() && stderr(&outside).contains("bytes"));
    let unknown = archive.florilegium(&["show", "more/none"]);
    assert!(!unknown.status.success() && stderr(&unknown).contains("more/none"));
}
