//! A schema as an automaton over bytes: which bytes may come next, and which must.
//!
//! The automaton is not deterministic: a state is a small set of positions. It is walked with the
//! bytes of a candidate token to see whether the token may be written here, and it tells the text
//! that is determined already, so that the engine need not decode it token by token.

use crate::schema::Schema;

/// An inclusive range of bytes.
type Class = &'static [(u8, u8)];

/// What is to be read at a place, and where it goes on.
#[derive(Debug)]
enum Node {
    Bytes(Box<[u8]>, u32),
    Class(Class, u32),
    Fork(Vec<u32>),
    End,
}

/// A node, and how many of its bytes have been read.
type Position = (u32, u32);

/// A state: where in the schema the text written so far may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place(Vec<Position>);

/// All texts of a schema: JSON without white space, members in the schema's order.
#[derive(Debug)]
pub(crate) struct Automaton {
    nodes: Vec<Node>,
    start: u32,
}

/// One character inside a JSON string: well-formed UTF-8 and nothing that JSON would escape.
/// Each row is a sequence of classes (Unicode Standard, table 3-7).
const CHARACTERS: &[&[Class]] = &[
    &[&[(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E)]],
    &[&[(b'\\', b'\\')], &[(b'"', b'"'), (b'/', b'/'), (b'\\', b'\\'), (b'n', b'n'), (b't', b't')]],
    &[&[(0xC2, 0xDF)], TAIL],
    &[&[(0xE0, 0xE0)], &[(0xA0, 0xBF)], TAIL],
    &[&[(0xE1, 0xEC), (0xEE, 0xEF)], TAIL, TAIL],
    &[&[(0xED, 0xED)], &[(0x80, 0x9F)], TAIL],
    &[&[(0xF0, 0xF0)], &[(0x90, 0xBF)], TAIL, TAIL],
    &[&[(0xF1, 0xF3)], TAIL, TAIL, TAIL],
    &[&[(0xF4, 0xF4)], &[(0x80, 0x8F)], TAIL, TAIL],
];
const TAIL: Class = &[(0x80, 0xBF)];

impl Automaton {
    /// The automaton of a schema.
    pub fn of(schema: &Schema) -> Self {
        let mut automaton = Automaton { nodes: vec![Node::End], start: 0 };
        automaton.start = automaton.add(schema, 0);
        automaton
    }

    /// Adds what a schema admits, going on at `next`; returns where it begins.
    fn add(&mut self, schema: &Schema, next: u32) -> u32 {
        match schema {
            Schema::Constant(value) => self.bytes(&value.to_string(), next),
            Schema::Choice(choices) => {
                let begins = choices.iter().map(|choice| self.add(choice, next)).collect();
                self.node(Node::Fork(begins))
            }
            Schema::Text { longest } => {
                let close = self.bytes("\"", next);
                let mut after = close;
                for _ in 0..*longest {
                    let mut begins = vec![close];
                    for row in CHARACTERS {
                        let class = |after, class: &Class| self.node(Node::Class(class, after));
                        begins.push(row.iter().rev().fold(after, class));
                    }
                    after = self.node(Node::Fork(begins));
                }
                self.bytes("\"", after)
            }
            Schema::Quotation(quotable) => {
                let close = self.bytes("\"", next);
                let mut begins = Vec::new();
                for pieces in quotable.pieces() {
                    let mut after = close;
                    for (at, piece) in pieces.iter().enumerate().rev() {
                        let begin = self.bytes(piece, after);
                        // Before each neighbour the quotation may end.
                        after = match at {
                            0 => begin,
                            _ => self.node(Node::Fork(vec![close, begin])),
                        };
                    }
                    begins.push(after);
                }
                let fork = self.node(Node::Fork(begins));
                self.bytes("\"", fork)
            }
            Schema::Array { items, least, most } => {
                let close = self.bytes("]", next);
                let mut after = close;
                for at in (0..*most).rev() {
                    let item = self.add(items, after);
                    let item = if at > 0 { self.bytes(",", item) } else { item };
                    after = match at < *least {
                        true => item,
                        false => self.node(Node::Fork(vec![close, item])),
                    };
                }
                self.bytes("[", after)
            }
            Schema::Object(members) => {
                let close = if members.is_empty() { "{}" } else { "}" };
                let mut after = self.bytes(close, next);
                for (at, (name, schema)) in members.iter().enumerate().rev() {
                    let value = self.add(schema, after);
                    let before = if at == 0 { "{" } else { "," };
                    let key = serde_json::Value::from(name.as_str());
                    after = self.bytes(&format!("{before}{key}:"), value);
                }
                after
            }
        }
    }

    fn bytes(&mut self, text: &str, next: u32) -> u32 {
        if text.is_empty() {
            return next;
        }
        self.node(Node::Bytes(text.as_bytes().into(), next))
    }

    fn node(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        // Schemas are built by this program and bounded; four thousand million nodes are no schema.
        u32::try_from(self.nodes.len() - 1).unwrap_or(0)
    }

    /// Where every text begins.
    pub fn start(&self) -> Place {
        let mut positions = Vec::new();
        self.arrive(self.start, &mut positions);
        Place(positions)
    }

    /// Notes the positions that are reached with a node, through forks.
    fn arrive(&self, node: u32, positions: &mut Vec<Position>) {
        match &self.nodes[node as usize] {
            Node::Fork(begins) => begins.iter().for_each(|&begin| self.arrive(begin, positions)),
            _ => positions.push((node, 0)),
        }
    }

    /// Where the text is after one more byte; nothing when the byte may not come here.
    fn step(&self, place: &Place, byte: u8) -> Option<Place> {
        let mut positions = Vec::new();
        for &(node, read) in &place.0 {
            match &self.nodes[node as usize] {
                Node::Bytes(bytes, next) if bytes[read as usize] == byte => {
                    if read as usize + 1 < bytes.len() {
                        positions.push((node, read + 1));
                    } else {
                        self.arrive(*next, &mut positions);
                    }
                }
                Node::Class(class, next) if class.iter().any(|&(a, b)| (a..=b).contains(&byte)) => {
                    self.arrive(*next, &mut positions);
                }
                _ => {}
            }
        }
        positions.sort_unstable();
        positions.dedup();
        (!positions.is_empty()).then_some(Place(positions))
    }

    /// Where the text is after these bytes; nothing when they may not come here.
    pub fn walk(&self, place: &Place, bytes: &[u8]) -> Option<Place> {
        bytes.iter().try_fold(place.clone(), |place, &byte| self.step(&place, byte))
    }

    /// Whether the text is complete here. No text of a schema begins another, so nothing may follow.
    pub fn complete(&self, place: &Place) -> bool {
        place.0.iter().any(|&(node, _)| matches!(self.nodes[node as usize], Node::End))
    }

    /// The bytes that may come next.
    pub fn next_bytes(&self, place: &Place) -> [bool; 256] {
        let mut next = [false; 256];
        for &(node, read) in &place.0 {
            match &self.nodes[node as usize] {
                Node::Bytes(bytes, _) => next[usize::from(bytes[read as usize])] = true,
                Node::Class(class, _) => {
                    for &(a, b) in *class {
                        (a..=b).for_each(|byte| next[usize::from(byte)] = true);
                    }
                }
                Node::Fork(_) | Node::End => {}
            }
        }
        next
    }

    /// The text that must come next, whole characters of it, up to the next choice or the end.
    pub fn forced(&self, place: &Place) -> (Vec<u8>, Place) {
        let mut at = place.clone();
        let mut text = Vec::new();
        let mut whole = (0, place.clone());
        while !self.complete(&at) {
            let next = self.next_bytes(&at);
            let mut allowed = (0..=u8::MAX).filter(|&byte| next[usize::from(byte)]);
            let (Some(byte), None) = (allowed.next(), allowed.next()) else { break };
            let Some(after) = self.step(&at, byte) else { break };
            at = after;
            text.push(byte);
            if std::str::from_utf8(&text[whole.0..]).is_ok() {
                whole = (text.len(), at.clone());
            }
        }
        text.truncate(whole.0);
        (text, whole.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::quotations;
    use proptest::prelude::*;
    use serde_json::Value;

    /// Writes a text of the schema, each choice made by the next number.
    fn write(schema: &Schema, mut choose: impl FnMut(usize) -> usize) -> String {
        let automaton = Automaton::of(schema);
        let mut place = automaton.start();
        let mut text = Vec::new();
        while !automaton.complete(&place) {
            let (forced, after) = automaton.forced(&place);
            text.extend(forced);
            place = after;
            if automaton.complete(&place) {
                break;
            }
            let next = automaton.next_bytes(&place);
            let allowed: Vec<u8> = (0..=u8::MAX).filter(|&b| next[usize::from(b)]).collect();
            let byte = allowed[choose(allowed.len()) % allowed.len()];
            text.push(byte);
            place = automaton.step(&place, byte).unwrap();
        }
        String::from_utf8(text).unwrap()
    }

    proptest! {
        #[test]
        fn whatever_is_chosen_the_text_is_of_the_schema(choices in prop::collection::vec(any::<u8>(), 1..300)) {
            let mut choices = choices.iter().cycle();
            let text = write(&quotations(), |_| usize::from(*choices.next().unwrap()));
            quotations().read(&text).unwrap();
        }

        #[test]
        fn a_value_of_the_schema_can_be_written_and_no_other_text(
            claim in "[^\\p{Cc}\"\\\\]{0,20}", run in 0_usize..5, cut in 1_usize..400,
        ) {
            let quotation = crate::schema::tests::passage(0).runs().nth(run).unwrap().to_owned();
            let automaton = Automaton::of(&quotations());
            let text = format!(
                "{{\"answerable\":\"yes\",\"quotations\":[{{\"passage\":1,\"claim\":{},\"quotation\":{}}}]}}",
                Value::from(claim), Value::from(quotation),
            );
            let place = automaton.walk(&automaton.start(), text.as_bytes()).unwrap();
            prop_assert!(automaton.complete(&place));
            prop_assert!(automaton.step(&place, b' ').is_none());
            let cut = cut.min(text.len() - 1);
            let half = automaton.walk(&automaton.start(), &text.as_bytes()[..cut]).unwrap();
            prop_assert!(!automaton.complete(&half));
        }
    }

    #[test]
    fn the_rest_of_a_sentence_is_determined_by_its_beginning() {
        let automaton = Automaton::of(&quotations());
        let (text, place) = automaton.forced(&automaton.start());
        assert_eq!(text, b"{\"answerable\":\"");
        let place = automaton
            .walk(&place, br#"no","quotations":[{"passage":2,"claim":"","quotation":""#)
            .unwrap();
        // Three sentences, two of which begin alike.
        let (text, _) = automaton.forced(&place);
        assert!(text.is_empty());
        let place = automaton.walk(&place, "Ο φάρος ά".as_bytes()).unwrap();
        let (text, _) = automaton.forced(&place);
        assert_eq!(String::from_utf8(text).unwrap(), "ναψε το 1873.");
    }

    #[test]
    fn broken_characters_and_bare_control_characters_cannot_be_written() {
        let automaton = Automaton::of(&Schema::Text { longest: 4 });
        for wrong in [&b"\"\xFF"[..], b"\"\xC0\x80", b"\"\xED\xA0", b"\"\n", b"\"\\u", b"\"abcde"] {
            assert!(automaton.walk(&automaton.start(), wrong).is_none(), "{wrong:?}");
        }
    }
}
