//! Element-wise kernels on rows of `f32`: what stands between the matrix products.
//!
//! Candle's own versions call the scalar math library once an element, which costs more than the
//! matrix products themselves. These are plain loops over slices that the compiler turns into vector
//! instructions: `exp` by range reduction and a polynomial (Cephes), `erf` by a rational function
//! (the one of Eigen), sums in sixteen lanes. All are exact to a few units in the last place, and
//! depend on nothing but the row they are given, so that a text has the same vector in any company.

use rayon::prelude::*;

/// Lanes of a sum: a fixed order of addition that vectorises.
const LANES: usize = 16;

/// Rows given to a thread at a time.
const ROWS: usize = 8;

#[inline(always)]
fn fma(a: f32, b: f32, c: f32) -> f32 {
    // Without the instruction, `mul_add` is a slow call that emulates it.
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

/// e^x; underflows to about 1e-38 instead of 0, which no sum here can tell.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LN2_HI: f32 = 0.693_359_4;
    const LN2_LO: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    // Added to a number of this size, the rest rounds to an integer, which then stands in the low
    // bits. A cast would do, but is defined for every input, and that does not vectorise.
    const SHIFT: f32 = 12_582_912.0;
    let shifted = fma(x, std::f32::consts::LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = fma(-n, LN2_LO, fma(-n, LN2_HI, x));
    let mut p = 1.987_569_1e-4;
    p = fma(p, r, 1.398_199_9e-3);
    p = fma(p, r, 8.333_452e-3);
    p = fma(p, r, 4.166_579_6e-2);
    p = fma(p, r, 1.666_666_5e-1);
    p = fma(p, r, 0.5);
    let p = fma(p, r * r, r + 1.0);
    // 2^n, put together from its bits; n lies in -126..=127.
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1f32.to_bits()))
}

/// The error function.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let s = x * x;
    let mut p = -2.726_142_3e-10;
    p = fma(p, s, 2.770_681_4e-8);
    p = fma(p, s, -2.101_024e-6);
    p = fma(p, s, -5.692_506_3e-5);
    p = fma(p, s, -7.349_906_3e-4);
    p = fma(p, s, -2.954_6e-3);
    p = fma(p, s, -1.609_603_3e-2);
    let mut q = -1.456_607_2e-5;
    q = fma(q, s, -2.133_740_6e-4);
    q = fma(q, s, -1.682_827e-3);
    q = fma(q, s, -7.373_329e-3);
    q = fma(q, s, -1.426_473_9e-2);
    x * p / q
}

#[inline(always)]
fn lanes_sum(row: &[f32], mut term: impl FnMut(f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += term(x);
        }
    }
    let mut total = 0.0;
    for lane in lanes {
        total += lane;
    }
    for &x in chunks.remainder() {
        total += term(x);
    }
    total
}

#[inline(always)]
fn lanes_max(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    let all = lanes.iter().chain(chunks.remainder());
    all.fold(f32::NEG_INFINITY, |most, &x| if x > most { x } else { most })
}

/// Adds `bias` to every row.
pub(crate) fn add_bias(data: &mut [f32], bias: &[f32]) {
    data.par_chunks_mut(bias.len()).with_min_len(ROWS).for_each(|row| {
        for (x, b) in row.iter_mut().zip(bias) {
            *x += b;
        }
    });
}

/// Adds `bias` to every row, then applies the exact GELU: x Φ(x).
pub(crate) fn bias_gelu(data: &mut [f32], bias: &[f32]) {
    data.par_chunks_mut(bias.len()).with_min_len(ROWS).for_each(|row| {
        for (x, b) in row.iter_mut().zip(bias) {
            let v = *x + b;
            let half = 0.5 * v;
            *x = fma(half, erf(v * std::f32::consts::FRAC_1_SQRT_2), half);
        }
    });
}

/// The softmax of every row of `width` numbers, each multiplied by `scale` (positive) beforehand.
pub(crate) fn softmax(data: &mut [f32], width: usize, scale: f32) {
    data.par_chunks_mut(width).with_min_len(ROWS).for_each(|row| {
        let most = lanes_max(row);
        for x in row.iter_mut() {
            *x = exp((*x - most) * scale);
        }
        let inverse = 1.0 / lanes_sum(row, |x| x);
        for x in row.iter_mut() {
            *x *= inverse;
        }
    });
}

/// Layer normalisation parameters.
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub eps: f32,
}

impl Norm {
    /// Normalises one row in place.
    pub(crate) fn row(&self, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = lanes_sum(row, |x| x) / count;
        let variance = lanes_sum(row, |x| (x - mean) * (x - mean)) / count;
        let inverse = 1.0 / (variance + self.eps).sqrt();
        for ((x, w), b) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
            *x = fma((*x - mean) * inverse, *w, *b);
        }
    }

    /// For every row: y = norm(y + bias + x).
    pub(crate) fn residual(&self, y: &mut [f32], bias: &[f32], x: &[f32]) {
        let width = self.weight.len();
        let rows = y.par_chunks_mut(width).zip(x.par_chunks(width)).with_min_len(ROWS);
        rows.for_each(|(row, before)| {
            for ((v, b), x) in row.iter_mut().zip(bias).zip(before) {
                *v += b + x;
            }
            self.row(row);
        });
    }
}

/// The mean of rows of `width`, scaled to unit length; `None` if that is no finite direction.
pub(crate) fn mean_unit(rows: &[f32], width: usize) -> Option<Vec<f32>> {
    let mut sum = vec![0f32; width];
    for row in rows.chunks_exact(width) {
        for (s, x) in sum.iter_mut().zip(row) {
            *s += x;
        }
    }
    // The number of rows cancels out in the division by the length.
    let length = sum.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if !length.is_finite() || length < 1e-12 {
        return None;
    }
    let inverse = (1.0 / length) as f32;
    for x in &mut sum {
        *x *= inverse;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// erf by its Taylor series in double precision; good for |x| up to about 4.
    fn erf_reference(x: f64) -> f64 {
        let mut term = x;
        let mut sum = x;
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn exp_and_erf_are_right() {
        for i in -8000..=0 {
            let x = i as f32 / 100.0;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got - want).abs() <= 3e-7 * want + 1e-37, "exp({x}): {got} {want}");
        }
        for i in -380..=380 {
            let x = i as f32 / 100.0;
            let (got, want) = (f64::from(erf(x)), erf_reference(f64::from(x)));
            assert!((got - want).abs() < 5e-7, "erf({x}): {got} {want}");
        }
        assert!((erf(50.0) - 1.0).abs() < 1e-6 && (erf(-50.0) + 1.0).abs() < 1e-6);
    }

    #[test]
    fn gelu_is_the_exact_one() {
        let mut data: Vec<f32> = (-600..600).map(|i| i as f32 / 100.0).collect();
        let width = data.len();
        bias_gelu(&mut data, &vec![0.0; width]);
        for (i, got) in (-600..600).zip(&data) {
            let x = f64::from(i) / 100.0;
            let root = x * std::f64::consts::FRAC_1_SQRT_2;
            let erf = if root.abs() > 3.9 { root.signum() } else { erf_reference(root) };
            let want = 0.5 * x * (1.0 + erf);
            assert!((f64::from(*got) - want).abs() < 2e-6, "gelu({x}): {got} {want}");
        }
    }

    #[test]
    fn a_mean_without_direction_is_refused() {
        assert_eq!(mean_unit(&[1.0, 0.0, -1.0, 0.0], 2), None);
        assert_eq!(mean_unit(&[f32::NAN, 0.0], 2), None);
        assert_eq!(mean_unit(&[3.0, 4.0], 2), Some(vec![0.6, 0.8]));
    }

    proptest! {
        #[test]
        fn softmax_sums_to_one_and_keeps_order(row in prop::collection::vec(-50f32..50.0, 1..80)) {
            let mut out = row.clone();
            softmax(&mut out, row.len(), 0.3);
            prop_assert!((out.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            for (a, x) in row.iter().zip(&out) {
                for (b, y) in row.iter().zip(&out) {
                    prop_assert!(a < b || x >= y);
                }
            }
        }

        #[test]
        fn a_normalised_row_has_mean_zero_and_variance_one(
            row in prop::collection::vec(-9f32..9.0, 32..33),
        ) {
            let norm = Norm { weight: vec![1.0; 32], bias: vec![0.0; 32], eps: 1e-12 };
            let spread = row.iter().fold(f32::NEG_INFINITY, |a, &x| a.max(x))
                - row.iter().fold(f32::INFINITY, |a, &x| a.min(x));
            prop_assume!(spread > 0.1);
            let mut out = row.clone();
            norm.row(&mut out);
            let mean = out.iter().sum::<f32>() / 32.0;
            let variance = out.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / 32.0;
            prop_assert!(mean.abs() < 1e-4 && (variance - 1.0).abs() < 1e-3);
        }
    }
}
