//! How nearness in meaning and agreement in words are put together.

use serde::{Deserialize, Serialize};

/// A way of putting both scores of a passage together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// The sum of both scores, each standardised by its mean and deviation over all passages that
    /// the filter lets through. It did best in every set that was tried; see `make eval`.
    #[default]
    Standardised,
    /// Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009), `1 / (60 + rank)` summed.
    Reciprocal,
    /// Vectors alone.
    Dense,
    /// Words alone.
    Lexical,
}

/// How passages are found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ranking {
    /// How the two scores are put together.
    pub fusion: Fusion,
    /// Weight of the words against the vectors' 1.
    pub lexical_weight: f32,
    /// Passages that each side proposes, when more than are asked for.
    pub pool: usize,
}

impl Default for Ranking {
    /// The weight did best, or next to best, on XQuAD (en, el, de, el on en), PIAF (fr) and the CNIL
    /// wordings (fr), which are all flat between .3 and .6.
    fn default() -> Self {
        Ranking { fusion: Fusion::Standardised, lexical_weight: 0.4, pool: 200 }
    }
}

/// Constant of reciprocal rank fusion, as its authors have it.
const RANKS: f32 = 60.0;

/// Mean and standard deviation of a score over all passages that may be found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    mean: f64,
    deviation: f64,
}

impl Spread {
    /// From the number of passages, the sum of their scores, and that of the squares.
    pub(crate) fn new(count: f64, sum: f64, squares: f64) -> Self {
        let mean = sum / count.max(1.0);
        let variance = squares / count.max(1.0) - mean * mean;
        Spread { mean, deviation: variance.max(0.0).sqrt() }
    }

    fn standardise(self, score: f32) -> f64 {
        // Scores that are all alike say nothing.
        if self.deviation < 1e-9 { 0.0 } else { (f64::from(score) - self.mean) / self.deviation }
    }
}

/// A passage with both of its scores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scored {
    pub(crate) passage: usize,
    pub(crate) dense: f32,
    pub(crate) lexical: f32,
}

impl Ranking {
    /// The fused score of each passage.
    pub(crate) fn fuse(&self, scored: &[Scored], dense: Spread, lexical: Spread) -> Vec<f32> {
        match self.fusion {
            Fusion::Dense => scored.iter().map(|s| s.dense).collect(),
            Fusion::Lexical => scored.iter().map(|s| s.lexical).collect(),
            Fusion::Standardised => scored
                .iter()
                .map(|s| {
                    let words = lexical.standardise(s.lexical) * f64::from(self.lexical_weight);
                    (dense.standardise(s.dense) + words) as f32
                })
                .collect(),
            Fusion::Reciprocal => {
                let meaning = ranks(scored, |s| s.dense);
                let words = ranks(scored, |s| s.lexical);
                let part = |rank: usize| 1.0 / (RANKS + rank as f32);
                (0..scored.len())
                    .map(|at| {
                        let shares_words = scored[at].lexical > 0.0;
                        let words = if shares_words { part(words[at]) } else { 0.0 };
                        part(meaning[at]) + self.lexical_weight * words
                    })
                    .collect()
            }
        }
    }
}

/// The rank of each passage by a score, 1 the best.
fn ranks(scored: &[Scored], score: impl Fn(&Scored) -> f32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scored.len()).collect();
    order.sort_by(|&a, &b| {
        let (one, other) = (&scored[a], &scored[b]);
        score(other).total_cmp(&score(one)).then(one.passage.cmp(&other.passage))
    });
    let mut ranks = vec![0; scored.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank + 1;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(scores: &[(f32, f32)]) -> Vec<Scored> {
        let one = |(passage, &(dense, lexical))| Scored { passage, dense, lexical };
        scores.iter().enumerate().map(one).collect()
    }

    fn best(ranking: &Ranking, scores: &[(f32, f32)]) -> usize {
        let scored = scored(scores);
        let of = |score: fn(&Scored) -> f32| {
            let all = scored.iter().map(|s| f64::from(score(s)));
            Spread::new(scored.len() as f64, all.clone().sum(), all.map(|x| x * x).sum())
        };
        let fused = ranking.fuse(&scored, of(|s| s.dense), of(|s| s.lexical));
        (0..fused.len()).max_by(|&a, &b| fused[a].total_cmp(&fused[b])).unwrap()
    }

    #[test]
    fn each_way_puts_first_what_it_should() {
        // Nearest in meaning, most words in common, good at both.
        let scores = [(0.90, 0.0), (0.70, 9.0), (0.89, 8.0), (0.79, 0.0), (0.80, 0.0)];
        let with = |fusion| Ranking { fusion, lexical_weight: 1.0, ..Ranking::default() };
        assert_eq!(best(&with(Fusion::Dense), &scores), 0);
        assert_eq!(best(&with(Fusion::Lexical), &scores), 1);
        assert_eq!(best(&with(Fusion::Standardised), &scores), 2);
        assert_eq!(best(&with(Fusion::Reciprocal), &scores), 2);
    }

    #[test]
    fn scores_that_are_all_alike_do_not_divide_by_nothing() {
        let scores = [(0.5, 0.0), (0.5, 0.0)];
        let scored = scored(&scores);
        let none = Spread::new(2.0, 0.0, 0.0);
        let fused = Ranking::default().fuse(&scored, none, none);
        assert!(fused.iter().all(|x| x.is_finite()));
    }
}
