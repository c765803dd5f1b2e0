//! Loading weights: from a packed bundle, a GGUF file or a checkpoint in safetensors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Tensor};
use candle_transformers::models::bert::{Config, HiddenAct};
use candle_transformers::quantized_var_builder::VarBuilder;
use florilegium_files::{FileError, read, sha256_hex, sha256_hex_parts};

use crate::bundle::{self, Shape};
use crate::encoder::{Encoder, Layer, Linear, Product, Table};
use crate::kernels::Norm;
use crate::portable::Portable;
use crate::{Arithmetic, EmbedError, convert};

/// Weights that were read, and the hash of the files they come from.
pub(crate) struct Weights {
    pub shape: Shape,
    pub hash: String,
    source: Source,
}

/// Reads whatever lies at `path`.
pub(crate) fn load(path: &Path) -> Result<Weights, EmbedError> {
    if path.is_dir() {
        return checkpoint(&path.join("model.safetensors"));
    }
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        return checkpoint(path);
    }
    let mut magic = [0; 4];
    let begun = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    begun.map_err(|e| FileError::io("read the weights", path, e))?;
    if &magic == bundle::MAGIC {
        let (bytes, hash) = convert::load(path)?;
        return gguf(&bytes, hash, path);
    }
    if &magic == b"GGUF" {
        let bytes = read(path)?;
        let hash = sha256_hex(&bytes);
        return gguf(&bytes, hash, path);
    }
    Err(EmbedError::Format {
        path: path.to_owned(),
        problem: "neither a packed bundle nor GGUF nor safetensors".into(),
    })
}

impl Weights {
    /// The encoder for this machine's CPU.
    pub(crate) fn encoder(&self, arithmetic: Arithmetic) -> Result<Encoder, EmbedError> {
        self.source.encoder(self.shape.clone(), arithmetic)
    }

    /// The encoder for `device`.
    pub(crate) fn portable(&self, device: Device) -> Result<Portable, EmbedError> {
        Ok(Portable::new(self.source.tensors(&device)?, &self.shape, device)?)
    }
}

fn gguf(bytes: &[u8], hash: String, path: &Path) -> Result<Weights, EmbedError> {
    let format = |problem: String| EmbedError::Format { path: path.to_owned(), problem };
    let content = Content::read(&mut Cursor::new(bytes)).map_err(|e| format(e.to_string()))?;
    let shape = convert::shape(&content).map_err(format)?;
    let tensors =
        VarBuilder::from_gguf_buffer(bytes, &Device::Cpu).map_err(|e| format(e.to_string()))?;
    let names = content.tensor_infos.keys().cloned().collect();
    let source = Source { path: path.to_owned(), store: Store::Gguf(tensors, names) };
    Ok(Weights { shape, hash, source })
}

fn checkpoint(path: &Path) -> Result<Weights, EmbedError> {
    let config_path = path.with_file_name("config.json");
    let format =
        |path: &Path, problem: String| EmbedError::Format { path: path.to_owned(), problem };
    let text = fs::read(&config_path)
        .map_err(|e| FileError::io("read the model configuration", &config_path, e))?;
    let config: Config =
        serde_json::from_slice(&text).map_err(|e| format(&config_path, e.to_string()))?;
    if config.hidden_act != HiddenAct::Gelu {
        let problem = format!("`hidden_act` is {:?}; only \"gelu\" is known", config.hidden_act);
        return Err(format(&config_path, problem));
    }
    let shape = Shape {
        hidden: config.hidden_size,
        layers: config.num_hidden_layers,
        heads: config.num_attention_heads,
        intermediate: config.intermediate_size,
        tokens: config.vocab_size,
        positions: config.max_position_embeddings,
        types: config.type_vocab_size,
        eps: config.layer_norm_eps as f32,
    };
    shape.check().map_err(|problem| format(&config_path, problem))?;
    let bytes = read(path)?;
    let mut tensors = HashMap::new();
    let loaded = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)
        .map_err(|e| format(path, e.to_string()))?;
    for (name, tensor) in loaded {
        // Some checkpoints hold the encoder within a larger model.
        let name = name.strip_prefix("bert.").map(str::to_owned).unwrap_or(name);
        tensors.insert(name, tensor);
    }
    let hash = sha256_hex_parts([bytes.as_slice(), text.as_slice()]);
    let source = Source { path: path.to_owned(), store: Store::Plain(tensors) };
    Ok(Weights { shape, hash, source })
}

enum Store {
    /// With the names of the tensors.
    Gguf(VarBuilder, Vec<String>),
    Plain(HashMap<String, Tensor>),
}

struct Source {
    path: PathBuf,
    store: Store,
}

impl Source {
    fn encoder(&self, shape: Shape, arithmetic: Arithmetic) -> Result<Encoder, EmbedError> {
        let hidden = shape.hidden;
        let table = match &self.store {
            Store::Gguf(..) => Table::Quantized(self.quantized(
                "embeddings.word_embeddings.weight",
                shape.tokens,
                hidden,
            )?),
            Store::Plain(_) => Table::Plain(
                self.plain("embeddings.word_embeddings.weight", &[shape.tokens, hidden])?,
            ),
        };
        let mut places =
            self.numbers("embeddings.position_embeddings.weight", &[shape.positions, hidden])?;
        // Every token here has token type 0, so its row can be added once and for all.
        let types =
            self.numbers("embeddings.token_type_embeddings.weight", &[shape.types, hidden])?;
        for row in places.chunks_exact_mut(hidden) {
            for (place, kind) in row.iter_mut().zip(&types) {
                *place += kind;
            }
        }
        let norm = self.norm("embeddings.LayerNorm", &shape)?;
        let mut layers = Vec::with_capacity(shape.layers);
        for number in 0..shape.layers {
            let name = |part: &str| format!("encoder.layer.{number}.{part}");
            let linear = |parts: &[&str], rows, columns| {
                let names: Vec<_> = parts.iter().map(|part| name(part)).collect();
                self.linear(&names, rows, columns, arithmetic)
            };
            layers.push(Layer {
                // One product for the three: they share their input.
                query_key_value: linear(
                    &["attention.self.query", "attention.self.key", "attention.self.value"],
                    hidden,
                    hidden,
                )?,
                attention: linear(&["attention.output.dense"], hidden, hidden)?,
                attention_norm: self.norm(&name("attention.output.LayerNorm"), &shape)?,
                widen: linear(&["intermediate.dense"], shape.intermediate, hidden)?,
                narrow: linear(&["output.dense"], hidden, shape.intermediate)?,
                norm: self.norm(&name("output.LayerNorm"), &shape)?,
            });
        }
        Ok(Encoder { shape, table, places, norm, layers })
    }

    /// All tensors, f32, on `device`.
    fn tensors(&self, device: &Device) -> Result<HashMap<String, Tensor>, EmbedError> {
        let f32_there = |name: &str, tensor: candle_core::Result<Tensor>| {
            tensor
                .and_then(|tensor| tensor.to_dtype(DType::F32)?.to_device(device))
                .map(|tensor| (name.to_owned(), tensor))
                .map_err(|error| self.fail(name, error))
        };
        match &self.store {
            Store::Plain(tensors) => {
                tensors.iter().map(|(name, tensor)| f32_there(name, Ok(tensor.clone()))).collect()
            }
            Store::Gguf(tensors, names) => names
                .iter()
                .map(|name| {
                    let tensor = tensors.get_no_shape(name);
                    f32_there(name, tensor.and_then(|tensor| tensor.dequantize(&Device::Cpu)))
                })
                .collect(),
        }
    }

    fn fail(&self, name: &str, error: impl std::fmt::Display) -> EmbedError {
        EmbedError::Format { path: self.path.clone(), problem: format!("tensor {name}: {error}") }
    }

    fn quantized(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Arc<QTensor>, EmbedError> {
        match &self.store {
            Store::Gguf(tensors, _) => {
                tensors.get((rows, columns), name).map_err(|error| self.fail(name, error))
            }
            Store::Plain(_) => {
                let tensor = self.plain(name, &[rows, columns])?;
                QTensor::quantize(&tensor, GgmlDType::Q8_0)
                    .map(Arc::new)
                    .map_err(|error| self.fail(name, error))
            }
        }
    }

    fn plain(&self, name: &str, dims: &[usize]) -> Result<Tensor, EmbedError> {
        match &self.store {
            Store::Gguf(tensors, _) => tensors
                .get(dims, name)
                .and_then(|tensor| tensor.dequantize(&Device::Cpu))
                .map_err(|error| self.fail(name, error)),
            Store::Plain(tensors) => {
                let tensor = tensors.get(name).ok_or_else(|| self.fail(name, "is missing"))?;
                if tensor.dims() != dims {
                    let problem = format!("has shape {:?}, expected {dims:?}", tensor.dims());
                    return Err(self.fail(name, problem));
                }
                tensor.to_dtype(DType::F32).map_err(|error| self.fail(name, error))
            }
        }
    }

    fn numbers(&self, name: &str, dims: &[usize]) -> Result<Vec<f32>, EmbedError> {
        let tensor = self.plain(name, dims)?;
        let numbers: Vec<f32> = tensor
            .flatten_all()
            .and_then(|flat| flat.to_vec1())
            .map_err(|error| self.fail(name, error))?;
        if numbers.iter().any(|x| !x.is_finite()) {
            return Err(self.fail(name, "holds NaN or infinity"));
        }
        Ok(numbers)
    }

    fn norm(&self, name: &str, shape: &Shape) -> Result<Norm, EmbedError> {
        Ok(Norm {
            weight: self.numbers(&format!("{name}.weight"), &[shape.hidden])?,
            bias: self.numbers(&format!("{name}.bias"), &[shape.hidden])?,
            eps: shape.eps,
        })
    }

    /// One linear layer, or several with the same input as one.
    fn linear(
        &self,
        names: &[String],
        rows: usize,
        columns: usize,
        arithmetic: Arithmetic,
    ) -> Result<Linear, EmbedError> {
        let mut bias = Vec::with_capacity(names.len() * rows);
        for name in names {
            bias.extend(self.numbers(&format!("{name}.bias"), &[rows])?);
        }
        let weights = names.iter().map(|name| format!("{name}.weight"));
        let product = match arithmetic {
            Arithmetic::Full => {
                let parts = weights
                    .map(|name| self.plain(&name, &[rows, columns]))
                    .collect::<Result<Vec<_>, _>>()?;
                Product::Plain(Tensor::cat(&parts, 0)?.t()?.contiguous()?)
            }
            Arithmetic::Quantized => {
                let parts = weights
                    .map(|name| self.quantized(&name, rows, columns))
                    .collect::<Result<Vec<_>, _>>()?;
                Product::Quantized(QMatMul::from_arc(stack(&parts, rows, columns)?)?)
            }
        };
        Ok(Linear { product, bias })
    }
}

/// Puts quantized matrices of the same kind one below the other: rows are whole blocks.
fn stack(parts: &[Arc<QTensor>], rows: usize, columns: usize) -> candle_core::Result<Arc<QTensor>> {
    if let [only] = parts {
        return Ok(only.clone());
    }
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&part.data()?);
    }
    let kind = parts.first().map_or(GgmlDType::Q8_0, |part| part.dtype());
    let storage = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, kind)?;
    Ok(Arc::new(QTensor::new(storage, (parts.len() * rows, columns))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::tests::tiny;
    use candle_nn::VarBuilder as PlainBuilder;
    use candle_transformers::models::bert::BertModel;

    const CONFIG: &str = r#"{
        "vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 16, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "pad_token_id": 0, "model_type": "bert"
    }"#;

    /// The tiny model as a bundle and as a checkpoint; and its tensors.
    fn files(folder: &Path) -> (PathBuf, PathBuf, HashMap<String, Tensor>) {
        let bundle = folder.join("tiny.bin");
        fs::write(&bundle, tiny()).unwrap();
        let (gguf, _) = convert::load(&bundle).unwrap();
        let mut cursor = Cursor::new(&gguf);
        let content = Content::read(&mut cursor).unwrap();
        let mut tensors = HashMap::new();
        for name in content.tensor_infos.keys() {
            let tensor = content.tensor(&mut cursor, name, &Device::Cpu).unwrap();
            tensors.insert(name.clone(), tensor.dequantize(&Device::Cpu).unwrap());
        }
        let checkpoint = folder.join("model.safetensors");
        candle_core::safetensors::save(&tensors, &checkpoint).unwrap();
        fs::write(folder.join("config.json"), CONFIG).unwrap();
        (bundle, checkpoint, tensors)
    }

    fn vectors(path: &Path, arithmetic: Arithmetic, texts: &[&[u32]]) -> Vec<Vec<f32>> {
        let encoder = load(path).unwrap().encoder(arithmetic).unwrap();
        encoder.forward(texts).unwrap().into_iter().map(Option::unwrap).collect()
    }

    fn read_fault(path: &Path) -> String {
        let encoder = load(path).and_then(|weights| weights.encoder(Arithmetic::Full));
        encoder.err().unwrap().to_string()
    }

    fn furthest(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    const TEXTS: [&[u32]; 3] =
        [&[0, 5, 6, 2], &[0, 19, 3, 3, 8, 1, 2, 7, 7, 9, 10, 11, 12, 13, 14, 2], &[0, 4, 2]];

    #[test]
    fn the_encoder_agrees_with_candles_own() {
        let folder = tempfile::tempdir().unwrap();
        let (bundle, _, tensors) = files(folder.path());
        let config: Config = serde_json::from_str(CONFIG).unwrap();
        let builder = PlainBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        let reference = BertModel::load(builder, &config).unwrap();
        for (text, got) in TEXTS.iter().zip(vectors(&bundle, Arithmetic::Full, &TEXTS)) {
            let ids = Tensor::new(*text, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
            let states = reference
                .forward(&ids, &ids.zeros_like().unwrap(), None)
                .unwrap()
                .squeeze(0)
                .unwrap();
            let mean: Vec<f32> = states.mean(0).unwrap().to_vec1().unwrap();
            let length = mean.iter().map(|x| x * x).sum::<f32>().sqrt();
            let want: Vec<f32> = mean.iter().map(|x| x / length).collect();
            assert!(furthest(&got, &want) < 1e-5, "{got:?} {want:?}");
        }
    }

    #[test]
    fn the_encoder_for_other_devices_gives_the_same_vectors_in_a_padded_batch() {
        let folder = tempfile::tempdir().unwrap();
        let (bundle, checkpoint, _) = files(folder.path());
        let expected = vectors(&bundle, Arithmetic::Full, &TEXTS);
        for path in [&bundle, &checkpoint] {
            let portable = load(path).unwrap().portable(Device::Cpu).unwrap();
            for (a, b) in expected.iter().zip(portable.forward(&TEXTS).unwrap()) {
                assert!(furthest(a, &b.unwrap()) < 1e-5);
            }
        }
    }

    #[test]
    fn bundle_gguf_and_checkpoint_give_the_same_vectors() {
        let folder = tempfile::tempdir().unwrap();
        let (bundle, checkpoint, _) = files(folder.path());
        let gguf = convert::gguf_path(&bundle);
        let expected = vectors(&bundle, Arithmetic::Full, &TEXTS);
        for path in [gguf.as_path(), checkpoint.as_path(), folder.path()] {
            for (a, b) in expected.iter().zip(vectors(path, Arithmetic::Full, &TEXTS)) {
                assert!(furthest(a, &b) < 1e-6, "{}", path.display());
            }
        }
        for path in [bundle.as_path(), checkpoint.as_path()] {
            for (a, b) in expected.iter().zip(vectors(path, Arithmetic::Quantized, &TEXTS)) {
                let cosine: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
                assert!(cosine > 0.99, "{}: {cosine}", path.display());
            }
        }
    }

    #[test]
    fn what_is_missing_or_misshapen_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (_, checkpoint, mut tensors) = files(folder.path());
        let name = "encoder.layer.1.output.dense.weight";
        let message = |tensors: &HashMap<String, Tensor>| {
            candle_core::safetensors::save(tensors, &checkpoint).unwrap();
            read_fault(&checkpoint)
        };
        let whole =
            tensors.insert(name.into(), Tensor::zeros((3, 3), DType::F32, &Device::Cpu).unwrap());
        assert!(whole.is_some());
        let text = message(&tensors);
        assert!(text.contains(name) && text.contains("[3, 3]"), "{text}");
        tensors.remove(name);
        let text = message(&tensors);
        assert!(text.contains(name) && text.contains("missing"), "{text}");
        let config = folder.path().join("config.json");
        fs::write(&config, CONFIG.replace("\"gelu\"", "\"relu\"")).unwrap();
        let text = message(&tensors);
        assert!(text.contains("config.json") && text.contains("hidden_act"), "{text}");
        fs::remove_file(&config).unwrap();
        assert!(message(&tensors).contains("config.json"));
        let other = folder.path().join("other.bin");
        fs::write(&other, b"PK\x03\x04").unwrap();
        let text = read_fault(&other);
        assert!(text.contains("other.bin") && text.contains("fetch the model again"), "{text}");
    }

    #[test]
    fn damaged_weights_are_no_vectors() {
        let folder = tempfile::tempdir().unwrap();
        let (_, checkpoint, mut tensors) = files(folder.path());
        let name = "embeddings.LayerNorm.weight";
        tensors.insert(name.into(), Tensor::new(&[f32::NAN; 32], &Device::Cpu).unwrap());
        candle_core::safetensors::save(&tensors, &checkpoint).unwrap();
        let text = read_fault(&checkpoint);
        assert!(text.contains(name) && text.contains("NaN"), "{text}");
    }
}
