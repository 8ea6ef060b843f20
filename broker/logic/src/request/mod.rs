//! Whom an answer is owed to: appends that wait for their acks condition, parked fetches, and requests that
//! several cores answer together.

pub mod account;
pub mod acks;
pub mod calls;
pub mod gather;
pub mod lookup;
pub mod parked;
