//! How large the buffer is that one connection is read into.
//!
//! A connection that is busy wants a large one: a buffer smaller than what its client keeps in flight costs a fifth of
//! the rate. Most connections are not, and there may be very many of them. So each begins small, grows with what its
//! reads bring, and shrinks again when they bring little.
//!
//! A frame that is longer than the buffer needs room for itself; it gets it as it arrives, since a prefix that announces
//! much costs its sender nothing.

/// What every connection has.
pub const READ_BUFFER_BYTES_MIN: usize = 4 << 10;
/// What one gets for being busy. Only a single longer frame gets more.
pub const READ_BUFFER_BYTES_MAX: usize = 256 << 10;
/// A buffer this many times larger than wanted shrinks; below that it is not worth the change.
const SHRINK_FACTOR: usize = 4;
/// Share of the remembered size that a read which brings less takes away.
const FORGET_DIVISOR: usize = 8;

/// What recent reads of a connection brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadBuffer {
    recent: usize,
}

impl ReadBuffer {
    /// A read brought `got` bytes.
    pub fn note(&mut self, got: usize) {
        self.recent = got.max(self.recent - self.recent / FORGET_DIVISOR);
    }

    /// How long the buffer is to be for the next read. It has `length` bytes now, of which `filled` hold the beginning
    /// of a frame that has `needed` in all, so far as is known. Never `filled` or less.
    pub fn length(&self, length: usize, filled: usize, needed: usize) -> usize {
        let habit = (2 * self.recent)
            .next_power_of_two()
            .clamp(READ_BUFFER_BYTES_MIN, READ_BUFFER_BYTES_MAX);
        let wanted = habit.max(needed.min(2 * filled));
        let keeps =
            wanted < length && length < SHRINK_FACTOR * wanted && length <= READ_BUFFER_BYTES_MAX;
        if keeps { length } else { wanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: usize = READ_BUFFER_BYTES_MIN;
    const MAX: usize = READ_BUFFER_BYTES_MAX;
    /// Bytes of a prefix: what is needed before a frame's length is known.
    const PREFIX: usize = 24;

    /// The length after reads that brought so much each, all of it whole frames.
    fn after(reads: &[usize]) -> usize {
        let mut buffer = ReadBuffer::default();
        let mut length = MIN;
        for got in reads {
            buffer.note((*got).min(length));
            length = buffer.length(length, 0, PREFIX);
        }
        length
    }

    #[test]
    fn a_busy_connection_soon_has_a_large_buffer_and_an_idle_one_never() {
        assert_eq!(ReadBuffer::default().length(MIN, 0, PREFIX), MIN);
        assert_eq!(after(&[100; 1_000]), MIN);
        assert_eq!(after(&[usize::MAX; 6]), MAX);
        assert_eq!(after(&[usize::MAX; 1_000]), MAX);
    }

    #[test]
    fn one_small_read_changes_nothing_and_many_do() {
        let busy = [usize::MAX; 10];
        assert_eq!(after(&[&busy[..], &[100; 5]].concat()), MAX);
        assert_eq!(after(&[&busy[..], &[100; 100]].concat()), MIN);
    }

    #[test]
    fn a_long_frame_gets_room_as_it_arrives_and_gives_it_back() {
        let buffer = ReadBuffer::default();
        let needed = 10 << 20;
        assert_eq!(buffer.length(MIN, PREFIX, needed), MIN, "only announced");
        let (mut length, mut filled) = (MIN, MIN);
        while length < needed {
            length = buffer.length(length, filled, needed);
            assert!(filled < length && length <= (2 * filled).min(needed));
            filled = length;
        }
        assert_eq!(buffer.length(length, 0, PREFIX), MIN);
        let mut busy = ReadBuffer::default();
        busy.note(MAX);
        assert_eq!(busy.length(length, 0, PREFIX), MAX);
        // What is left of it may be the beginning of the next one.
        assert_eq!(buffer.length(length, 3 << 20, 4 << 20), 4 << 20);
    }
}
