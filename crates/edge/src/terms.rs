//! What is looked up: the terms of a wording, its hash. `site/florilegium.js` does the same.

use florilegium_fold::fold;

/// The terms of a folded wording: its words; signs of scripts without spaces each by itself.
pub(crate) fn terms(folded: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in folded.split(' ').filter(|word| !word.is_empty()) {
        let mut term = String::new();
        for c in word.chars() {
            if is_unspaced(c) {
                if !term.is_empty() {
                    terms.push(std::mem::take(&mut term));
                }
                terms.push(c.to_string());
            } else {
                term.push(c);
            }
        }
        if !term.is_empty() {
            terms.push(term);
        }
    }
    terms
}

/// The terms of a text, each once, in order.
pub(crate) fn terms_of(text: &str) -> Vec<String> {
    let mut terms = terms(&fold(text));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Letters of scripts that are written without spaces: Thai to Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// Where to look for a folded wording.
pub(crate) fn hash(folded: &str) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in folded.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    // FNV's high bits, which choose the shard, are poor.
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The shard of a hash.
pub(crate) fn shard_of(hash: u32, bits: u8) -> u32 {
    if bits == 0 { 0 } else { hash >> (32 - u32::from(bits)) }
}
