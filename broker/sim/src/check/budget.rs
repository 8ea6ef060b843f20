//! The budget of all logs takes segments only when there is too much, and no more than that.

use tackboard_logic::shard::interface::LogSpace;

use crate::options::Options;

/// Below so many free bytes, a reserve above that, or a sixteenth of the budget, space counts as short.
const SPACE_BYTES_MIN: u64 = 1 << 20;

/// How a core stands.
#[derive(Clone, Copy, Debug)]
pub struct SpaceView {
    /// Its own logs.
    pub own: LogSpace,
    /// Bytes that it has given for the budget since it came up.
    pub dropped: u64,
}

/// A core was told how many bytes are `free` and what the `others` have, which led from `before` to `after`. No segment of
/// it is larger than `segment_bytes_max`. Whether any went for the budget.
pub fn budget(
    options: &Options,
    (free, others): (u64, LogSpace),
    before: &SpaceView,
    after: &SpaceView,
    segment_bytes_max: u64,
) -> bool {
    let dropped = after.dropped - before.dropped;
    if dropped == 0 {
        return false;
    }
    let budget_bytes = options.log_budget_bytes.expect("there is a budget");
    let all = before.own.bytes + others.bytes;
    let over = all.saturating_sub(budget_bytes);
    // An eighth above the reserve appends are taken again; and something is kept for what comes next.
    let short = options.reserve_bytes.max(SPACE_BYTES_MIN);
    let level = short.max(budget_bytes / 16) / 8 * 9 + budget_bytes / 4;
    let excess = over.max(level.saturating_sub(free));
    assert!(
        excess > 0,
        "{dropped} bytes went for the budget of {budget_bytes}, while all logs have {all}, with {free} bytes free"
    );
    let most = excess + segment_bytes_max;
    assert!(
        dropped <= most,
        "{dropped} bytes went for the budget, and {excess} were too much"
    );
    true
}
