//! Measures of a ranking with one right text a question, and how far they can be trusted.

use serde::{Deserialize, Serialize};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// A mean over questions with its 95 % interval, by the percentile bootstrap (Efron, 1979) over the
/// questions, with a fixed seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The usual measures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Share of questions whose text comes first.
    pub r1: Estimate,
    /// Share whose text is among the first five.
    pub r5: Estimate,
    /// Share whose text is among the first ten.
    pub r10: Estimate,
    /// Mean of 1 / rank.
    pub mrr: Estimate,
    /// Normalised discounted cumulative gain of the first ten (Järvelin and Kekäläinen, 2002).
    pub ndcg10: Estimate,
}

impl Measures {
    /// From the rank of the right text for each question, 1 the first, none when it was not found.
    pub fn of(ranks: &[Option<usize>]) -> Self {
        let within = |k: usize| {
            estimate(ranks, |rank| f64::from(u8::from(rank.is_some_and(|rank| rank <= k))))
        };
        let gain = |rank: usize| 1.0 / (rank as f64 + 1.0).log2();
        Measures {
            r1: within(1),
            r5: within(5),
            r10: within(10),
            mrr: estimate(ranks, |rank| rank.map_or(0.0, |rank| 1.0 / rank as f64)),
            ndcg10: estimate(ranks, |rank| rank.filter(|&rank| rank <= 10).map_or(0.0, gain)),
        }
    }
}

fn estimate(ranks: &[Option<usize>], value: impl Fn(Option<usize>) -> f64) -> Estimate {
    let values: Vec<f64> = ranks.iter().map(|&rank| value(rank)).collect();
    Estimate::of(values.len(), |chosen| {
        chosen.iter().map(|&at| values[at]).sum::<f64>() / chosen.len().max(1) as f64
    })
}

impl Estimate {
    /// A statistic of `count` things, and its interval: `statistic` is computed of all of them and of
    /// resamples, which name each thing by its number.
    pub fn of(count: usize, statistic: impl Fn(&[usize]) -> f64) -> Self {
        let all: Vec<usize> = (0..count).collect();
        let mean = statistic(&all);
        let mut random = SplitMix(20_260_101);
        let mut values: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let chosen: Vec<usize> = (0..count).map(|_| random.below(count)).collect();
                statistic(&chosen)
            })
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = values.len().saturating_sub(1) as f64;
            values.get((last * share).round() as usize).copied().unwrap_or(mean)
        };
        Estimate { mean, low: at(0.025), high: at(0.975) }
    }

    /// The share of `true`, or nothing when there is none of either.
    pub fn share(values: &[bool]) -> Option<Self> {
        let count = values.len();
        let share = |chosen: &[usize]| {
            chosen.iter().filter(|&&at| values[at]).count() as f64 / chosen.len().max(1) as f64
        };
        (count > 0).then(|| Self::of(count, share))
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((u128::from(z) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_of_known_ranks() {
        let measures = Measures::of(&[Some(1), Some(2), Some(7), None]);
        assert_eq!(measures.r1.mean, 0.25);
        assert_eq!(measures.r5.mean, 0.5);
        assert_eq!(measures.r10.mean, 0.75);
        assert!((measures.mrr.mean - (1.0 + 0.5 + 1.0 / 7.0) / 4.0).abs() < 1e-12);
        let gains = 1.0 + 1.0 / 3f64.log2() + 1.0 / 3.0;
        assert!((measures.ndcg10.mean - gains / 4.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_holds_the_mean_and_narrows_with_the_number() {
        let few: Vec<Option<usize>> = (0..20).map(|at| (at % 2 == 0).then_some(1)).collect();
        let many = few.repeat(50);
        let (few, many) = (Measures::of(&few).r1, Measures::of(&many).r1);
        assert!(few.low < 0.5 && few.high > 0.5);
        assert!(many.high - many.low < (few.high - few.low) / 4.0);
    }

    #[test]
    fn no_question_at_all_is_no_division_by_nothing() {
        assert_eq!(Measures::of(&[]).r1, Estimate { mean: 0.0, low: 0.0, high: 0.0 });
    }
}
