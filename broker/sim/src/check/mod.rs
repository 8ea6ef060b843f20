//! One checker for each property. Each compares what the broker did or said with the truth in [`crate::model`], and panics
//! with what it found.

mod acknowledged;
mod budget;
mod damage;
mod deletion;
mod groups;
mod history;
mod interval;
mod lookup;
mod placement;
mod recovered;
mod refusal;
mod retention;
mod served;
mod truncation;
mod watermark;

pub use acknowledged::{acknowledged, answer, high_watermark_is_kept, locate};
pub use budget::{SpaceView, budget};
pub use damage::damage;
pub use deletion::{deletion_refused, records_deleted};
pub use groups::{
    commit_acknowledged, commit_taken, expired, joined, loaded, note_recorded, owner, recorded,
    settle, shown, synced, written_anew,
};
pub use history::history;
pub use interval::{forgive_standstill, note_high_watermark, promise_what_is_old};
pub use lookup::time_lookup;
pub use placement::{placement, producer_may_be_forgotten};
pub use recovered::recovered;
pub use refusal::refusal;
pub use retention::deletion;
pub use served::{fetch_error, out_of_range, served};
pub use truncation::{cut, cut_refused, not_cut_off};
pub use watermark::{log_end, watermarks};
