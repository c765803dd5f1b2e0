//! What any question must satisfy, whoever typed it.

use unicode_normalization::char::is_combining_mark;

/// The most characters that a question may have.
pub const LIMIT: usize = 1_000;

/// Why a text is no question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionProblem {
    /// Nothing, or nothing but spaces and punctuation.
    #[error("the question is empty; write it out in words")]
    Empty,
    /// More than [`LIMIT`] characters.
    #[error("the question has {characters} characters, the limit is {LIMIT}; shorten it")]
    TooLong {
        /// How many it has.
        characters: usize,
    },
    /// A character that cannot be seen and changes how the text is shown or read.
    #[error(
        "the question holds the invisible control character U+{:04X}; remove it, or type the question anew",
        *character as u32
    )]
    Control {
        /// The first such character.
        character: char,
    },
}

/// Checks a question. White space around it does not count.
pub fn check_question(text: &str) -> Result<(), QuestionProblem> {
    let text = text.trim();
    let characters = text.chars().count();
    if characters > LIMIT {
        return Err(QuestionProblem::TooLong { characters });
    }
    if let Some(character) = text.chars().find(|&c| is_control(c)) {
        return Err(QuestionProblem::Control { character });
    }
    if !text.chars().any(|c| c.is_alphanumeric() || is_combining_mark(c)) {
        return Err(QuestionProblem::Empty);
    }
    Ok(())
}

/// Control characters, line and paragraph separators, and the marks that override the direction of
/// the text after them. The plain direction marks (U+200E, U+200F) are ordinary in right-to-left
/// text and stay.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_in_any_script_pass() {
        for text in ["Qu'est-ce qu'un paquet ?", "Τι είναι το APT;", "什么", "क्या?", " ok\n"]
        {
            assert_eq!(check_question(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_no_question_is_named() {
        assert_eq!(check_question(""), Err(QuestionProblem::Empty));
        assert_eq!(check_question(" ?!… "), Err(QuestionProblem::Empty));
        assert_eq!(check_question("a\u{0}b"), Err(QuestionProblem::Control { character: '\u{0}' }));
        assert_eq!(
            check_question("a\u{202E}b"),
            Err(QuestionProblem::Control { character: '\u{202E}' })
        );
        assert_eq!(check_question(&"é".repeat(LIMIT)), Ok(()));
        let message = check_question(&"é".repeat(10_000)).unwrap_err().to_string();
        assert!(message.contains("10000") && message.contains("1000"), "{message}");
    }
}
