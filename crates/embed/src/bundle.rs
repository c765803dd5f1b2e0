//! The packed 4-bit bundle ("E5S1"): its layout, and a reader that trusts nothing in it.
//!
//! All numbers are little-endian.
//!
//! ```text
//! "E5S1", u32 version (1)
//! i32 × 7   hidden size, layers, heads, intermediate size, tokens, positions, token types
//! f32       layer norm epsilon
//! i32       weights a quantized block (32)
//! tokenizer (not used here: the model's own tokenizer.json is):
//!   i32 × 5 pieces, id of <s>, of </s>, of <pad>, of <unk>
//!   u64     bytes of piece text
//!   u32 × (pieces + 1) offsets, f32 × pieces scores, the piece text
//!   i32 entries and u32 bytes of a normalisation map, the map
//! i32       tensors; each: u16 length of name, name, u8 type, u32 elements, u64 offset, u64 bytes
//! the tensors, at their offsets from the start of the file
//! ```
//!
//! Type 0 is f32. Type 1 is rows of blocks of 32 weights: an f16 scale d, then 16 bytes of which byte
//! j holds weight j in its low and weight j + 16 in its high half; weight = d × (half - 8). That is
//! the Q4_0 of GGML to the bit.

use std::collections::HashMap;

/// The first four bytes of a bundle.
pub(crate) const MAGIC: &[u8; 4] = b"E5S1";

/// Weights a Q4_0 block, and its size in bytes.
pub(crate) const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 18;

/// The dimensions of a BERT encoder.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub intermediate: usize,
    pub tokens: usize,
    pub positions: usize,
    pub types: usize,
    pub eps: f32,
}

impl Shape {
    /// Refuses dimensions that no BERT encoder has.
    pub(crate) fn check(&self) -> Result<(), String> {
        let counts =
            [self.hidden, self.layers, self.heads, self.intermediate, self.positions, self.types];
        if counts.iter().any(|&n| n == 0 || n > 1 << 16)
            || self.tokens == 0
            || self.tokens > 1 << 24
        {
            return Err(format!("the dimensions {self:?} make no sense"));
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(format!("{} heads do not divide {}", self.heads, self.hidden));
        }
        if !(self.eps > 0.0 && self.eps < 1.0) {
            return Err(format!("a layer norm epsilon of {} makes no sense", self.eps));
        }
        Ok(())
    }
}

/// How the elements of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    F32,
    Q4_0,
}

/// A bundle in memory: its dimensions and where its tensors lie.
#[derive(Debug)]
pub(crate) struct Bundle<'a> {
    bytes: &'a [u8],
    pub shape: Shape,
    tensors: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    storage: Storage,
    elements: usize,
    start: usize,
    end: usize,
}

impl<'a> Bundle<'a> {
    /// Reads the header and the directory, and checks that every tensor lies within the file.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let mut cursor = Cursor { bytes, at: 0 };
        if cursor.take(4)? != MAGIC {
            return Err("not a packed bundle (it does not begin with E5S1)".into());
        }
        let version = cursor.u32()?;
        if version != 1 {
            return Err(format!("version {version} of the packed format is unknown; 1 is known"));
        }
        let shape = Shape {
            hidden: cursor.count()?,
            layers: cursor.count()?,
            heads: cursor.count()?,
            intermediate: cursor.count()?,
            tokens: cursor.count()?,
            positions: cursor.count()?,
            types: cursor.count()?,
            eps: f32::from_bits(cursor.u32()?),
        };
        shape.check()?;
        let block = cursor.count()?;
        if block != BLOCK || !shape.hidden.is_multiple_of(BLOCK) {
            return Err(format!("blocks of {block} weights are unknown; {BLOCK} are known"));
        }
        let pieces = cursor.count()?;
        cursor.take(4 * 4)?;
        let text = cursor.size()?;
        cursor.skip(pieces.saturating_mul(8).saturating_add(4).saturating_add(text))?;
        cursor.take(4)?;
        let map = cursor.count()?;
        cursor.skip(map)?;
        let count = cursor.count()?;
        let mut tensors = HashMap::new();
        for _ in 0..count {
            let length = usize::from(cursor.u16()?);
            let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
            let storage = match cursor.take(1)? {
                [0] => Storage::F32,
                [1] => Storage::Q4_0,
                other => return Err(format!("tensor {name:?} has the unknown type {}", other[0])),
            };
            let elements = cursor.count()?;
            let start = cursor.size()?;
            let size = cursor.size()?;
            let expected = match storage {
                Storage::F32 => elements.saturating_mul(4),
                Storage::Q4_0 => elements / BLOCK * BLOCK_BYTES,
            };
            let end = start.saturating_add(size);
            if size != expected || end > bytes.len() {
                return Err(format!("tensor {name:?} does not lie within the file"));
            }
            tensors.insert(name, Entry { storage, elements, start, end });
        }
        Ok(Bundle { bytes, shape, tensors })
    }

    /// The stored bytes of a tensor, which must have this many elements.
    pub(crate) fn tensor(
        &self,
        name: &str,
        storage: Storage,
        elements: usize,
    ) -> Result<&'a [u8], String> {
        let entry = self.tensors.get(name).ok_or_else(|| format!("there is no tensor {name:?}"))?;
        if entry.storage != storage || entry.elements != elements {
            return Err(format!(
                "tensor {name:?} holds {} elements as {:?}; {elements} as {storage:?} were expected",
                entry.elements, entry.storage
            ));
        }
        Ok(&self.bytes[entry.start..entry.end])
    }

    /// A tensor of plain numbers.
    pub(crate) fn floats(&self, name: &str, elements: usize) -> Result<Vec<f32>, String> {
        let bytes = self.tensor(name, Storage::F32, elements)?;
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(numbers.iter().map(|&number| f32::from_le_bytes(number)).collect())
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("cut short at byte {}", self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), String> {
        self.take(count).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A 32-bit count; the format's signed counts are never negative.
    fn count(&mut self) -> Result<usize, String> {
        let at = self.at;
        let number = self.u32()?;
        if number > i32::MAX as u32 {
            return Err(format!("a negative count at byte {at}"));
        }
        Ok(number as usize)
    }

    fn size(&mut self) -> Result<usize, String> {
        let at = self.at;
        let number = u64::from_le_bytes(self.array()?);
        usize::try_from(number).map_err(|_| format!("an impossible size at byte {at}"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small bundle with weights from a fixed pseudo-random sequence, laid out as the real one.
    pub(crate) fn tiny() -> Vec<u8> {
        let (hidden, layers, heads, middle, tokens, positions, types) = (32, 2, 2, 64, 20, 16, 2);
        let mut seed = 1u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        let mut tensors: Vec<(String, u8, usize, Vec<u8>)> = Vec::new();
        let mut add = |name: String, storage: u8, elements: usize, near: f32| {
            let mut data = Vec::new();
            if storage == 1 {
                for _ in 0..elements / BLOCK {
                    // The f16 1/16.
                    data.extend([0x00, 0x2c]);
                    data.extend((0..16).map(|_| next() as u8));
                }
            } else {
                for _ in 0..elements {
                    let value = near + (next() % 1000) as f32 / 10_000.0;
                    data.extend(value.to_le_bytes());
                }
            }
            tensors.push((name, storage, elements, data));
        };
        add("emb.word".into(), 1, tokens * hidden, 0.0);
        add("emb.pos".into(), 0, positions * hidden, 0.0);
        add("emb.type".into(), 0, types * hidden, 0.0);
        add("emb.ln.w".into(), 0, hidden, 1.0);
        add("emb.ln.b".into(), 0, hidden, 0.0);
        for l in 0..layers {
            for (name, out, inner) in [
                ("q", hidden, hidden),
                ("k", hidden, hidden),
                ("v", hidden, hidden),
                ("ao", hidden, hidden),
                ("fi", middle, hidden),
                ("fo", hidden, middle),
            ] {
                add(format!("l{l}.{name}.w"), 1, out * inner, 0.0);
                add(format!("l{l}.{name}.b"), 0, out, 0.0);
            }
            for name in ["aln", "oln"] {
                add(format!("l{l}.{name}.w"), 0, hidden, 1.0);
                add(format!("l{l}.{name}.b"), 0, hidden, 0.0);
            }
        }
        let mut head = MAGIC.to_vec();
        let put = |head: &mut Vec<u8>, n: usize| head.extend((n as u32).to_le_bytes());
        put(&mut head, 1);
        for n in [hidden, layers, heads, middle, tokens, positions, types] {
            put(&mut head, n);
        }
        head.extend(1e-12f32.to_le_bytes());
        put(&mut head, BLOCK);
        for n in [1, 0, 2, 1, 3] {
            put(&mut head, n);
        }
        head.extend(2u64.to_le_bytes());
        for n in [0, 2, 0] {
            put(&mut head, n);
        }
        head.extend(b"ab");
        put(&mut head, 0);
        put(&mut head, 0);
        put(&mut head, tensors.len());
        let directory: usize = tensors.iter().map(|(name, ..)| 2 + name.len() + 21).sum();
        let mut offset = head.len() + directory;
        for (name, storage, elements, data) in &tensors {
            head.extend((name.len() as u16).to_le_bytes());
            head.extend(name.as_bytes());
            head.push(*storage);
            put(&mut head, *elements);
            head.extend((offset as u64).to_le_bytes());
            head.extend((data.len() as u64).to_le_bytes());
            offset += data.len();
        }
        for (.., data) in tensors {
            head.extend(data);
        }
        head
    }

    #[test]
    fn the_layout_is_read() {
        let bytes = tiny();
        let bundle = Bundle::parse(&bytes).unwrap();
        assert_eq!(bundle.shape.hidden, 32);
        assert_eq!(bundle.shape.positions, 16);
        assert_eq!(bundle.floats("l1.oln.w", 32).unwrap().len(), 32);
        assert!(bundle.tensor("l0.q.w", Storage::Q4_0, 32 * 32).is_ok());
        let error = bundle.tensor("l0.q.w", Storage::F32, 32 * 32).unwrap_err();
        assert!(error.contains("l0.q.w"), "{error}");
        assert!(bundle.floats("l9.q.b", 32).unwrap_err().contains("l9.q.b"));
    }

    #[test]
    fn every_truncation_is_an_error_and_none_a_panic() {
        let bytes = tiny();
        for length in 0..bytes.len() {
            assert!(Bundle::parse(&bytes[..length]).is_err(), "cut at {length}");
        }
        assert!(Bundle::parse(&bytes).is_ok());
    }

    #[test]
    fn no_flipped_byte_of_the_head_is_a_panic() {
        let bytes = tiny();
        for at in 0..1200.min(bytes.len()) {
            for bit in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= bit;
                let _ = Bundle::parse(&changed);
            }
        }
    }
}
