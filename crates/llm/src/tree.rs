//! Which prompts share a beginning: a tree in which every shared token stands once.

/// A stretch of tokens shared by several prompts, and what hangs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// A prompt that begins with the stretch.
    pub prompt: usize,
    /// Tokens from the start of that prompt to the end of the stretch.
    pub length: usize,
    /// Prompts that go on alone from here.
    pub leaves: Vec<usize>,
    /// Longer stretches shared by some of the prompts.
    pub children: Vec<Node>,
}

/// A stretch shorter than this is computed again for each prompt rather than shared: a call of its
/// own for a few tokens costs more than it saves.
const WORTH_SHARING: usize = 12;

/// Arranges prompts by their shared beginnings. Every prompt is a leaf exactly once, and every leaf
/// has at least one token of its own (its last: the one whose logits are read).
pub(crate) fn arrange<T: Ord>(prompts: &[Vec<T>]) -> Node {
    let mut order: Vec<usize> = (0..prompts.len()).collect();
    order.sort_by(|&a, &b| prompts[a].cmp(&prompts[b]));
    let mut root = Node { prompt: 0, length: 0, leaves: Vec::new(), children: Vec::new() };
    grow(prompts, &order, &mut root);
    root
}

/// Hangs the prompts `order` (sorted, all beginning with the node's stretch) on `node`.
///
/// The depth of recursion is bounded: each level down adds at least [`WORTH_SHARING`] tokens or
/// splits its prompts, and a call has at most some hundreds.
fn grow<T: Ord>(prompts: &[Vec<T>], order: &[usize], node: &mut Node) {
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else { return };
    if order.len() == 1 {
        node.leaves.push(first);
        return;
    }
    // In sorted order, what the first and the last share is shared by all between them.
    let shortest = order.iter().map(|&at| prompts[at].len()).min().unwrap_or(0);
    let shared = shared_length(&prompts[first], &prompts[last]).min(shortest.saturating_sub(1));
    if shared >= node.length + WORTH_SHARING {
        let mut child =
            Node { prompt: first, length: shared, leaves: Vec::new(), children: Vec::new() };
        split(prompts, order, shared, &mut child);
        node.children.push(child);
    } else {
        split(prompts, order, shared, node);
    }
}

/// Splits prompts that share `shared` tokens by the token that follows.
fn split<T: Ord>(prompts: &[Vec<T>], order: &[usize], shared: usize, node: &mut Node) {
    let all_alike = |group: &[usize]| group.len() == order.len();
    for group in order.chunk_by(|&a, &b| prompts[a].get(shared) == prompts[b].get(shared)) {
        if all_alike(group) {
            // Equal but for their last token or their length: nothing more to share.
            node.leaves.extend(group);
        } else {
            grow(prompts, group, node);
        }
    }
}

/// How many tokens two prompts have in common at their start.
pub(crate) fn shared_length<T: Eq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves(node: &Node, found: &mut Vec<usize>) {
        found.extend(&node.leaves);
        node.children.iter().for_each(|child| leaves(child, found));
    }

    fn check(node: &Node, above: usize, prompts: &[Vec<u8>]) {
        assert!(node.length >= above);
        let stretch = &prompts[node.prompt][..node.length];
        for &leaf in &node.leaves {
            assert!(prompts[leaf].starts_with(stretch));
            assert!(prompts[leaf].len() > node.length, "a leaf has a token of its own");
        }
        for child in &node.children {
            assert!(prompts[child.prompt].starts_with(stretch));
            check(child, node.length + WORTH_SHARING, prompts);
        }
    }

    proptest! {
        #[test]
        fn every_prompt_is_a_leaf_once_under_what_it_begins_with(
            stems in prop::collection::vec(prop::collection::vec(0_u8..3, 0..40), 1..4),
            tails in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::collection::vec(0_u8..3, 1..20)), 1..30),
        ) {
            let prompts: Vec<Vec<u8>> = tails.into_iter().map(|(stem, cut, tail)| {
                let stem = stem.get(&stems);
                let mut prompt = stem[..cut.index(stem.len() + 1)].to_vec();
                prompt.extend(tail);
                prompt
            }).collect();
            let tree = arrange(&prompts);
            let mut found = Vec::new();
            leaves(&tree, &mut found);
            found.sort_unstable();
            prop_assert_eq!(found, (0..prompts.len()).collect::<Vec<_>>());
            check(&tree, 0, &prompts);
        }
    }

    #[test]
    fn a_passage_and_its_sentences_share_the_passage() {
        let prompt = |passage: u8, sentence: u8| {
            let mut tokens = vec![0; 20];
            tokens.extend([passage; 20]);
            tokens.extend([sentence; 3]);
            tokens
        };
        let prompts = vec![prompt(1, 7), prompt(2, 7), prompt(1, 8), prompt(1, 9)];
        let tree = arrange(&prompts);
        let instructions = &tree.children[0];
        assert_eq!((instructions.length, &instructions.leaves), (20, &vec![1]));
        assert_eq!(instructions.children[0].length, 40);
        assert_eq!(instructions.children[0].leaves, [0, 2, 3]);
    }
}
