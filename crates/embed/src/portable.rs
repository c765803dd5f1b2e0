//! The encoder in candle's own operations, for a device other than the CPU: its padded batches and
//! masks cost a CPU more than a half of its time, and a GPU next to nothing.

use std::collections::HashMap;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, HiddenAct, PositionEmbeddingType};

use crate::bundle::Shape;
use crate::kernels;

/// A BERT encoder with mean pooling on a device.
pub(crate) struct Portable {
    model: BertModel,
    device: Device,
    hidden: usize,
}

impl Portable {
    /// Moves the tensors of a checkpoint, f32, to `device`.
    pub(crate) fn new(
        tensors: HashMap<String, Tensor>,
        shape: &Shape,
        device: Device,
    ) -> Result<Self> {
        let config = Config {
            vocab_size: shape.tokens,
            hidden_size: shape.hidden,
            num_hidden_layers: shape.layers,
            num_attention_heads: shape.heads,
            intermediate_size: shape.intermediate,
            hidden_act: HiddenAct::Gelu,
            hidden_dropout_prob: 0.0,
            max_position_embeddings: shape.positions,
            type_vocab_size: shape.types,
            initializer_range: 0.02,
            layer_norm_eps: f64::from(shape.eps),
            pad_token_id: 0,
            position_embedding_type: PositionEmbeddingType::Absolute,
            use_cache: false,
            classifier_dropout: None,
            model_type: None,
        };
        // f32: half precision with a mask gives NaN on some devices.
        let builder = VarBuilder::from_tensors(tensors, DType::F32, &device);
        Ok(Portable { model: BertModel::load(builder, &config)?, device, hidden: shape.hidden })
    }

    /// A unit vector for every text, or `None` where the result is no finite direction. Texts are
    /// token ids, none empty, none longer than the model has positions.
    pub(crate) fn forward(&self, texts: &[&[u32]]) -> Result<Vec<Option<Vec<f32>>>> {
        let length = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let mut ids = vec![0_u32; texts.len() * length];
        let mut mask = vec![0_u32; texts.len() * length];
        for (row, text) in texts.iter().enumerate() {
            let start = row * length;
            ids[start..start + text.len()].copy_from_slice(text);
            mask[start..start + text.len()].fill(1);
        }
        let ids = Tensor::from_vec(ids, (texts.len(), length), &self.device)?;
        let mask = Tensor::from_vec(mask, (texts.len(), length), &self.device)?;
        let states = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let states: Vec<f32> = states.to_device(&Device::Cpu)?.flatten_all()?.to_vec1()?;
        let rows = states.chunks_exact(length * self.hidden);
        Ok(rows
            .zip(texts)
            .map(|(row, text)| kernels::mean_unit(&row[..text.len() * self.hidden], self.hidden))
            .collect())
    }
}
