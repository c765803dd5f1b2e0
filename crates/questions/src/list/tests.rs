use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

const KNOWN: Known<'static, &str> =
    Known { languages: &["en", "fr", "el"], collections: &["handbook-en", "handbook-fr"] };

fn load(bytes: &[u8]) -> Result<QuestionList, QuestionErrors> {
    QuestionList::parse(bytes, &KNOWN, Faults::new(PathBuf::from("list.csv")))
}

fn messages(bytes: &[u8]) -> Vec<String> {
    load(bytes).unwrap_err().faults().iter().map(ToString::to_string).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const PLAIN: &str = "\
id,lang,question,variants,tags,status,priority,note,collections
what-apt,en,What is APT?,Tell me what APT is | what is apt,apt|tools,published,5,,handbook-en
quoi,fr,\"Qu’est-ce que dpkg, au juste ?\",,,draft,,\"two

paragraphs, \"\"quoted\"\"\",
ti,el,Τι είναι το APT;,,,,-1,,
,,,,,,,,
";

fn plain() -> QuestionList {
    load(PLAIN.as_bytes()).unwrap()
}

#[test]
fn a_plain_list_is_read_as_it_stands() {
    let list = plain();
    let [apt, quoi, ti] = list.questions() else { panic!("{list:?}") };
    assert_eq!(apt.id, "what-apt");
    assert_eq!(apt.variants, ["Tell me what APT is"], "a variant that adds nothing is dropped");
    assert_eq!(apt.tags, ["apt", "tools"]);
    assert_eq!(apt.collections, ["handbook-en"]);
    assert_eq!((apt.priority, apt.status), (5, Status::Published));
    assert_eq!(quoi.question, "Qu’est-ce que dpkg, au juste ?");
    assert_eq!(quoi.note, "two\n\nparagraphs, \"quoted\"");
    assert_eq!((quoi.status, quoi.priority), (Status::Draft, 0));
    assert_eq!((ti.status, ti.priority), (Status::Published, -1));
}

#[test]
fn a_question_is_found_by_any_of_its_wordings() {
    let list = plain();
    assert_eq!(list.find("en", "tell me, what APT is").unwrap().id, "what-apt");
    assert_eq!(list.find("el", "τι ειναι το apt").unwrap().id, "ti");
    assert_eq!(list.find("fr", "What is APT?"), None);
    assert_eq!(list.find("fr", "qu'est-ce que dpkg au juste"), None, "a draft");
}

#[test]
fn encodings_and_separators_make_no_difference() {
    let plain = plain();
    let mut bom = b"\xEF\xBB\xBF".to_vec();
    bom.extend(PLAIN.bytes());
    assert_eq!(load(&bom).unwrap(), plain);
    assert_eq!(load(PLAIN.replace('\n', "\r\n").as_bytes()).unwrap(), plain);
    let units: Vec<u16> = PLAIN.encode_utf16().collect();
    let little: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(units.iter().flat_map(|u| u.to_le_bytes())).collect();
    let big: Vec<u8> =
        [0xFE, 0xFF].into_iter().chain(units.iter().flat_map(|u| u.to_be_bytes())).collect();
    assert_eq!(load(&little).unwrap(), plain);
    assert_eq!(load(&big).unwrap(), plain);
    assert!(messages(&little[..little.len() - 1])[0].contains("half a character"));

    for separator in [';', '\t'] {
        let text =
            format!("id{separator}Lang{separator}question\na{separator}en{separator}Why, then?\n");
        assert_eq!(load(text.as_bytes()).unwrap().questions()[0].question, "Why, then?");
    }
}

#[test]
fn every_fault_comes_in_one_pass_with_row_column_and_remedy() {
    let messages = messages(
        "id,lang,question,status,priority,collections\n\
         a,en,What is APT?,published,1,\n\
         a,xx,,gone,high,nowhere\n\
         B!,fr,\"...\",draft,,\n\
         c,en,\"what is, apt\",,,\n\
         d,en,x\u{202E}y,,,\n\
         e,en\n\
         f,en,Too,many,,,\n"
            .as_bytes(),
    );
    let expected = [
        "list.csv:3: lang: the language \"xx\" is not one of this archive's; use one of: en, fr, el",
        "list.csv:3: question: the question is empty; write it, or remove the row",
        "list.csv:3: status: the status \"gone\" is not known; use one of: draft, published, retired",
        "list.csv:3: priority: the priority \"high\" is not a whole number; write digits only, or leave it empty",
        "list.csv:3: collections: the collection \"nowhere\" is not one of this archive's; use one of: handbook-en, handbook-fr",
        "list.csv:3: id: the id \"a\" is already in row 2; give one of the two another id",
        "list.csv:4: id: the id \"B!\" has other characters than a to z, 0 to 9 and -; write it with these only, for example how-to-install",
        "list.csv:4: question: \"...\" holds nothing but punctuation; write it out in words, or remove it",
        "list.csv:5: question: \"what is, apt\" is the same question as in row 2: case, accents and punctuation do not count; remove one of the two, or word it differently",
        "list.csv:6: question: the invisible control character U+202E; remove it, or type the text anew",
        "list.csv:7: the row has 2 fields, the header has 6; add or remove separators; put a field that holds the separator in quotation marks",
        "list.csv:8: the row has 7 fields, the header has 6; add or remove separators; put a field that holds the separator in quotation marks",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn faults_of_the_header() {
    let found = messages(b"id,question,Colour,id,\na,Why?,red,b,\n");
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].starts_with("list.csv:1: lang: this column is missing"));
    assert!(found[1].contains("colour: this column is not known") && found[1].contains("variants"));
    assert!(found[2].contains("id: this column is there twice"));
    assert!(found[3].contains("column 5 has no name"));
    assert!(messages(b"")[0].contains("the file is empty; begin it with a header row: id,lang"));
    assert!(messages(b"id,lang,question\n\n")[0].contains("holds no question"));
}

#[test]
fn a_quotation_mark_that_swallows_rows_is_found_and_the_rows_are_checked() {
    let header = "id,lang,question,note\n";
    let never = messages(format!("{header}a,en,\"Why?,\nb,en,How?,\nc,xx,Who?,\n").as_bytes());
    assert_eq!(never.len(), 2, "{never:#?}");
    assert!(never[0].starts_with(
        "list.csv:2: question: the quotation mark that opens the field is never closed"
    ));
    assert!(never[1].starts_with("list.csv:4: lang"));

    let closed =
        messages(format!("{header}a,en,Why?,\"note\nb,en,How?,\"\nc,en,Who?,\n").as_bytes());
    assert!(closed[0].starts_with("list.csv:2: note: the field holds a line break"), "{closed:#?}");

    let later = messages(format!("{header}a,en,\"Why?,\nb,en,\"How?\",\n").as_bytes());
    assert!(
        later[0].starts_with("list.csv:2: question: the field goes on after its closing"),
        "{later:#?}"
    );

    let inside = messages(format!("{header}a,en,Why \"now\"?,\n").as_bytes());
    assert!(
        inside[0].contains("question: a quotation mark stands inside a field that is not quoted"),
        "{inside:#?}"
    );

    let broken = messages(format!("{header}a,en,\"Why\nnow?\",\n").as_bytes());
    assert!(broken[0].contains("only the column note may hold line breaks"), "{broken:#?}");
}

#[test]
fn a_windows_code_page_is_refused_with_its_line() {
    let found = messages(b"id,lang,question\na,en,Why?\nb,fr,Qu'est-ce qu'un \xE9diteur ?\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("list.csv:3: the byte 0xE9 is not UTF-8"), "{found:?}");
    assert!(found[0].contains("CSV UTF-8"), "{found:?}");
}

#[test]
fn code_pages_are_refused_by_name_with_the_command_that_converts_them() {
    let greek = "id,lang,question\na,el,".bytes().chain([
        0xD4, 0xE9, 0x20, 0xE5, 0xDF, 0xED, 0xE1, 0xE9, 0x20, 0xF4, 0xEF, 0x20, 0xF0, 0xE1, 0xEA,
        0xDD, 0xF4, 0xEF,
    ]);
    for (bytes, page) in [
        (b"id,lang,question\nb,fr,Qu\x92est-ce qu\x92un \xE9diteur ?\n".to_vec(), "WINDOWS-1252"),
        (greek.collect(), "WINDOWS-1253"),
    ] {
        let found = messages(&bytes);
        let command = format!("iconv -f {page} -t UTF-8");
        assert!(found[0].contains(page) && found[0].contains(&command), "{found:?}");
    }
}

fn load_as(name: &str, bytes: &[u8]) -> Result<QuestionList, QuestionErrors> {
    QuestionList::parse(bytes, &KNOWN, Faults::new(PathBuf::from(name)))
}

#[test]
fn json_lines_say_the_same_as_csv() {
    let lines = concat!(
        r#"{"id":"what-apt","lang":"en","question":"What is APT?","variants":["Tell me what APT is","what is apt"],"tags":["apt","tools"],"status":"published","priority":5,"collections":["handbook-en"]}"#,
        "\n\n",
        r#"{"id":"quoi","lang":"fr","question":"Qu’est-ce que dpkg, au juste ?","status":"draft","note":"two\n\nparagraphs, \"quoted\""}"#,
        "\n",
        r#"{"id":"ti","lang":"el","question":"Τι είναι το APT;","priority":"-1","tags":null}"#,
    );
    let list = load_as("list.jsonl", lines.as_bytes()).unwrap();
    assert_eq!(list.questions(), plain().questions());
}

#[test]
fn faults_of_json_lines_come_in_one_pass_with_line_key_and_remedy() {
    let lines = concat!(
        r#"{"id":"a","lang":"en","question":"Why?","colour":"red"}"#,
        "\n",
        "{broken\n",
        "[1]\n",
        r#"{"id":"b","lang":"en"}"#,
        "\n",
        r#"{"id":7,"lang":"en","question":"How?","tags":[1],"variants":["a|b"]}"#,
        "\n",
    );
    let errors = load_as("list.jsonl", lines.as_bytes()).unwrap_err();
    let found: Vec<String> = errors.faults().iter().map(ToString::to_string).collect();
    for (place, words) in [
        ("list.jsonl:1: colour:", "not known"),
        ("list.jsonl:2:", "not JSON"),
        ("list.jsonl:3:", "no JSON object"),
        ("list.jsonl:4: question:", "missing"),
        ("list.jsonl:5: id:", "not a text"),
        ("list.jsonl:5: tags:", "a list of texts"),
        ("list.jsonl:5: variants:", "separator |"),
    ] {
        assert!(
            found.iter().any(|f| f.starts_with(place) && f.contains(words)),
            "{place}: {found:#?}"
        );
    }
}

fn parquet(columns: Vec<polars::prelude::Column>) -> Vec<u8> {
    let mut frame = polars::prelude::DataFrame::new(columns[0].len(), columns).unwrap();
    let mut bytes = Vec::new();
    polars::prelude::ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
    bytes
}

#[test]
fn parquet_says_the_same_as_csv_and_its_faults_have_rows_and_columns() {
    use polars::prelude::Column;
    let text = |name: &str, cells: [&str; 3]| Column::new(name.into(), cells.as_slice());
    let sound = parquet(vec![
        text("id", ["what-apt", "quoi", "ti"]),
        text("lang", ["en", "fr", "el"]),
        text("question", ["What is APT?", "Qu’est-ce que dpkg, au juste ?", "Τι είναι το APT;"]),
        text("variants", ["Tell me what APT is | what is apt", "", ""]),
        text("tags", ["apt|tools", "", ""]),
        text("status", ["published", "draft", ""]),
        Column::new("priority".into(), [Some(5_i64), None, Some(-1)].as_slice()),
        text("note", ["", "two\n\nparagraphs, \"quoted\"", ""]),
        text("collections", ["handbook-en", "", ""]),
    ]);
    assert_eq!(load_as("list.parquet", &sound).unwrap().questions(), plain().questions());
    assert!(load_as("named-otherwise", &sound).is_ok(), "known by how it begins");

    let faulty = parquet(vec![
        text("id", ["a", "a", "c"]),
        text("lang", ["en", "xx", "el"]),
        text("question", ["Why?", "How?", ""]),
        text("shade", ["", "", ""]),
    ]);
    let errors = load_as("list.parquet", &faulty).unwrap_err();
    let found: Vec<String> = errors.faults().iter().map(ToString::to_string).collect();
    for place in [
        "list.parquet:1: shade:",
        "list.parquet:2: lang:",
        "list.parquet:2: id:",
        "list.parquet:3: question:",
    ] {
        assert!(found.iter().any(|fault| fault.starts_with(place)), "{place}: {found:#?}");
    }
    let wrong = parquet(vec![
        text("id", ["a", "b", "c"]),
        text("lang", ["en", "en", "en"]),
        Column::new("question".into(), [1.5_f64, 2.5, 3.5].as_slice()),
    ]);
    let message = load_as("list.parquet", &wrong).unwrap_err().to_string();
    assert!(message.contains("question: this column holds values of the kind"), "{message}");
}

#[test]
fn a_damaged_parquet_file_is_refused() {
    use polars::prelude::Column;
    let column = |name: &str| Column::new(name.into(), ["a"].as_slice());
    let sound = parquet(vec![column("id"), column("lang"), column("question")]);
    for length in [0, 3, 4, 8, sound.len() / 2, sound.len() - 1] {
        let message = load_as("list.parquet", &sound[..length]).unwrap_err().to_string();
        assert!(message.starts_with("list.parquet:"), "{message}");
    }
}

#[test]
fn questions_that_are_nearly_the_same_are_warned_of_and_not_refused() {
    let list = load(
        b"id,lang,question,status\n\
          a,en,How do I remove a package from the system?,\n\
          b,en,How do I remove a packages from the system?,\n\
          c,en,How do I remove the package from the system?,retired\n",
    )
    .unwrap();
    let warnings: Vec<String> = list.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("list.csv:3: question:") && warnings[0].contains("row 2 (a)"),
        "{warnings:?}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let message =
        QuestionList::load(Path::new("/nowhere/list.csv"), &KNOWN).unwrap_err().to_string();
    assert!(
        message.starts_with("/nowhere/list.csv: the question list cannot be read"),
        "{message}"
    );
    assert!(message.contains("check the path"), "{message}");
}

#[test]
fn a_variant_may_not_be_another_question() {
    let found = messages(b"id,lang,question,variants\na,en,Why?,\nb,en,How?,WHY\n");
    assert!(
        found[0].starts_with("list.csv:3: variants: \"WHY\" is the same question"),
        "{found:?}"
    );
}

/// The shipped files, where they are.
#[test]
fn fixtures() {
    let known: Known<'_, String> =
        Known { languages: &["en", "fr", "el"].map(str::to_owned), collections: &[] };
    let bad = root().join("data/fixtures/bad");
    let Ok(files) = std::fs::read_dir(&bad) else { return };
    for path in files.flatten().map(|file| file.path()) {
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = QuestionList::load(&path, &known);
        if ["semicolon", "tab", "utf8-bom"].contains(&name.as_str()) {
            assert!(outcome.is_ok(), "{outcome:?}");
        } else {
            let message = outcome.expect_err(&name).to_string();
            assert!(
                message.contains(&*path.to_string_lossy()) && message.contains("; "),
                "{message}"
            );
        }
    }
}

#[test]
fn the_shipped_list_is_sound() {
    let path = root().join("data/questions/handbook.csv");
    if path.exists() {
        let known: Known<'_, &str> = Known { languages: &["en", "fr", "el"], collections: &[] };
        let list = QuestionList::load(&path, &known).unwrap();
        assert!(list.questions().len() >= 15);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = load(&bytes);
    }

    #[test]
    fn any_json_lines_and_any_parquet_are_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        line in "[\\{\\}\":,a-z\\[\\]0-9 ]{0,60}",
    ) {
        let _ = load_as("list.jsonl", &bytes);
        let _ = load_as("list.jsonl", line.as_bytes());
        let mut parquet = b"PAR1".to_vec();
        parquet.extend(&bytes);
        parquet.extend(b"PAR1");
        let _ = load_as("list.parquet", &parquet);
    }

    #[test]
    fn any_table_is_read_or_refused(
        rows in proptest::collection::vec("[a-c\",;\t\n\r é\u{0}|.-]{0,24}", 0..8),
        header in prop_oneof![Just("id,lang,question"), Just("id;lang;question;note"), Just("note\tid")],
    ) {
        let _ = load(format!("{header}\n{}", rows.join("\n")).as_bytes());
    }

    #[test]
    fn any_question_comes_back(text in "[a-zé\", ;'|?]{0,30}[a-z]") {
        let row = format!("id,lang,question\na,en,\"{}\"\n", text.replace('"', "\"\""));
        let list = load(row.as_bytes()).unwrap();
        prop_assert_eq!(&list.questions()[0].question, text.trim());
    }
}
