//! What a topic may be called: Kafka's rule, so that a name works at both doors and as part of a path.

/// The longest topic name, in bytes (which are characters, since only ASCII is allowed).
pub const TOPIC_NAME_LENGTH_MAX: usize = 249;

/// Checks a topic name; the error is a sentence that names the value and what is allowed.
pub fn validate_topic_name(name: &str) -> Result<(), String> {
    let allowed = "allowed are 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', but not \".\" or \"..\"";
    if name.is_empty() {
        return Err(format!("topic name is empty; {allowed}"));
    }
    if name.len() > TOPIC_NAME_LENGTH_MAX {
        return Err(format!(
            "topic name is {} bytes long; {allowed}",
            name.len()
        ));
    }
    if name == "." || name == ".." {
        return Err(format!("topic name is {name:?}; {allowed}"));
    }
    match name.chars().find(|character| !is_allowed(*character)) {
        Some(character) => Err(format!(
            "topic name {name:?} contains {character:?}; {allowed}"
        )),
        None => Ok(()),
    }
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_kafkas_rule() {
        for name in ["a", "flights", "A.b_c-9", "...", "-", &"x".repeat(249)] {
            assert_eq!(validate_topic_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a b",
            "a/b",
            "ü",
            "a\0",
            "a,b",
            &"x".repeat(250),
        ] {
            let error = validate_topic_name(name).unwrap_err();
            assert!(error.contains("allowed are"), "{error}");
        }
        assert!(
            validate_topic_name("a/b")
                .unwrap_err()
                .contains("\"a/b\" contains '/'")
        );
    }
}
