//! Ids that are drawn at random.

/// Sixteen random bytes.
///
/// # Panics
/// When the kernel gives none.
pub fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    getrandom::fill(&mut id).expect("the kernel gives random bytes");
    id
}
