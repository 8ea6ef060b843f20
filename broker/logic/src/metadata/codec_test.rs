//! Encodings of commands and snapshots: round trips, every truncation, every flipped byte.

use tackboard_schema::{BrokerId, TimestampMs, TopicId};

use super::machine_test::{create, machine, register};
use super::*;

fn commands() -> Vec<Command> {
    vec![
        register(1, 1, 3),
        create("flights", 9, 6),
        Command::CreateTopic(CreateTopic {
            name: "events.by-hour".to_owned(),
            topic_id: TopicId([5; 16]),
            partitions: 2,
            replication_factor: 1,
            configs: vec![
                ("retention.ms".to_owned(), "-1".to_owned()),
                ("durability".to_owned(), "written".to_owned()),
            ],
            at: TimestampMs(1_700_000_000_000),
        }),
        Command::CreatePartitions {
            name: "flights".to_owned(),
            count: 7,
        },
        Command::AlterTopic(AlterTopic {
            name: "events.by-hour".to_owned(),
            resets_others: false,
            changes: vec![
                (
                    "retention.ms".to_owned(),
                    ConfigChange::Set("5000".to_owned()),
                ),
                ("durability".to_owned(), ConfigChange::Reset),
                (
                    "cleanup.policy".to_owned(),
                    ConfigChange::Append("delete".to_owned()),
                ),
            ],
        }),
        Command::DeleteTopic {
            name: "flights".to_owned(),
        },
        Command::AllocateProducerIds {
            broker: BrokerId(1),
        },
    ]
}

fn encoded(command: &Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(command, &mut bytes).unwrap();
    bytes
}

#[test]
fn commands_survive_a_round_trip() {
    let by_id = Command::DeleteTopicById {
        topic_id: TopicId([6; 16]),
    };
    let shrunk = Command::AlterTopic(AlterTopic {
        name: "t".to_owned(),
        resets_others: true,
        changes: vec![(
            "cleanup.policy".to_owned(),
            ConfigChange::Subtract("delete".to_owned()),
        )],
    });
    for command in commands().into_iter().chain([by_id, shrunk]) {
        assert_eq!(decode_command(&encoded(&command)), Ok(command));
    }
}

#[test]
fn the_bytes_of_a_command() {
    let bytes = encoded(&Command::DeleteTopic {
        name: "ab".to_owned(),
    });
    assert_eq!(bytes, [1, 3, 2, 0, b'a', b'b']);
    let bytes = encoded(&Command::CreatePartitions {
        name: "ab".to_owned(),
        count: 258,
    });
    assert_eq!(bytes, [1, 6, 2, 0, b'a', b'b', 2, 1, 0, 0]);
    let alter = AlterTopic {
        name: "a".to_owned(),
        resets_others: true,
        changes: vec![
            ("k".to_owned(), ConfigChange::Set("v".to_owned())),
            ("l".to_owned(), ConfigChange::Reset),
        ],
    };
    let bytes = encoded(&Command::AlterTopic(alter));
    let name_and_count = [1, 7, 1, 0, b'a', 1, 2, 0, 0, 0];
    let changes = [1, 0, b'k', 0, 1, 0, b'v', 1, 0, b'l', 1];
    assert_eq!(bytes, [&name_and_count[..], &changes].concat());
    let bytes = encoded(&Command::AllocateProducerIds {
        broker: BrokerId(258),
    });
    assert_eq!(bytes, [1, 4, 2, 1, 0, 0]);
}

#[test]
fn a_command_that_is_cut_or_longer_is_refused() {
    for command in commands() {
        let mut bytes = encoded(&command);
        for length in 0..bytes.len() {
            assert!(
                decode_command(&bytes[..length]).is_err(),
                "{command:?} cut to {length}"
            );
        }
        bytes.push(0);
        assert!(
            decode_command(&bytes).is_err(),
            "{command:?} with a byte more"
        );
    }
}

#[test]
fn a_flipped_byte_of_a_command_is_another_command_or_refused() {
    for command in commands() {
        let bytes = encoded(&command);
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut flipped = bytes.clone();
                flipped[at] ^= flip;
                if let Ok(other) = decode_command(&flipped) {
                    assert_eq!(encoded(&other), flipped, "one command, one encoding");
                }
            }
        }
    }
}

#[test]
fn a_command_too_long_for_the_log_is_not_encoded() {
    let mut bytes = vec![1, 2, 3];
    let name = "x".repeat(70_000);
    assert!(encode_command(&Command::DeleteTopic { name }, &mut bytes).is_err());
    assert_eq!(bytes, [1, 2, 3]);
}

fn snapshot(machine: &Machine) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_snapshot(machine, &mut bytes);
    bytes
}

#[test]
fn snapshots_survive_a_round_trip_and_the_machine_goes_on() {
    let empty = Machine::new(ClusterId([1; 16]));
    assert_eq!(decode_snapshot(&snapshot(&empty)), Ok(empty));
    let mut original = machine(commands());
    let mut restored = decode_snapshot(&snapshot(&original)).unwrap();
    assert_eq!(restored, original);
    for (version, command) in [(10, create("next", 1, 3)), (11, register(1, 2, 2))] {
        assert_eq!(
            restored.apply(version, command.clone()),
            original.apply(version, command)
        );
    }
    assert_eq!(snapshot(&restored), snapshot(&original));
}

#[test]
fn a_snapshot_that_is_cut_or_longer_is_refused() {
    let mut bytes = snapshot(&machine(commands()));
    for length in 0..bytes.len() {
        assert!(
            decode_snapshot(&bytes[..length]).is_err(),
            "cut to {length}"
        );
    }
    bytes.push(0);
    assert!(decode_snapshot(&bytes).is_err());
}

#[test]
fn a_flipped_byte_of_a_snapshot_is_another_state_or_refused() {
    let bytes = snapshot(&machine(commands()));
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut flipped = bytes.clone();
            flipped[at] ^= flip;
            if let Ok(other) = decode_snapshot(&flipped) {
                assert_eq!(snapshot(&other), flipped, "one state, one encoding");
            }
        }
    }
}
