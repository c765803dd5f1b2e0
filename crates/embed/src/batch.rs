//! Which texts are computed together.

use std::ops::Range;

/// An order of computation: texts sorted by length, longest first, cut into runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The texts in the order of computation.
    pub order: Vec<usize>,
    /// The runs of `order` to be computed together.
    pub runs: Vec<Range<usize>>,
}

/// Plans texts of these lengths so that no run has more than `budget` tokens, or else holds a
/// single text. The longest come first, so that the last runs, when threads run out of work one
/// after another, are short.
pub(crate) fn plan(lengths: &[usize], budget: usize) -> Plan {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(lengths[text]));
    let mut runs = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (at, &text) in order.iter().enumerate() {
        if at > start && tokens + lengths[text] > budget {
            runs.push(start..at);
            (start, tokens) = (at, 0);
        }
        tokens += lengths[text];
    }
    if start < order.len() {
        runs.push(start..order.len());
    }
    Plan { order, runs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_text_is_planned_once_and_within_the_budget(
            lengths in prop::collection::vec(1usize..600, 0..200),
            budget in 1usize..2000,
        ) {
            let plan = plan(&lengths, budget);
            let mut seen: Vec<_> =
                plan.runs.iter().flat_map(|run| &plan.order[run.clone()]).copied().collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
            for run in plan.runs {
                let tokens: usize = plan.order[run.clone()].iter().map(|&t| lengths[t]).sum();
                prop_assert!(run.len() == 1 || tokens <= budget);
            }
        }
    }
}
