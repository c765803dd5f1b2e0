//! What a model may write: a small language of JSON values, all of bounded length.
//!
//! One [`Schema`] is turned into what each engine understands: a grammar for llama.cpp's server
//! ([`Schema::gbnf`]), a JSON Schema for servers of the OpenAI kind ([`Schema::json_schema`]), an
//! automaton over bytes for the in-process engine. Whatever comes back is checked with
//! [`Schema::check`]: no engine is trusted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::LlmError;

/// A set of JSON values.
#[derive(Debug, Clone, PartialEq)]
pub enum Schema {
    /// This value only.
    Constant(Value),
    /// Any value of these.
    Choice(Vec<Schema>),
    /// Free text of at most so many characters.
    Text {
        /// Characters.
        longest: usize,
    },
    /// A run of neighbouring sentences of a passage, to the letter.
    Quotation(Quotable),
    /// A list.
    Array {
        /// Its members.
        items: Box<Schema>,
        /// At least so many.
        least: usize,
        /// At most so many.
        most: usize,
    },
    /// An object with all of these members, in this order.
    Object(Vec<(String, Schema)>),
}

/// A passage that may be quoted: whole sentences of it, or runs of neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotable {
    text: String,
    sentences: Vec<Range<usize>>,
    longest_run: usize,
}

/// How quotations are written. Verification follows in both cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuotationMode {
    /// Only runs of whole sentences of the passage can be written.
    #[default]
    Verbatim,
    /// Any text can be written.
    Free,
}

impl Quotable {
    /// `sentences` are byte ranges of `text`, in order and apart; a quotation is one of them or at
    /// most `longest_run` neighbours with what stands between them.
    pub fn new(
        text: &str,
        sentences: &[Range<usize>],
        longest_run: usize,
    ) -> Result<Self, LlmError> {
        let fault = |problem: String| LlmError::Setting { field: "quotation".into(), problem };
        if sentences.is_empty() || longest_run == 0 {
            return Err(fault("a passage without sentences cannot be quoted; leave it out".into()));
        }
        let mut end = 0;
        for range in sentences {
            if range.start < end || range.is_empty() || text.get(range.clone()).is_none() {
                return Err(fault(format!(
                    "{range:?} is no sentence of a passage of {} bytes; give ranges in order, on character boundaries",
                    text.len()
                )));
            }
            end = range.end;
        }
        Ok(Quotable { text: text.to_owned(), sentences: sentences.to_vec(), longest_run })
    }

    /// Everything that may be quoted, the single sentences first of each start.
    pub fn runs(&self) -> impl Iterator<Item = &str> {
        (0..self.sentences.len()).flat_map(move |first| {
            let last = (first + self.longest_run).min(self.sentences.len());
            (first..last)
                .map(move |end| &self.text[self.sentences[first].start..self.sentences[end].end])
        })
    }

    /// For each sentence, the pieces of the longest run that begins with it, as they stand inside a
    /// JSON string: the sentence, then each neighbour with the gap before it.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Vec<String>> {
        (0..self.sentences.len()).map(|first| {
            let last = (first + self.longest_run).min(self.sentences.len());
            let mut from = self.sentences[first].start;
            let piece = |range: &Range<usize>| {
                let piece = inside_json(&self.text[from..range.end]);
                from = range.end;
                piece
            };
            self.sentences[first..last].iter().map(piece).collect()
        })
    }
}

/// A text as it stands inside a JSON string, without the quotation marks.
fn inside_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

impl Schema {
    /// A quotation from a passage, in free mode of at most as many characters as the passage has.
    pub fn quotation(mode: QuotationMode, passage: Quotable) -> Self {
        match mode {
            QuotationMode::Verbatim => Schema::Quotation(passage),
            QuotationMode::Free => Schema::Text { longest: passage.text.chars().count() },
        }
    }

    /// A text that is one of these words.
    pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Schema::Choice(words.into_iter().map(|word| Schema::Constant(word.into())).collect())
    }

    /// Whether `value` is in the set; else where it is not, and why.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Schema::Constant(constant) if value == constant => Ok(()),
            Schema::Constant(constant) => {
                Err(format!("{} stands where {constant} should", short(value)))
            }
            Schema::Choice(choices) => {
                let mut faults = Vec::new();
                for choice in choices {
                    match choice.check(value) {
                        Ok(()) => return Ok(()),
                        Err(fault) => faults.push(fault),
                    }
                }
                // The last alternative's fault stands for all: there may be hundreds.
                let last = faults.pop().unwrap_or_default();
                Err(format!("{} is none of {} choices ({last})", short(value), choices.len()))
            }
            Schema::Text { longest } => match value.as_str() {
                Some(text) if text.chars().count() <= *longest => Ok(()),
                Some(text) => {
                    Err(format!("a text has {} characters, not {longest}", text.chars().count()))
                }
                None => Err(format!("{} is no text", short(value))),
            },
            Schema::Quotation(quotable) => match value.as_str() {
                Some(text) if quotable.runs().any(|run| run == text) => Ok(()),
                _ => Err(format!("{} is no run of sentences of the passage", short(value))),
            },
            Schema::Array { items, least, most } => {
                let Some(list) = value.as_array() else {
                    return Err(format!("{} is no list", short(value)));
                };
                if !(*least..=*most).contains(&list.len()) {
                    return Err(format!(
                        "a list has {} members, not {least} to {most}",
                        list.len()
                    ));
                }
                let checked = |(at, value)| items.check(value).map_err(|e| format!("[{at}]: {e}"));
                list.iter().enumerate().try_for_each(checked)
            }
            Schema::Object(members) => {
                let Some(object) = value.as_object() else {
                    return Err(format!("{} is no object", short(value)));
                };
                if let Some(other) = object.keys().find(|k| !members.iter().any(|(m, _)| m == *k)) {
                    return Err(format!("there is no member {other:?}"));
                }
                members.iter().try_for_each(|(name, schema)| {
                    let value = object.get(name).ok_or(format!("{name:?} is missing"))?;
                    schema.check(value).map_err(|e| format!("{name}: {e}"))
                })
            }
        }
    }

    /// A value from what a model wrote, if it is in the set. Nothing is mended: neither code fences
    /// nor words round the value are removed.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|e| format!("it is not JSON ({e}): {}", short(&text.into())))?;
        self.check(&value)?;
        Ok(value)
    }

    /// As a JSON Schema. Servers that constrain with it write members in alphabetical order.
    pub fn json_schema(&self) -> Value {
        match self {
            Schema::Constant(value) => json!({ "const": value }),
            Schema::Choice(choices) => {
                json!({ "anyOf": choices.iter().map(Schema::json_schema).collect::<Vec<_>>() })
            }
            Schema::Text { longest } => json!({ "type": "string", "maxLength": longest }),
            Schema::Quotation(quotable) => {
                json!({ "type": "string", "enum": quotable.runs().collect::<Vec<_>>() })
            }
            Schema::Array { items, least, most } => json!({
                "type": "array", "items": items.json_schema(), "minItems": least, "maxItems": most,
            }),
            Schema::Object(members) => {
                let properties: BTreeMap<&str, Value> = members
                    .iter()
                    .map(|(name, schema)| (name.as_str(), schema.json_schema()))
                    .collect();
                let required: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                json!({
                    "type": "object", "properties": properties, "required": required,
                    "additionalProperties": false,
                })
            }
        }
    }

    /// As a grammar in llama.cpp's notation, root rule `root`. JSON without white space.
    pub fn gbnf(&self) -> String {
        let mut grammar = String::from("root ::= ");
        self.write_gbnf(&mut grammar);
        grammar.push_str("\nchar ::= [^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" [\"\\\\/nt]\n");
        grammar
    }

    fn write_gbnf(&self, out: &mut String) {
        match self {
            Schema::Constant(value) => gbnf_literal(&value.to_string(), out),
            Schema::Choice(choices) => {
                alternatives(choices.iter(), out, |choice, out| choice.write_gbnf(out));
            }
            Schema::Text { longest } => {
                let _ = write!(out, "\"\\\"\" char{{0,{longest}}} \"\\\"\"");
            }
            Schema::Quotation(quotable) => {
                out.push_str("\"\\\"\" ");
                alternatives(quotable.pieces(), out, |pieces, out| {
                    for (at, piece) in pieces.iter().enumerate() {
                        out.push_str(if at > 0 { " (" } else { "" });
                        gbnf_literal(piece, out);
                    }
                    (1..pieces.len()).for_each(|_| out.push_str(")?"));
                });
                out.push_str(" \"\\\"\"");
            }
            Schema::Array { most: 0, .. } => out.push_str("\"[]\""),
            Schema::Array { items, least, most } => {
                out.push_str("\"[\" (");
                items.write_gbnf(out);
                out.push_str(" (\",\" ");
                items.write_gbnf(out);
                let _ = write!(out, "){{{},{}}})", least.saturating_sub(1), most - 1);
                out.push_str(if *least == 0 { "? \"]\"" } else { " \"]\"" });
            }
            Schema::Object(members) => {
                for (at, (name, schema)) in members.iter().enumerate() {
                    let before = if at == 0 { "{" } else { "," };
                    gbnf_literal(&format!("{before}{}:", Value::from(name.as_str())), out);
                    out.push(' ');
                    schema.write_gbnf(out);
                    out.push(' ');
                }
                out.push_str(if members.is_empty() { "\"{}\"" } else { "\"}\"" });
            }
        }
    }
}

fn alternatives<T>(
    choices: impl Iterator<Item = T>,
    out: &mut String,
    mut write: impl FnMut(T, &mut String),
) {
    out.push('(');
    for (at, choice) in choices.enumerate() {
        out.push_str(if at > 0 { " | " } else { "" });
        write(choice, out);
    }
    out.push(')');
}

/// A literal of llama.cpp's grammar notation.
fn gbnf_literal(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A value for a message.
fn short(value: &Value) -> String {
    crate::shortened(&value.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Passages with what is hard about quotations: quotation marks, repeated beginnings, Greek.
    pub(crate) fn passage(number: usize) -> Quotable {
        let sentences = [
            ["The lamp was lit in 1873.", "The lamp was \"new\" then.", "It burned down."],
            ["Ο φάρος άναψε το 1873.", "Ο φάρος κάηκε.", "Back\\slash\tand tab."],
        ];
        let sentences = &sentences[number % 2];
        let text = sentences.join(" ");
        let mut start = 0;
        let ranges: Vec<Range<usize>> = sentences
            .iter()
            .map(|sentence| {
                let range = start..start + sentence.len();
                start = range.end + 1;
                range
            })
            .collect();
        Quotable::new(&text, &ranges, 2).unwrap()
    }

    /// Quotations of two passages, with a few words each.
    pub(crate) fn quotations() -> Schema {
        let of = |number: usize| {
            Schema::Object(vec![
                ("passage".into(), Schema::Constant((number + 1).into())),
                ("claim".into(), Schema::Text { longest: 20 }),
                ("quotation".into(), Schema::Quotation(passage(number))),
            ])
        };
        Schema::Object(vec![
            ("answerable".into(), Schema::words(["yes", "no"])),
            (
                "quotations".into(),
                Schema::Array {
                    items: Box::new(Schema::Choice(vec![of(0), of(1)])),
                    least: 0,
                    most: 3,
                },
            ),
        ])
    }

    #[test]
    fn a_quotation_is_a_run_of_whole_neighbouring_sentences_of_the_passage_named() {
        let schema = quotations();
        let with = |passage: usize, quotation: &str| {
            schema.check(&json!({ "answerable": "yes", "quotations": [
                { "passage": passage, "claim": "", "quotation": quotation } ] }))
        };
        with(1, "The lamp was lit in 1873.").unwrap();
        with(1, "The lamp was lit in 1873. The lamp was \"new\" then.").unwrap();
        with(2, "Ο φάρος άναψε το 1873.").unwrap();
        for (passage, wrong) in [
            (2, "The lamp was lit in 1873."),
            (3, "The lamp was lit in 1873."),
            (1, "The lamp was lit in 1873"),
            (1, "The lamp was lit in 1873. It burned down."),
            (1, "The lamp was lit in 1873. The lamp was \"new\" then. It burned down."),
            (1, ""),
        ] {
            with(passage, wrong).unwrap_err();
        }
    }

    #[test]
    fn nothing_but_the_value_itself_is_read() {
        let schema = Schema::Object(vec![("a".into(), Schema::words(["yes", "no"]))]);
        assert_eq!(schema.read(r#"{"a": "no"}"#).unwrap(), json!({ "a": "no" }));
        for wrong in [
            "```json\n{\"a\":\"no\"}\n```",
            "Sure! {\"a\":\"no\"}",
            "{\"a\":\"no\"} I hope this helps",
            "{\"a\":\"no\"",
            "{\"a\":\"maybe\"}",
            "{\"a\":\"no\",\"b\":1}",
            "{}",
            "[]",
            "",
        ] {
            schema.read(wrong).unwrap_err();
        }
    }

    #[test]
    fn ranges_that_are_no_sentences_are_refused() {
        for ranges in [&[][..], &[(0, 99)], &[(1, 3)], &[(0, 4), (2, 6)], &[(2, 2)]] {
            let ranges: Vec<Range<usize>> = ranges.iter().map(|&(from, to)| from..to).collect();
            Quotable::new("Ο φάρος άναψε.", &ranges, 2).unwrap_err();
        }
    }
}
