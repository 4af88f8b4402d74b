//! Which known word a misspelt one stands for.

/// Words this much longer than any key are not looked at.
const LENGTH_MAX: usize = 64;

/// The nearest of the known words, where it is near enough to be meant.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LENGTH_MAX {
        return None;
    }
    let plain = normal(word);
    known
        .into_iter()
        .map(|candidate| (distance(&plain, &normal(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `maxSize` and `max-size` are `max_size`, and a plural is its singular.
fn normal(word: &str) -> Vec<char> {
    let letters = word.chars().filter(|c| c.is_alphanumeric());
    let mut letters: Vec<char> = letters.flat_map(char::to_lowercase).collect();
    if letters.len() > 2 && letters.last() == Some(&'s') {
        letters.pop();
    }
    letters
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous_a = None;
    for (row, &in_a) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut previous_b = None;
        for (column, &in_b) in b.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let substituted = at(&last, column) + usize::from(in_a != in_b);
            let mut best = substituted.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if previous_a == Some(in_b) && previous_b == Some(in_a) {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
            previous_b = Some(in_b);
        }
        before_last = std::mem::replace(&mut last, current);
        previous_a = Some(in_a);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["max_size", "max_object", "listener", "upstream", "ttl"];
        for (word, expected) in [
            ("max_sise", Some("max_size")),
            ("maxSize", Some("max_size")),
            ("listeners", Some("listener")),
            ("upsteram", Some("upstream")),
            ("tl", Some("ttl")),
            ("proxy_cache_path", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}
