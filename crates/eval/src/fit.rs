//! Logistic regression by Newton's method with a ridge (le Cessie and van Houwelingen, 1992): a
//! handful of signals, some hundred questions. Deterministic, and small enough to be read.

/// Strength of the ridge on standardised signals.
const RIDGE: f64 = 1.0;
const STEPS: usize = 50;

/// Bias and slopes. Signals are standardised for the fit, so that the ridge holds all back alike; a
/// signal that never varies gets no weight. Both classes count the same, however many there are.
pub(crate) fn fit<const N: usize>(rows: &[([f64; N], bool)]) -> Option<(f64, [f64; N])> {
    let yes = rows.iter().filter(|(_, label)| *label).count();
    let no = rows.len() - yes;
    if yes == 0 || no == 0 {
        return None;
    }
    let weight = |label: bool| rows.len() as f64 / 2.0 / if label { yes as f64 } else { no as f64 };
    let count = rows.len() as f64;
    let mut mean = [0.0; N];
    let mut deviation = [0.0; N];
    for signal in 0..N {
        mean[signal] = rows.iter().map(|(x, _)| x[signal]).sum::<f64>() / count;
        let square = |x: f64| (x - mean[signal]).powi(2);
        deviation[signal] =
            (rows.iter().map(|(x, _)| square(x[signal])).sum::<f64>() / count).sqrt();
    }
    let standard = |x: &[f64; N], signal: usize| {
        if deviation[signal] > 1e-9 { (x[signal] - mean[signal]) / deviation[signal] } else { 0.0 }
    };
    // The bias comes last.
    let size = N + 1;
    let mut beta = vec![0.0; size];
    for _ in 0..STEPS {
        let mut gradient = vec![0.0; size];
        let mut hessian = vec![vec![0.0; size]; size];
        for (signal, row) in hessian.iter_mut().enumerate().take(N) {
            gradient[signal] = -RIDGE * beta[signal];
            row[signal] = RIDGE;
        }
        for (x, label) in rows {
            let features: Vec<f64> = (0..N).map(|s| standard(x, s)).chain([1.0]).collect();
            let sum: f64 = features.iter().zip(&beta).map(|(x, b)| x * b).sum();
            let probability = 1.0 / (1.0 + (-sum).exp());
            let error = f64::from(u8::from(*label)) - probability;
            let curve = probability * (1.0 - probability);
            for (i, a) in features.iter().enumerate() {
                gradient[i] += weight(*label) * error * a;
                for (j, b) in features.iter().enumerate() {
                    hessian[i][j] += weight(*label) * curve * a * b;
                }
            }
        }
        let step = solve(hessian, gradient)?;
        beta.iter_mut().zip(&step).for_each(|(beta, step)| *beta += step);
        if step.iter().all(|step| step.abs() < 1e-9) {
            break;
        }
    }
    let mut slopes = [0.0; N];
    let mut bias = beta[N];
    for signal in 0..N {
        if deviation[signal] > 1e-9 {
            slopes[signal] = beta[signal] / deviation[signal];
            bias -= slopes[signal] * mean[signal];
        }
    }
    Some((bias, slopes))
}

/// Solves a linear system by elimination with pivots.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..size {
            let factor = matrix[row][column] / matrix[column][column];
            right[row] -= factor * right[column];
            let above = matrix[column].clone();
            let row = matrix[row].iter_mut().zip(above).skip(column);
            row.for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|at| matrix[row][at] * solution[at]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    Some(solution)
}

/// Area under the curve of the ROC: the probability that a yes is above a no (Mann and Whitney, 1947).
pub(crate) fn auroc(scores: &[(f64, bool)]) -> f64 {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let yes = sorted.iter().filter(|(_, label)| *label).count() as f64;
    let no = sorted.len() as f64 - yes;
    if yes == 0.0 || no == 0.0 {
        return f64::NAN;
    }
    // Equal scores share their mean rank.
    let mut ranks = 0.0;
    let mut before = 0.0;
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        let rank = before + (same.len() as f64 + 1.0) / 2.0;
        ranks += rank * same.iter().filter(|(_, label)| *label).count() as f64;
        before += same.len() as f64;
    }
    (ranks - yes * (yes + 1.0) / 2.0) / (yes * no)
}

/// The threshold with the best mean of both rates, in the middle between two scores.
pub(crate) fn best_threshold(scores: &[(f64, bool)]) -> f64 {
    let mut sorted: Vec<f64> = scores.iter().map(|(score, _)| *score).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let between = sorted.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
    let rate = |threshold: f64, wanted: bool| {
        let of: Vec<bool> = scores
            .iter()
            .filter(|(_, label)| *label == wanted)
            .map(|(score, _)| (*score >= threshold) == wanted)
            .collect();
        of.iter().filter(|&&right| right).count() as f64 / of.len().max(1) as f64
    };
    let mut best = (0.5, f64::NEG_INFINITY);
    for threshold in between {
        let mean = (rate(threshold, true) + rate(threshold, false)) / 2.0;
        if mean > best.1 {
            best = (threshold, mean);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_regression_is_found_again() {
        // Labels follow x0 - 2 x1 > 0.5; the third signal never varies.
        let rows: Vec<([f64; 3], bool)> = (0..400)
            .map(|n| {
                let x = [f64::from(n % 20) / 10.0 - 1.0, f64::from(n / 20) / 10.0 - 1.0, 7.0];
                (x, x[0] - 2.0 * x[1] > 0.5)
            })
            .collect();
        let (bias, [a, b, constant]) = fit(&rows).unwrap();
        assert!(a > 0.0 && (b / a + 2.0).abs() < 0.15, "{a} {b}");
        assert_eq!(constant, 0.0);
        let score = |x: &[f64; 3]| bias + a * x[0] + b * x[1];
        let right = rows.iter().filter(|(x, label)| (score(x) > 0.0) == *label).count();
        assert!(right > 390, "{right}");
        assert_eq!(fit(&[([1.0], true), ([2.0], true)]), None, "one class teaches nothing");
    }

    #[test]
    fn auroc_counts_pairs_in_order_and_ties_half() {
        assert_eq!(auroc(&[(0.1, false), (0.9, true)]), 1.0);
        assert_eq!(auroc(&[(0.9, false), (0.1, true)]), 0.0);
        assert_eq!(auroc(&[(0.5, false), (0.5, true)]), 0.5);
        let mixed = [(0.1, false), (0.4, true), (0.4, false), (0.8, true)];
        assert_eq!(auroc(&mixed), 0.875);
    }

    #[test]
    fn the_threshold_lies_between_the_classes() {
        let scores = [(0.1, false), (0.2, false), (0.6, true), (0.9, true)];
        assert_eq!(best_threshold(&scores), 0.4);
    }
}
