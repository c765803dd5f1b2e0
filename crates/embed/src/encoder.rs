//! The BERT encoder.
//!
//! The tokens of all texts of a batch stand below each other in one matrix, without padding: the
//! linear layers see one tall matrix, the attention sees each text by itself. So nothing is computed
//! for padding, no mask is needed, and what comes out for a text does not depend on its company.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{
    CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Module, Result, Storage, Tensor, bail,
};
use rayon::prelude::*;

use crate::bundle::Shape;
use crate::kernels::{self, Norm};

/// Attention scores held at a time, so that they stay in a core's own cache: 1 MiB.
const SCORES: usize = 1 << 18;

/// The token embeddings.
pub(crate) enum Table {
    Plain(Tensor),
    Quantized(Arc<QTensor>),
}

/// The matrix of a linear layer.
pub(crate) enum Product {
    /// f32, [inputs, outputs]: in this order a product with few rows, a question, is faster by a
    /// third than in the order of the checkpoint, and one with many rows is as fast.
    Plain(Tensor),
    /// Blocks of small integers; the inputs are quantized on the fly.
    Quantized(QMatMul),
}

/// A linear layer. The bias is left to the kernel that comes next.
pub(crate) struct Linear {
    pub product: Product,
    pub bias: Vec<f32>,
}

impl Linear {
    /// [tokens, inputs] to [tokens, outputs], without the bias.
    fn multiply(&self, x: &Tensor) -> Result<Tensor> {
        match &self.product {
            Product::Plain(weight) => x.matmul(weight),
            Product::Quantized(weight) => weight.forward(x),
        }
    }
}

/// One block of the encoder.
pub(crate) struct Layer {
    pub query_key_value: Linear,
    pub attention: Linear,
    pub attention_norm: Norm,
    pub widen: Linear,
    pub narrow: Linear,
    pub norm: Norm,
}

/// A BERT encoder with mean pooling.
pub(crate) struct Encoder {
    pub shape: Shape,
    pub table: Table,
    /// Position embeddings with the embedding of token type 0 added, [positions, hidden].
    pub places: Vec<f32>,
    pub norm: Norm,
    pub layers: Vec<Layer>,
}

impl Encoder {
    /// A unit vector for every text, or `None` where the result is no finite direction. Texts are
    /// token ids, none empty, none longer than the model has positions.
    pub(crate) fn forward(&self, texts: &[&[u32]]) -> Result<Vec<Option<Vec<f32>>>> {
        let states = self.states(texts)?;
        let hidden = self.shape.hidden;
        with_values(&states, |values| {
            let mut start = 0;
            texts
                .iter()
                .map(|text| {
                    let end = start + text.len() * hidden;
                    let vector = kernels::mean_unit(&values[start..end], hidden);
                    start = end;
                    vector
                })
                .collect()
        })
    }

    /// The last hidden states of all tokens, [tokens, hidden].
    fn states(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let mut x = self.embed(texts)?;
        for layer in &self.layers {
            let qkv = layer.query_key_value.multiply(&x)?;
            change(&qkv, |values| kernels::add_bias(values, &layer.query_key_value.bias))?;
            let context = self.attend(&qkv, texts)?;
            let y = layer.attention.multiply(&context)?;
            combine(&y, &x, |y, x| layer.attention_norm.residual(y, &layer.attention.bias, x))?;
            x = y;
            let wide = layer.widen.multiply(&x)?;
            change(&wide, |values| kernels::bias_gelu(values, &layer.widen.bias))?;
            let y = layer.narrow.multiply(&wide)?;
            combine(&y, &x, |y, x| layer.norm.residual(y, &layer.narrow.bias, x))?;
            x = y;
        }
        Ok(x)
    }

    fn embed(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let ids: Vec<u32> = texts.concat();
        let ids = Tensor::new(ids, &Device::Cpu)?;
        let x = match &self.table {
            Table::Plain(table) => table.index_select(&ids, 0)?,
            Table::Quantized(table) => table.embedding(&ids)?,
        };
        let hidden = self.shape.hidden;
        let places: Vec<usize> = texts.iter().flat_map(|text| 0..text.len()).collect();
        change(&x, |values| {
            values.par_chunks_mut(hidden).zip(&places).for_each(|(row, &place)| {
                let place = &self.places[place * hidden..(place + 1) * hidden];
                for (value, p) in row.iter_mut().zip(place) {
                    *value += p;
                }
                self.norm.row(row);
            });
        })?;
        Ok(x)
    }

    /// Attention of each text to itself: [tokens, 3 × hidden] to [tokens, hidden].
    fn attend(&self, qkv: &Tensor, texts: &[&[u32]]) -> Result<Tensor> {
        let (hidden, heads) = (self.shape.hidden, self.shape.heads);
        let size = hidden / heads;
        let scale = 1.0 / (size as f32).sqrt();
        let tokens = qkv.dim(0)?;
        let mut out = vec![0f32; tokens * hidden];
        let mut start = 0;
        for text in texts {
            let length = text.len();
            // [length, 3 × hidden] seen as three of [heads, length, size]; nothing is copied.
            let rows = qkv.narrow(0, start, length)?.reshape((length, 3 * heads, size))?;
            let part = |which: usize, first: usize, count: usize| {
                rows.narrow(1, which * heads + first, count)?.transpose(0, 1)
            };
            let rows_out = &mut out[start * hidden..(start + length) * hidden];
            let together = (SCORES / (length * length)).clamp(1, heads);
            let mut first = 0;
            while first < heads {
                let count = together.min(heads - first);
                let scores = part(0, first, count)?.matmul(&part(1, first, count)?.t()?)?;
                change(&scores, |values| kernels::softmax(values, length, scale))?;
                let context = scores.matmul(&part(2, first, count)?)?;
                with_values(&context, |values| {
                    for (head, values) in values.chunks_exact(length * size).enumerate() {
                        let column = (first + head) * size;
                        for (row, value) in
                            rows_out.chunks_exact_mut(hidden).zip(values.chunks_exact(size))
                        {
                            row[column..column + size].copy_from_slice(value);
                        }
                    }
                })?;
                first += count;
            }
            start += length;
        }
        Tensor::from_vec(out, (tokens, hidden), &Device::Cpu)
    }
}

/// Reads the numbers of a contiguous f32 tensor in place.
fn with_values<R>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { bail!("a tensor left the CPU") };
    Ok(read(values(storage, layout)?))
}

fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("a tensor is not contiguous")
    };
    Ok(&storage.as_slice::<f32>()?[start..end])
}

/// Changes the numbers of a contiguous f32 tensor in place. Its storage must be its own.
fn change(tensor: &Tensor, with: impl Fn(&mut [f32])) -> Result<()> {
    tensor.inplace_op1(&Change(with))
}

/// Changes the numbers of `target` in place, reading those of `other`.
fn combine(target: &Tensor, other: &Tensor, with: impl Fn(&mut [f32], &[f32])) -> Result<()> {
    target.inplace_op2(other, &Combine(with))
}

struct Change<F>(F);

impl<F: Fn(&mut [f32])> InplaceOp1 for Change<F> {
    fn name(&self) -> &'static str {
        "change"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        (self.0)(values_mut(storage, layout)?);
        Ok(())
    }
}

struct Combine<F>(F);

impl<F: Fn(&mut [f32], &[f32])> InplaceOp2 for Combine<F> {
    fn name(&self) -> &'static str {
        "combine"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        layout: &Layout,
        other: &CpuStorage,
        other_layout: &Layout,
    ) -> Result<()> {
        (self.0)(values_mut(storage, layout)?, values(other, other_layout)?);
        Ok(())
    }
}

fn values_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("a tensor is not contiguous")
    };
    match storage {
        CpuStorage::F32(values) => Ok(&mut values[start..end]),
        _ => bail!("a tensor is not f32"),
    }
}
