//! The bytes of a command in the metadata log, and the reader and writer that snapshots share.
//!
//! Little-endian, no padding. The log around it carries length and checksum; here every length is checked again, and one
//! command has exactly one encoding, so that equal logs are equal bytes. `docs/storage-format.md` describes them.

use tackboard_schema::{BrokerId, DecodeError, DecodeErrorKind, TimestampMs, TopicId};

use super::command::{AlterTopic, Command, CreateTopic, Endpoint, IncarnationId, RegisterBroker};
use super::machine::CORES_MAX;
use super::topic_settings::{ConfigChange, TOPIC_SETTINGS};

/// The longest encoding of a command. A longer one is refused when read, and the rules of the machine refuse commands that
/// could become so long; the proposer checks with [`encode_command`] before it writes.
pub const COMMAND_BYTES_MAX: usize = 1 << 20;

/// The format of commands. A reader refuses what it doesn't know.
const COMMAND_VERSION: u8 = 1;

const REGISTER_BROKER: u8 = 1;
const CREATE_TOPIC: u8 = 2;
const DELETE_TOPIC: u8 = 3;
const ALLOCATE_PRODUCER_IDS: u8 = 4;
const DELETE_TOPIC_BY_ID: u8 = 5;
const CREATE_PARTITIONS: u8 = 6;
const ALTER_TOPIC: u8 = 7;

const SET: u8 = 0;
const RESET: u8 = 1;
const APPEND: u8 = 2;
const SUBTRACT: u8 = 3;

/// More settings than there are can't all be right, but a refused command is kept in the log too.
const CONFIGS_MAX: usize = 4 * TOPIC_SETTINGS.len();

/// Appends the bytes of a command.
///
/// # Errors
/// When it has more than [`COMMAND_BYTES_MAX`] bytes, or a text or list too long for its length field; nothing is appended.
pub fn encode_command(command: &Command, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = out.len();
    let mut writer = Writer { out, fault: None };
    writer.u8(COMMAND_VERSION);
    match command {
        Command::RegisterBroker(register) => write_register(register, &mut writer),
        Command::CreateTopic(create) => write_create(create, &mut writer),
        Command::DeleteTopic { name } => {
            writer.u8(DELETE_TOPIC);
            writer.text("topic name", name);
        }
        Command::DeleteTopicById { topic_id } => {
            writer.u8(DELETE_TOPIC_BY_ID);
            writer.bytes(&topic_id.0);
        }
        Command::CreatePartitions { name, count } => {
            writer.u8(CREATE_PARTITIONS);
            writer.text("topic name", name);
            writer.i32(*count);
        }
        Command::AlterTopic(alter) => write_alter(alter, &mut writer),
        Command::AllocateProducerIds { broker } => {
            writer.u8(ALLOCATE_PRODUCER_IDS);
            writer.i32(broker.0);
        }
    }
    if writer.out.len() - start > COMMAND_BYTES_MAX {
        writer.fault("metadata command is too long");
    }
    match writer.fault {
        None => Ok(()),
        Some(what) => {
            out.truncate(start);
            Err(DecodeError::new(DecodeErrorKind::TooLarge, what, 0))
        }
    }
}

/// Reads exactly one command.
pub fn decode_command(bytes: &[u8]) -> Result<Command, DecodeError> {
    let mut reader = Reader::new(bytes);
    if bytes.len() > COMMAND_BYTES_MAX {
        return Err(reader.fault(DecodeErrorKind::TooLarge, "metadata command is too long"));
    }
    if reader.u8("version of a metadata command")? != COMMAND_VERSION {
        return Err(reader.fault(
            DecodeErrorKind::Invalid,
            "unknown version of a metadata command",
        ));
    }
    let command = match reader.u8("kind of a metadata command")? {
        REGISTER_BROKER => read_register(&mut reader)?,
        CREATE_TOPIC => read_create(&mut reader)?,
        DELETE_TOPIC => Command::DeleteTopic {
            name: reader.text("topic name")?,
        },
        DELETE_TOPIC_BY_ID => Command::DeleteTopicById {
            topic_id: TopicId(reader.array("topic id")?),
        },
        CREATE_PARTITIONS => Command::CreatePartitions {
            name: reader.text("topic name")?,
            count: reader.i32("partition count")?,
        },
        ALTER_TOPIC => read_alter(&mut reader)?,
        ALLOCATE_PRODUCER_IDS => Command::AllocateProducerIds {
            broker: BrokerId(reader.i32("broker id")?),
        },
        _ => return Err(reader.fault(DecodeErrorKind::Invalid, "unknown kind of metadata command")),
    };
    reader.finish("bytes after a metadata command")?;
    Ok(command)
}

fn write_register(register: &RegisterBroker, writer: &mut Writer<'_>) {
    writer.u8(REGISTER_BROKER);
    writer.i32(register.broker.0);
    writer.bytes(&register.incarnation.0);
    writer.endpoint(&register.any_core);
    writer.count("cores", register.cores.len(), CORES_MAX);
    for core in &register.cores {
        writer.endpoint(core);
    }
    writer.u32(register.partitions_per_core_max);
}

fn read_register(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    let broker = BrokerId(reader.i32("broker id")?);
    let incarnation = IncarnationId(reader.array("incarnation id")?);
    let any_core = reader.endpoint()?;
    let cores = reader.count("cores", CORES_MAX)?;
    let cores = (0..cores)
        .map(|_| reader.endpoint())
        .collect::<Result<_, _>>()?;
    Ok(Command::RegisterBroker(RegisterBroker {
        broker,
        incarnation,
        any_core,
        cores,
        partitions_per_core_max: reader.u32("partitions per core")?,
    }))
}

fn write_create(create: &CreateTopic, writer: &mut Writer<'_>) {
    writer.u8(CREATE_TOPIC);
    writer.bytes(&create.topic_id.0);
    writer.text("topic name", &create.name);
    writer.i32(create.partitions);
    writer.i16(create.replication_factor);
    writer.i64(create.at.0);
    writer.configs(&create.configs);
}

fn read_create(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    Ok(Command::CreateTopic(CreateTopic {
        topic_id: TopicId(reader.array("topic id")?),
        name: reader.text("topic name")?,
        partitions: reader.i32("partition count")?,
        replication_factor: reader.i16("replication factor")?,
        at: TimestampMs(reader.i64("time of creation")?),
        configs: reader.configs()?,
    }))
}

fn write_alter(alter: &AlterTopic, writer: &mut Writer<'_>) {
    writer.u8(ALTER_TOPIC);
    writer.text("topic name", &alter.name);
    writer.u8(u8::from(alter.resets_others));
    writer.count("changed settings", alter.changes.len(), CONFIGS_MAX);
    for (key, change) in &alter.changes {
        writer.text("key of a topic setting", key);
        let (kind, value) = match change {
            ConfigChange::Set(value) => (SET, Some(value)),
            ConfigChange::Reset => (RESET, None),
            ConfigChange::Append(value) => (APPEND, Some(value)),
            ConfigChange::Subtract(value) => (SUBTRACT, Some(value)),
        };
        writer.u8(kind);
        if let Some(value) = value {
            writer.text("value of a topic setting", value);
        }
    }
}

fn read_alter(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    let name = reader.text("topic name")?;
    let resets_others = match reader.u8("whether other settings are reset")? {
        0 => false,
        1 => true,
        _ => {
            let what = "whether other settings are reset";
            return Err(reader.fault(DecodeErrorKind::Invalid, what));
        }
    };
    let changes = reader.count("changed settings", CONFIGS_MAX)?;
    let changes = (0..changes).map(|_| read_change(reader));
    Ok(Command::AlterTopic(AlterTopic {
        name,
        resets_others,
        changes: changes.collect::<Result<_, _>>()?,
    }))
}

fn read_change(reader: &mut Reader<'_>) -> Result<(String, ConfigChange), DecodeError> {
    let key = reader.text("key of a topic setting")?;
    let kind = reader.u8("kind of a change")?;
    let mut value = || reader.text("value of a topic setting");
    let change = match kind {
        SET => ConfigChange::Set(value()?),
        RESET => ConfigChange::Reset,
        APPEND => ConfigChange::Append(value()?),
        SUBTRACT => ConfigChange::Subtract(value()?),
        _ => return Err(reader.fault(DecodeErrorKind::Invalid, "kind of a change")),
    };
    Ok((key, change))
}

/// Appends fields; remembers the first that doesn't fit.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) fault: Option<&'static str>,
}

impl Writer<'_> {
    pub(super) fn fault(&mut self, what: &'static str) {
        self.fault.get_or_insert(what);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn i16(&mut self, value: i16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn text(&mut self, what: &'static str, text: &str) {
        match u16::try_from(text.len()) {
            Ok(length) => self.u16(length),
            Err(_) => self.fault(what),
        }
        self.bytes(text.as_bytes());
    }

    /// The length of a list that has at most `max` entries.
    pub(super) fn count(&mut self, what: &'static str, count: usize, max: usize) {
        match u32::try_from(count) {
            Ok(short) if count <= max => self.u32(short),
            _ => self.fault(what),
        }
    }

    pub(super) fn endpoint(&mut self, endpoint: &Endpoint) {
        self.text("host", &endpoint.host);
        self.u16(endpoint.port);
    }

    pub(super) fn configs(&mut self, configs: &[(String, String)]) {
        self.count("topic settings", configs.len(), CONFIGS_MAX);
        for (key, value) in configs {
            self.text("key of a topic setting", key);
            self.text("value of a topic setting", value);
        }
    }
}

/// Reads fields, never past the end.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub(super) fn fault(&self, kind: DecodeErrorKind, what: &'static str) -> DecodeError {
        DecodeError::new(kind, what, self.position)
    }

    pub(super) fn finish(&self, what: &'static str) -> Result<(), DecodeError> {
        if self.position == self.bytes.len() {
            Ok(())
        } else {
            Err(self.fault(DecodeErrorKind::Invalid, what))
        }
    }

    pub(super) fn slice(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.position..];
        let slice = rest
            .get(..length)
            .ok_or_else(|| self.fault(DecodeErrorKind::Truncated, what))?;
        self.position += length;
        Ok(slice)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(N, what)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(super) fn i16(&mut self, what: &'static str) -> Result<i16, DecodeError> {
        self.array(what).map(i16::from_le_bytes)
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.array(what).map(i32::from_le_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.array(what).map(i64::from_le_bytes)
    }

    pub(super) fn text(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let length = self.u16(what)?;
        let bytes = self.slice(usize::from(length), what)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.fault(DecodeErrorKind::Invalid, what)),
        }
    }

    /// The length of a list. It is bounded by what is left as well, since no entry is empty: so nobody reserves memory for
    /// entries that can't be there.
    pub(super) fn count(&mut self, what: &'static str, max: usize) -> Result<usize, DecodeError> {
        let count = self.u32(what)? as usize;
        if count > max {
            return Err(self.fault(DecodeErrorKind::TooLarge, what));
        }
        if count > self.bytes.len() - self.position {
            return Err(self.fault(DecodeErrorKind::Truncated, what));
        }
        Ok(count)
    }

    pub(super) fn endpoint(&mut self) -> Result<Endpoint, DecodeError> {
        Ok(Endpoint {
            host: self.text("host")?,
            port: self.u16("port")?,
        })
    }

    pub(super) fn configs(&mut self) -> Result<Vec<(String, String)>, DecodeError> {
        let configs = self.count("topic settings", CONFIGS_MAX)?;
        (0..configs)
            .map(|_| {
                let key = self.text("key of a topic setting")?;
                Ok((key, self.text("value of a topic setting")?))
            })
            .collect()
    }
}
