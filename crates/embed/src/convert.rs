//! From the packed bundle to GGUF, once, without losing a bit.
//!
//! The bundle's 4-bit blocks are the Q4_0 blocks of GGML to the bit, so the blocks are copied as they
//! are; norms, biases, positions and token types stay f32. Tensors get the names they have in the
//! model's own checkpoint. The result lies beside the bundle as `<bundle>.gguf` and says from which
//! bundle it was made; it is made anew when that no longer fits.

use std::borrow::Cow;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};
use florilegium_files::{read, sha256_hex, write_atomic};

use crate::EmbedError;
use crate::bundle::{Bundle, Shape, Storage};

/// Metadata keys of the GGUF files written here.
pub(crate) mod key {
    pub const ARCHITECTURE: &str = "general.architecture";
    pub const HIDDEN: &str = "bert.embedding_length";
    pub const LAYERS: &str = "bert.block_count";
    pub const HEADS: &str = "bert.attention.head_count";
    pub const INTERMEDIATE: &str = "bert.feed_forward_length";
    pub const POSITIONS: &str = "bert.context_length";
    pub const TOKENS: &str = "bert.vocab_size";
    pub const TYPES: &str = "bert.token_type_count";
    pub const EPS: &str = "bert.attention.layer_norm_epsilon";
    pub const SOURCE: &str = "florilegium.source.sha256";
    pub const CONVERTER: &str = "florilegium.converter";
}

/// The version of this conversion; a file of another version is made anew.
const CONVERTER: u32 = 1;

/// The linear layers of a block: the name in the bundle and the name in the checkpoint.
const LINEARS: [(&str, &str); 6] = [
    ("q", "attention.self.query"),
    ("k", "attention.self.key"),
    ("v", "attention.self.value"),
    ("ao", "attention.output.dense"),
    ("fi", "intermediate.dense"),
    ("fo", "output.dense"),
];

/// The layer norms of a block, likewise.
const NORMS: [(&str, &str); 2] =
    [("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm")];

/// Where the converted form of a bundle lies: beside it, with `.gguf` added to its name.
pub fn gguf_path(bundle: &Path) -> PathBuf {
    let mut name = bundle.file_name().unwrap_or_default().to_owned();
    name.push(".gguf");
    bundle.with_file_name(name)
}

/// Makes sure that the converted form of a bundle lies beside it, and returns its path.
///
/// # Errors
/// The bundle cannot be read or is not one; the folder cannot be written.
pub fn convert(bundle: &Path) -> Result<PathBuf, EmbedError> {
    let path = gguf_path(bundle);
    let bytes = read(bundle)?;
    let hash = sha256_hex(&bytes);
    if read(&path).is_ok_and(|old| is_of(&old, &hash)) {
        return Ok(path);
    }
    write_atomic(&path, &to_gguf(&bytes, &hash, bundle)?)?;
    Ok(path)
}

/// The converted form of a bundle, and the bundle's SHA-256. It is read from the file beside the
/// bundle if that fits, and otherwise made, and kept if the folder can be written.
pub(crate) fn load(bundle: &Path) -> Result<(Vec<u8>, String), EmbedError> {
    let bytes = read(bundle)?;
    let hash = sha256_hex(&bytes);
    let path = gguf_path(bundle);
    if let Ok(old) = read(&path)
        && is_of(&old, &hash)
    {
        return Ok((old, hash));
    }
    tracing::info!("converting {} to {}", bundle.display(), path.display());
    let made = to_gguf(&bytes, &hash, bundle)?;
    // A read-only model folder only costs the conversion at every start.
    if let Err(error) = write_atomic(&path, &made) {
        tracing::warn!("the converted weights are not kept: {error}");
    }
    Ok((made, hash))
}

/// Was this GGUF file made here, by this version, from the bundle of this hash?
fn is_of(gguf: &[u8], hash: &str) -> bool {
    let Ok(content) = Content::read(&mut Cursor::new(gguf)) else { return false };
    let source = content.metadata.get(key::SOURCE).and_then(|v| v.to_string().ok());
    let version = content.metadata.get(key::CONVERTER).and_then(|v| v.to_u32().ok());
    // A write is atomic, so a file with a right head is whole.
    source.is_some_and(|source| source == hash) && version == Some(CONVERTER)
}

fn to_gguf(bytes: &[u8], hash: &str, path: &Path) -> Result<Vec<u8>, EmbedError> {
    let format = |problem: String| EmbedError::Format { path: path.to_owned(), problem };
    let bundle = Bundle::parse(bytes).map_err(format)?;
    let tensors = tensors(&bundle).map_err(format)?;
    let metadata = metadata(&bundle.shape, hash);
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(k, v)| (*k, v)).collect();
    let tensors: Vec<(&str, &QTensor)> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut out = Cursor::new(Vec::with_capacity(bytes.len()));
    gguf_file::write(&mut out, &metadata, &tensors)?;
    Ok(out.into_inner())
}

fn metadata(shape: &Shape, hash: &str) -> Vec<(&'static str, Value)> {
    let number = |n: usize| Value::U32(u32::try_from(n).unwrap_or(u32::MAX));
    vec![
        (key::ARCHITECTURE, Value::String("bert".into())),
        (key::HIDDEN, number(shape.hidden)),
        (key::LAYERS, number(shape.layers)),
        (key::HEADS, number(shape.heads)),
        (key::INTERMEDIATE, number(shape.intermediate)),
        (key::POSITIONS, number(shape.positions)),
        (key::TOKENS, number(shape.tokens)),
        (key::TYPES, number(shape.types)),
        (key::EPS, Value::F32(shape.eps)),
        (key::SOURCE, Value::String(hash.into())),
        (key::CONVERTER, Value::U32(CONVERTER)),
    ]
}

/// Reads the dimensions back from the metadata.
pub(crate) fn shape(content: &Content) -> Result<Shape, String> {
    let value = |key: &str| {
        content.metadata.get(key).ok_or_else(|| format!("metadata key {key} is missing"))
    };
    let number = |key: &str| -> Result<usize, String> {
        let number = value(key)?.to_u64().map_err(|e| format!("metadata key {key}: {e}"))?;
        usize::try_from(number).map_err(|e| format!("metadata key {key}: {e}"))
    };
    let architecture =
        value(key::ARCHITECTURE)?.to_string().map_err(|e| format!("{}: {e}", key::ARCHITECTURE))?;
    if architecture != "bert" {
        return Err(format!("holds a model of architecture {architecture:?}, not \"bert\""));
    }
    let shape = Shape {
        hidden: number(key::HIDDEN)?,
        layers: number(key::LAYERS)?,
        heads: number(key::HEADS)?,
        intermediate: number(key::INTERMEDIATE)?,
        tokens: number(key::TOKENS)?,
        positions: number(key::POSITIONS)?,
        types: number(key::TYPES)?,
        eps: value(key::EPS)?.to_f32().map_err(|e| format!("{}: {e}", key::EPS))?,
    };
    shape.check()?;
    Ok(shape)
}

fn tensors(bundle: &Bundle<'_>) -> Result<Vec<(String, QTensor)>, String> {
    let shape = &bundle.shape;
    let hidden = shape.hidden;
    let blocks = |from: &str, to: String, rows: usize, columns: usize| {
        // A copy of its own is aligned for the block type; the mapped bytes need not be.
        let bytes = bundle.tensor(from, Storage::Q4_0, rows * columns)?.to_vec();
        QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, GgmlDType::Q4_0)
            .and_then(|storage| QTensor::new(storage, (rows, columns)))
            .map(|tensor| (to, tensor))
            .map_err(|e| format!("tensor {from:?}: {e}"))
    };
    let floats = |from: &str, to: String, dims: &[usize]| {
        let numbers = bundle.floats(from, dims.iter().product())?;
        Tensor::from_vec(numbers, dims, &Device::Cpu)
            .and_then(|tensor| QTensor::quantize(&tensor, GgmlDType::F32))
            .map(|tensor| (to, tensor))
            .map_err(|e| format!("tensor {from:?}: {e}"))
    };
    let name = |part: &str| format!("embeddings.{part}");
    let mut out = vec![
        blocks("emb.word", name("word_embeddings.weight"), shape.tokens, hidden)?,
        floats("emb.pos", name("position_embeddings.weight"), &[shape.positions, hidden])?,
        floats("emb.type", name("token_type_embeddings.weight"), &[shape.types, hidden])?,
        floats("emb.ln.w", name("LayerNorm.weight"), &[hidden])?,
        floats("emb.ln.b", name("LayerNorm.bias"), &[hidden])?,
    ];
    for layer in 0..shape.layers {
        let to = |part: &str, kind: &str| format!("encoder.layer.{layer}.{part}.{kind}");
        for (short, long) in LINEARS {
            let (rows, columns) = match short {
                "fi" => (shape.intermediate, hidden),
                "fo" => (hidden, shape.intermediate),
                _ => (hidden, hidden),
            };
            let from = |kind: &str| format!("l{layer}.{short}.{kind}");
            out.push(blocks(&from("w"), to(long, "weight"), rows, columns)?);
            out.push(floats(&from("b"), to(long, "bias"), &[rows])?);
        }
        for (short, long) in NORMS {
            let from = |kind: &str| format!("l{layer}.{short}.{kind}");
            out.push(floats(&from("w"), to(long, "weight"), &[hidden])?);
            out.push(floats(&from("b"), to(long, "bias"), &[hidden])?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::tests::tiny;
    use std::fs;

    #[test]
    fn blocks_are_carried_over_to_the_bit() {
        let bytes = tiny();
        let bundle = Bundle::parse(&bytes).unwrap();
        let gguf = to_gguf(&bytes, "hash", Path::new("b")).unwrap();
        let mut cursor = Cursor::new(&gguf);
        let content = Content::read(&mut cursor).unwrap();
        assert_eq!(shape(&content).unwrap(), bundle.shape);
        for (from, to, elements) in [
            ("emb.word", "embeddings.word_embeddings.weight", 20 * 32),
            ("l1.fo.w", "encoder.layer.1.output.dense.weight", 32 * 64),
        ] {
            let tensor = content.tensor(&mut cursor, to, &Device::Cpu).unwrap();
            assert_eq!(tensor.dtype(), GgmlDType::Q4_0);
            let stored = bundle.tensor(from, Storage::Q4_0, elements).unwrap();
            assert_eq!(&*tensor.data().unwrap(), stored, "{from}");
        }
        let bias = content
            .tensor(&mut cursor, "encoder.layer.0.attention.self.key.bias", &Device::Cpu)
            .unwrap()
            .dequantize(&Device::Cpu)
            .unwrap();
        assert_eq!(bias.to_vec1::<f32>().unwrap(), bundle.floats("l0.k.b", 32).unwrap());
    }

    #[test]
    fn a_block_means_what_the_layout_says() {
        let bytes = tiny();
        let bundle = Bundle::parse(&bytes).unwrap();
        let stored = bundle.tensor("l0.q.w", Storage::Q4_0, 32 * 32).unwrap();
        let gguf = to_gguf(&bytes, "hash", Path::new("b")).unwrap();
        let mut cursor = Cursor::new(&gguf);
        let content = Content::read(&mut cursor).unwrap();
        let name = "encoder.layer.0.attention.self.query.weight";
        let tensor = content.tensor(&mut cursor, name, &Device::Cpu).unwrap();
        let weights = tensor
            .dequantize(&Device::Cpu)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1::<f32>()
            .unwrap();
        for (block, out) in stored.chunks(18).zip(weights.chunks(32)) {
            for j in 0..16 {
                let halves = (block[2 + j] & 15, block[2 + j] >> 4);
                assert_eq!(out[j], (f32::from(halves.0) - 8.0) / 16.0);
                assert_eq!(out[j + 16], (f32::from(halves.1) - 8.0) / 16.0);
            }
        }
    }

    #[test]
    fn it_is_made_once_and_again_when_the_bundle_changes() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("tiny.bin");
        fs::write(&bundle, tiny()).unwrap();
        let path = convert(&bundle).unwrap();
        assert_eq!(path, folder.path().join("tiny.bin.gguf"));
        let made = fs::metadata(&path).unwrap().modified().unwrap();
        convert(&bundle).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), made, "not made again");
        let before = fs::read(&path).unwrap();
        let mut changed = tiny();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&bundle, &changed).unwrap();
        convert(&bundle).unwrap();
        assert_ne!(fs::read(&path).unwrap(), before);
        // Damage to the converted file is made good too.
        fs::write(&path, b"GGUF rubbish").unwrap();
        let (bytes, hash) = load(&bundle).unwrap();
        assert!(is_of(&bytes, &hash));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn what_is_no_bundle_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.bin");
        fs::write(&path, b"E5S1").unwrap();
        let error = convert(&path).unwrap_err().to_string();
        assert!(error.contains("w.bin") && error.contains("cut short"), "{error}");
        assert!(!gguf_path(&path).exists());
    }
}
