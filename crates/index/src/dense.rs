//! The vectors of one collection and language: a FAISS index, exact while it is small, and the
//! moments of its vectors, by which scores are standardised.

use std::path::Path;

use faiss::index::flat::FlatIndex;
use faiss::index::io::{read_index, write_index};
use faiss::index::scalar_quantizer::IVFScalarQuantizerIndexImpl;
use faiss::index::{IndexImpl, NativeIndex};
use faiss::{ConcurrentIndex, Idx, Index as _, MetricType, index_factory};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::IndexError;
use crate::fusion::Spread;

/// Up to this many vectors are compared one by one: exact, and on two cores still within some ten
/// milliseconds. Above, an inverted file of half-precision
/// numbers: eight bits (SQ8) cannot tell the ten nearest well enough, .9785 of them with every list
/// looked into (100,000 synthetic vectors, `benches/run.sh search`).
pub const FLAT_UP_TO: usize = 50_000;
/// An inverted file looks into so many of its lists that it finds this share of the true ten nearest.
const RECALL: f64 = 0.99;
/// Vectors by which that number is chosen.
const PROBED: usize = 100;
/// Vectors that an inverted file is trained on, for each of its lists.
const TRAINED_ON: usize = 40;
/// The moments of a larger shard are estimated from this many of its vectors.
const MOMENTS_FROM: usize = 20_000;

/// What kind of FAISS index a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// All vectors as they are, compared one by one.
    Flat,
    /// Vectors in `lists` lists, sixteen bits a number; a search looks into `probes` lists.
    Inverted {
        /// Lists.
        lists: u32,
        /// Lists looked into.
        probes: u32,
    },
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Flat => f.write_str("Flat"),
            Kind::Inverted { lists, probes } => {
                write!(f, "IVF{lists},SQfp16, {probes} lists probed")
            }
        }
    }
}

/// First and second moments of vectors: mean and deviation of their inner products with any question
/// follow from them without a look at the vectors, `q·m` and `qᵀSq − (q·m)²`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moments {
    mean: Vec<f32>,
    /// Means of the products of each two numbers: the upper triangle, row by row.
    products: Vec<f32>,
}

impl Moments {
    fn of(vectors: &[&[f32]], dimension: usize) -> Self {
        let stride = vectors.len().div_ceil(MOMENTS_FROM).max(1);
        let sample: Vec<&[f32]> = vectors.iter().step_by(stride).copied().collect();
        let count = sample.len().max(1) as f32;
        let mean = (0..dimension)
            .map(|at| sample.iter().map(|vector| vector[at]).sum::<f32>() / count)
            .collect();
        let products = (0..dimension)
            .into_par_iter()
            .flat_map_iter(|row| {
                let mut sums = vec![0.0; dimension - row];
                for vector in &sample {
                    let factor = vector[row];
                    for (sum, &x) in sums.iter_mut().zip(&vector[row..]) {
                        *sum += factor * x;
                    }
                }
                sums.into_iter().map(move |sum| sum / count)
            })
            .collect();
        Moments { mean, products }
    }

    /// Mean of the inner products with `question`, and mean of their squares.
    fn with(&self, question: &[f32]) -> (f64, f64) {
        let mut squares = 0.0;
        let mut rest = self.products.as_slice();
        for (at, &factor) in question.iter().enumerate() {
            let (row, next) = rest.split_at(question.len() - at);
            let beyond: f32 = row[1..].iter().zip(&question[at + 1..]).map(|(s, q)| s * q).sum();
            squares += f64::from(factor) * (f64::from(row[0] * factor) + 2.0 * f64::from(beyond));
            rest = next;
        }
        (f64::from(dot(&self.mean, question)), squares)
    }

    /// Whether they are moments of vectors of this many numbers.
    pub(crate) fn fit(&self, dimension: usize) -> bool {
        self.mean.len() == dimension && self.products.len() == dimension * (dimension + 1) / 2
    }
}

/// Mean and deviation of the inner products of `question` with the vectors of several shards, each
/// given by its moments and its size.
pub(crate) fn spread<'a>(
    question: &[f32],
    shards: impl Iterator<Item = (&'a Moments, usize)>,
) -> Spread {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (moments, size) in shards {
        let (mean, square) = moments.with(question);
        count += size as f64;
        sum += mean * size as f64;
        squares += square * size as f64;
    }
    Spread::new(count, sum, squares)
}

/// The FAISS index of a shard.
pub(crate) enum Dense {
    Flat(FlatIndex),
    Inverted(IVFScalarQuantizerIndexImpl<IndexImpl>),
}

impl Dense {
    /// Makes an index of vectors and writes it to `path`; up to `flat_up_to` are compared one by one.
    pub(crate) fn write(
        path: &Path,
        vectors: &[&[f32]],
        dimension: usize,
        flat_up_to: usize,
    ) -> Result<(Kind, Moments), IndexError> {
        let moments = Moments::of(vectors, dimension);
        let numbers = vectors.concat();
        let size = u32::try_from(dimension).unwrap_or(u32::MAX);
        let name = path.to_string_lossy();
        if vectors.len() <= flat_up_to {
            let mut index = FlatIndex::new(size, MetricType::InnerProduct)?;
            index.add(&numbers)?;
            write_index(&index, name)?;
            return Ok((Kind::Flat, moments));
        }
        let lists = ((vectors.len() as f64).sqrt() * 4.0) as u32;
        let mut index =
            index_factory(size, format!("IVF{lists},SQfp16"), MetricType::InnerProduct)?;
        let stride = (vectors.len() / (lists as usize * TRAINED_ON)).max(1);
        let training: Vec<f32> =
            vectors.iter().step_by(stride).flat_map(|vector| vector.iter().copied()).collect();
        index.train(&training)?;
        index.add(&numbers)?;
        let mut index = index.into_ivf_scalar_quantizer()?;
        let probes = choose_probes(&mut index, vectors, lists)?;
        write_index(&index, name)?;
        Ok((Kind::Inverted { lists, probes }, moments))
    }

    /// Reads what [`Dense::write`] wrote.
    pub(crate) fn read(path: &Path, kind: Kind) -> Result<Self, IndexError> {
        let index = read_index(path.to_string_lossy())?;
        Ok(match kind {
            Kind::Flat => Dense::Flat(index.into_flat()?),
            Kind::Inverted { probes, .. } => {
                let mut index = index.into_ivf_scalar_quantizer()?;
                index.set_nprobe(probes);
                map_directly(&index)?;
                Dense::Inverted(index)
            }
        })
    }

    /// Vectors in the index, and numbers in a vector.
    pub(crate) fn shape(&self) -> (usize, usize) {
        let (count, dimension) = match self {
            Dense::Flat(index) => (index.ntotal(), index.d()),
            Dense::Inverted(index) => (index.ntotal(), index.d()),
        };
        (count as usize, dimension as usize)
    }

    /// Positions and inner products of the `k` nearest.
    pub(crate) fn nearest(
        &self,
        question: &[f32],
        k: usize,
    ) -> Result<Vec<(usize, f32)>, IndexError> {
        match self {
            Dense::Flat(index) => {
                let found = ConcurrentIndex::search(index, question, k)?;
                let places = found.labels.iter().map(|label| label.get());
                let pairs = places.zip(found.distances);
                Ok(pairs.filter_map(|(at, score)| Some((at? as usize, score))).collect())
            }
            Dense::Inverted(index) => search(index, question, k),
        }
    }

    /// The inner product of `question` and the vector at `position`.
    pub(crate) fn score(&self, question: &[f32], position: usize) -> Result<f32, IndexError> {
        let mut vector = vec![0.0; question.len()];
        let at = Idx::new(position as u64);
        match self {
            Dense::Flat(index) => index.reconstruct(at, &mut vector)?,
            Dense::Inverted(index) => index.reconstruct(at, &mut vector)?,
        }
        Ok(dot(&vector, question))
    }
}

/// The binding searches an inverted file through `&self` only when it knows the type of the coarse
/// quantizer, which it forgets in a cast. FAISS itself searches any CPU index from several threads.
#[allow(unsafe_code)]
fn search(
    index: &IVFScalarQuantizerIndexImpl<IndexImpl>,
    question: &[f32],
    k: usize,
) -> Result<Vec<(usize, f32)>, IndexError> {
    if question.len() != index.d() as usize {
        return Err(IndexError::Question("it is not one of this index".into()));
    }
    let mut scores = vec![0.0_f32; k];
    let mut labels = vec![-1_i64; k];
    // SAFETY: the index lives through the call and is not changed by it; `question` holds one vector
    // of its dimension; both results have room for `k` entries.
    let status = unsafe {
        faiss_sys::faiss_Index_search(
            index.inner_ptr(),
            1,
            question.as_ptr(),
            k as i64,
            scores.as_mut_ptr(),
            labels.as_mut_ptr(),
        )
    };
    refused(status)?;
    let found = labels.into_iter().zip(scores);
    Ok(found.filter_map(|(label, score)| Some((usize::try_from(label).ok()?, score))).collect())
}

/// Lets an inverted file give back the vector at a position. The binding does not offer it.
#[allow(unsafe_code)]
fn map_directly(index: &IVFScalarQuantizerIndexImpl<IndexImpl>) -> Result<(), IndexError> {
    // SAFETY: the pointer is that of a live inverted file; the call fills a table inside it.
    let status = unsafe { faiss_sys::faiss_IndexIVF_make_direct_map(index.inner_ptr().cast(), 1) };
    refused(status)
}

fn refused(status: i32) -> Result<(), IndexError> {
    if status == 0 { Ok(()) } else { Err(IndexError::FaissStatus(status)) }
}

/// The smallest number of lists, a power of two, in which [`RECALL`] of the ten nearest are found, by a
/// sample of the vectors themselves.
fn choose_probes(
    index: &mut IVFScalarQuantizerIndexImpl<IndexImpl>,
    vectors: &[&[f32]],
    lists: u32,
) -> Result<u32, IndexError> {
    let sample: Vec<&[f32]> =
        vectors.iter().step_by((vectors.len() / PROBED).max(1)).take(PROBED).copied().collect();
    let truth: Vec<Vec<usize>> = sample
        .par_iter()
        .map(|question| {
            let mut scores: Vec<(usize, f32)> =
                vectors.iter().map(|vector| dot(vector, question)).enumerate().collect();
            scores.select_nth_unstable_by(10, |a, b| b.1.total_cmp(&a.1));
            scores.truncate(10);
            scores.into_iter().map(|(at, _)| at).collect()
        })
        .collect();
    let mut probes = 8;
    while probes < lists {
        index.set_nprobe(probes);
        let mut found = 0;
        for (question, truth) in sample.iter().zip(&truth) {
            let nearest = search(index, question, 10)?;
            found += nearest.iter().filter(|(at, _)| truth.contains(at)).count();
        }
        if found as f64 >= RECALL * (sample.len() * 10) as f64 {
            break;
        }
        probes *= 2;
    }
    Ok(probes.min(lists))
}

/// The inner product of two vectors: their cosine, when both have unit length.
pub fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Unit vectors in clusters, as those of texts are; always the same.
    pub(crate) fn clustered(count: usize, dimension: usize) -> Vec<Vec<f32>> {
        let mut state = 7_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let centres: Vec<Vec<f32>> =
            (0..count.div_ceil(50)).map(|_| (0..dimension).map(|_| random()).collect()).collect();
        (0..count)
            .map(|at| {
                let centre = &centres[at % centres.len()];
                let vector: Vec<f32> = centre.iter().map(|x| x + 0.4 * random()).collect();
                let norm = dot(&vector, &vector).sqrt();
                vector.iter().map(|x| x / norm).collect()
            })
            .collect()
    }

    #[test]
    fn moments_give_the_spread_of_all_scores() {
        let vectors = [[0.6, 0.8, 0.0], [0.0, 0.6, -0.8], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let vectors: Vec<&[f32]> = vectors.iter().map(<[f32; 3]>::as_slice).collect();
        let question = [0.48, 0.6, 0.64];
        let moments = Moments::of(&vectors, 3);
        let scores: Vec<f64> = vectors.iter().map(|v| f64::from(dot(v, &question))).collect();
        let (mean, squares) = moments.with(&question);
        assert!((mean - scores.iter().sum::<f64>() / 4.0).abs() < 1e-6);
        assert!((squares - scores.iter().map(|x| x * x).sum::<f64>() / 4.0).abs() < 1e-6);
    }

    #[test]
    fn an_inverted_file_finds_nearly_what_comparing_all_finds_from_many_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        let vectors = clustered(4000, 16);
        let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
        let (kind, _) = Dense::write(&path, &vectors, 16, 1000).unwrap();
        assert!(matches!(kind, Kind::Inverted { .. }), "{kind}");
        let inverted = Dense::read(&path, kind).unwrap();
        let (kind, _) = Dense::write(&path, &vectors, 16, 4000).unwrap();
        assert_eq!(kind, Kind::Flat);
        let flat = Dense::read(&path, kind).unwrap();
        let found: usize = vectors
            .par_iter()
            .step_by(40)
            .map(|question| {
                let truth = flat.nearest(question, 10).unwrap();
                let nearest = inverted.nearest(question, 10).unwrap();
                nearest.iter().filter(|(at, _)| truth.iter().any(|(other, _)| other == at)).count()
            })
            .sum();
        assert!(found >= 950, "{found} of 1000");
        for at in [0, 17, 3999] {
            let exact = flat.score(vectors[5], at).unwrap();
            let stored = inverted.score(vectors[5], at).unwrap();
            assert!((exact - stored).abs() < 0.02, "{exact} {stored}");
        }
    }
}
