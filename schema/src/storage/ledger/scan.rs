//! Reads a ledger's blocks in order and tells its torn end from damage.

use super::block::LedgerBlock;
use crate::DecodeError;
use crate::storage::BLOCK_LENGTH;

/// Is given every block of a ledger behind its header, in order, to the end of the file.
///
/// The ledger ends before the first block that cannot be believed. If a later block proves that this one had
/// been on the medium, it is not the end but damage.
#[derive(Clone, Debug)]
pub struct LedgerScan {
    generation: u64,
    next_sequence: u64,
    end: Option<(u64, DecodeError)>,
}

impl LedgerScan {
    /// Begins at block 0 of a ledger of this generation.
    pub fn new(generation: u64) -> Self {
        Self {
            generation,
            next_sequence: 0,
            end: None,
        }
    }

    /// Takes the next block. `Some`: it belongs to the ledger. `None`: the ledger ended before it. An error:
    /// a block that had been on the medium cannot be read any more; it counts bytes from the start of the
    /// file and names the fault of the damaged block.
    pub fn block<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<LedgerBlock<'a>>, DecodeError> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let block = LedgerBlock::read(bytes, self.generation, sequence);
        match (&self.end, block) {
            (None, Ok(block)) => Ok(Some(block)),
            (None, Err(error)) => {
                self.end = Some((sequence, error));
                Ok(None)
            }
            (Some((end, error)), Ok(block)) if block.blocks_durable() > *end => {
                let block_at = (*end as usize + 1) * BLOCK_LENGTH;
                Err(error.clone().shifted(block_at))
            }
            (Some(_), _) => Ok(None),
        }
    }

    /// How many blocks belong to the ledger, of those it was given.
    pub fn block_count(&self) -> u64 {
        self.end
            .as_ref()
            .map_or(self.next_sequence, |(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockBuilder, LedgerRecord};
    use super::*;
    use crate::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition};

    fn partition() -> TopicPartition {
        TopicPartition {
            topic: TopicId([5; 16]),
            partition: PartitionIndex(2),
        }
    }

    fn every_record() -> Vec<LedgerRecord> {
        let partition = partition();
        let (segment_base, position) = (Offset(10), 4096);
        let (first_append, last_append) = (TimestampMs(1), TimestampMs(2));
        vec![
            LedgerRecord::Durable {
                partition,
                next_offset: Offset(20),
                segment_base,
                position,
                last_append,
            },
            LedgerRecord::LogStart {
                partition,
                offset: Offset(3),
            },
            LedgerRecord::HighWatermark {
                partition,
                offset: Offset(19),
            },
            LedgerRecord::EpochStart {
                partition,
                epoch: LeaderEpoch(4),
                start_offset: Offset(18),
            },
            LedgerRecord::Truncate {
                partition,
                next_offset: Offset(15),
                segment_base,
                position,
            },
            LedgerRecord::Fenced {
                partition,
                durable_offset: Offset(15),
            },
            LedgerRecord::SegmentOpened {
                partition,
                base_offset: Offset(20),
                first_append,
            },
            LedgerRecord::SegmentSealed {
                partition,
                base_offset: Offset(10),
                next_offset: Offset(20),
                size_bytes: 8192,
                max_timestamp: TimestampMs(i64::MIN),
                first_append,
                last_append,
            },
            LedgerRecord::Removed { partition },
        ]
    }

    fn block(generation: u64, sequence: u64, blocks_durable: u64) -> [u8; BLOCK_LENGTH] {
        let mut builder = BlockBuilder::new();
        for record in every_record() {
            assert!(builder.push(&record));
        }
        let mut bytes = [0; BLOCK_LENGTH];
        builder.finish_into(generation, sequence, blocks_durable, &mut bytes);
        assert!(builder.is_empty());
        bytes
    }

    #[test]
    fn records_read_as_written() {
        let bytes = block(9, 0, 0);
        let block = LedgerBlock::read(&bytes, 9, 0).unwrap();
        assert_eq!(block.records().collect::<Vec<_>>(), every_record());
    }

    #[test]
    fn a_full_block_says_so_and_loses_nothing() {
        let mut builder = BlockBuilder::new();
        let record = every_record()[0];
        let mut count = 0;
        while builder.push(&record) {
            count += 1;
        }
        assert_eq!(count, 4064 / 56);
        let mut bytes = [0; BLOCK_LENGTH];
        builder.finish_into(1, 0, 0, &mut bytes);
        let block = LedgerBlock::read(&bytes, 1, 0).unwrap();
        assert_eq!(block.records().count(), count);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = block(9, 3, 1);
        for bit in 0..BLOCK_LENGTH * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(LedgerBlock::read(&bad, 9, 3).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn blocks_of_another_generation_or_place_are_not_believed() {
        let bytes = block(9, 3, 1);
        assert_eq!(LedgerBlock::read(&bytes, 8, 3).unwrap_err().at_byte, 8);
        assert_eq!(LedgerBlock::read(&bytes, 9, 2).unwrap_err().at_byte, 16);
    }

    #[test]
    fn a_torn_end_is_an_end() {
        let mut scan = LedgerScan::new(9);
        assert!(scan.block(&block(9, 0, 0)).unwrap().is_some());
        assert!(scan.block(&[0; BLOCK_LENGTH]).unwrap().is_none());
        // Written together with the one before, neither synced: only one of the two reached the medium.
        assert!(scan.block(&block(9, 2, 1)).unwrap().is_none());
        assert!(scan.block(&[0; BLOCK_LENGTH]).unwrap().is_none());
        assert_eq!(scan.block_count(), 1);
    }

    #[test]
    fn a_lost_block_that_was_durable_is_damage() {
        let mut scan = LedgerScan::new(9);
        assert!(scan.block(&block(9, 0, 0)).unwrap().is_some());
        let mut lost = block(9, 1, 1);
        lost[100] ^= 1;
        assert!(scan.block(&lost).unwrap().is_none());
        let error = scan.block(&block(9, 2, 2)).unwrap_err();
        assert_eq!(
            (error.what, error.at_byte),
            ("checksum of a ledger block does not match", 8192)
        );
    }

    #[test]
    fn what_an_earlier_use_left_behind_is_the_end() {
        let mut scan = LedgerScan::new(9);
        assert!(scan.block(&block(9, 0, 0)).unwrap().is_some());
        assert!(scan.block(&block(7, 1, 1)).unwrap().is_none());
        assert!(scan.block(&block(7, 2, 2)).unwrap().is_none());
        assert_eq!(scan.block_count(), 1);
    }
}
