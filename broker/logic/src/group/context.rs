//! What a group may touch beside itself while it handles an input.

use super::Counts;
use super::interface::{Effect, GroupSettings, Record, StoreId};
use crate::shard::interface::Now;

/// The rest of the coordinator, as one group sees it.
pub struct Context<'a> {
    pub now: Now,
    pub settings: &'a GroupSettings,
    pub out: &'a mut Vec<Effect>,
    pub last_store: &'a mut u64,
    pub counts: &'a mut Counts,
}

impl Context<'_> {
    /// Appends records; their end comes back as an input.
    pub fn store(&mut self, records: Vec<Record>) -> StoreId {
        *self.last_store += 1;
        let store = StoreId(*self.last_store);
        self.out.push(Effect::Store { store, records });
        store
    }
}
