//! How like two words, or two wordings, are. `site/florilegium.js` does the same.

/// The most single changes (a letter more, less or other, two neighbours exchanged) in which a word may
/// differ from the one that was meant.
pub(crate) fn allowed(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// The number of single changes between two words, if it is at most `most`.
pub(crate) fn distance(one: &[char], other: &[char], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let width = other.len() + 1;
    let mut before = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1; width];
        let mut least = i + 1;
        for (j, b) in other.iter().enumerate() {
            let mut cost = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                cost = cost.min(before[j - 1] + 1);
            }
            row[j + 1] = cost;
            least = least.min(cost);
        }
        if least > most {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    Some(last[width - 1]).filter(|&distance| distance <= most)
}

/// How many pairs of neighbouring characters two folded wordings share, 0 to 1 (Dice).
pub(crate) fn shared_pairs(one: &str, other: &str) -> f64 {
    let pairs = |text: &str| {
        let chars: Vec<char> = text.chars().collect();
        let mut pairs: Vec<(char, char)> =
            chars.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs.sort_unstable();
        pairs
    };
    let (one, other) = (pairs(one), pairs(other));
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < one.len() && j < other.len() {
        match one[i].cmp(&other[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                (i, j, shared) = (i + 1, j + 1, shared + 1);
            }
        }
    }
    2.0 * f64::from(shared) / (one.len() + other.len()) as f64
}
