// Made from schema/kafka/messages/find_coordinator.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: FindCoordinator, versions 0-5.
///
/// Names the broker that coordinates a group or a transaction.
///
/// Host and id are those that Metadata names. 1: transactions. 4: several keys at once (KIP-699).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindCoordinatorRequest {
    /// The group, or the transaction. Versions 0-3.
    pub key: Str,
    /// 0: groups; 1: transactions. Versions 1+.
    pub key_type: i8,
    /// The groups, or the transactions. Versions 4+.
    pub coordinator_keys: Vec<Str>,
}

impl Value for FindCoordinatorRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version <= 3 {
            bytes += <Str>::bytes_min(form);
        }
        if version >= 1 {
            bytes += <i8>::bytes_min(form);
        }
        if version >= 4 {
            bytes += <Vec<Str>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            key: if version <= 3 { from.field("key")? } else { Str::default() },
            key_type: if version >= 1 { from.field("key_type")? } else { 0 },
            coordinator_keys: if version >= 4 { from.field("coordinator_keys")? } else { Vec::new() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version <= 3 {
            to.field("key", &self.key)?;
        }
        if version >= 1 {
            to.field("key_type", &self.key_type)?;
        }
        if version >= 4 {
            to.field("coordinator_keys", &self.coordinator_keys)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for FindCoordinatorRequest {
    const API: ApiKey = ApiKey::FindCoordinator;
}

/// Response: FindCoordinator, versions 0-5.
///
/// Names the broker that coordinates a group or a transaction.
///
/// Host and id are those that Metadata names. 1: transactions. 4: several keys at once (KIP-699).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindCoordinatorResponse {
    /// How long the client was held back for its quota. Versions 1+.
    pub throttle_time_ms: i32,
    /// Whether there is a coordinator. Versions 0-3.
    pub error_code: i16,
    /// What is wrong. Versions 1-3.
    pub error_message: Option<Str>,
    /// Its broker. Versions 0-3.
    pub node_id: i32,
    /// Its host. Versions 0-3.
    pub host: Str,
    /// Its port. Versions 0-3.
    pub port: i32,
    /// A coordinator for each key. Versions 4+.
    pub coordinators: Vec<FindCoordinatorResponseCoordinator>,
}

impl Default for FindCoordinatorResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(Str::default()),
            node_id: 0,
            host: Str::default(),
            port: 0,
            coordinators: Vec::new(),
        }
    }
}

impl Value for FindCoordinatorResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        if version >= 1 {
            bytes += <i32>::bytes_min(form);
        }
        if version <= 3 {
            bytes += <i16>::bytes_min(form);
        }
        if (1..=3).contains(&version) {
            bytes += <Option<Str>>::bytes_min(form);
        }
        if version <= 3 {
            bytes += <i32>::bytes_min(form);
        }
        if version <= 3 {
            bytes += <Str>::bytes_min(form);
        }
        if version <= 3 {
            bytes += <i32>::bytes_min(form);
        }
        if version >= 4 {
            bytes += <Vec<FindCoordinatorResponseCoordinator>>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: if version >= 1 { from.field("throttle_time_ms")? } else { 0 },
            error_code: if version <= 3 { from.field("error_code")? } else { 0 },
            error_message: if (1..=3).contains(&version) { from.field("error_message")? } else { Some(Str::default()) },
            node_id: if version <= 3 { from.field("node_id")? } else { 0 },
            host: if version <= 3 { from.field("host")? } else { Str::default() },
            port: if version <= 3 { from.field("port")? } else { 0 },
            coordinators: if version >= 4 { from.field("coordinators")? } else { Vec::new() },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        if version >= 1 {
            to.field("throttle_time_ms", &self.throttle_time_ms)?;
        }
        if version <= 3 {
            to.field("error_code", &self.error_code)?;
        }
        if (1..=3).contains(&version) {
            to.field("error_message", &self.error_message)?;
        }
        if version <= 3 {
            to.field("node_id", &self.node_id)?;
        }
        if version <= 3 {
            to.field("host", &self.host)?;
        }
        if version <= 3 {
            to.field("port", &self.port)?;
        }
        if version >= 4 {
            to.field("coordinators", &self.coordinators)?;
        }
        to.no_tags();
        Ok(())
    }
}

/// One of [`FindCoordinatorResponse::coordinators`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindCoordinatorResponseCoordinator {
    /// The key.
    pub key: Str,
    /// Its broker.
    pub node_id: i32,
    /// Its host.
    pub host: Str,
    /// Its port.
    pub port: i32,
    /// Whether there is one.
    pub error_code: i16,
    /// What is wrong.
    pub error_message: Option<Str>,
}

impl Default for FindCoordinatorResponseCoordinator {
    fn default() -> Self {
        Self {
            key: Str::default(),
            node_id: 0,
            host: Str::default(),
            port: 0,
            error_code: 0,
            error_message: Some(Str::default()),
        }
    }
}

impl Value for FindCoordinatorResponseCoordinator {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            key: from.field("key")?,
            node_id: from.field("node_id")?,
            host: from.field("host")?,
            port: from.field("port")?,
            error_code: from.field("error_code")?,
            error_message: from.field("error_message")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("key", &self.key)?;
        to.field("node_id", &self.node_id)?;
        to.field("host", &self.host)?;
        to.field("port", &self.port)?;
        to.field("error_code", &self.error_code)?;
        to.field("error_message", &self.error_message)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for FindCoordinatorResponse {
    const API: ApiKey = ApiKey::FindCoordinator;
}

impl Request for FindCoordinatorRequest {
    type Response = FindCoordinatorResponse;
}

impl Response for FindCoordinatorResponse {}
