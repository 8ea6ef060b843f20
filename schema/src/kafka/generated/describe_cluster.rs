// Made from schema/kafka/messages/describe_cluster.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: DescribeCluster, versions 0-1.
///
/// Names the cluster and its brokers (KIP-700).
///
/// 1: which endpoints are asked for (KIP-919).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeClusterRequest {
    /// Whether to name the operations allowed on the cluster.
    pub include_cluster_authorized_operations: bool,
    /// 1: of the brokers; 2: of the controllers. Versions 1+. Default: 1.
    pub endpoint_type: i8,
}

impl Default for DescribeClusterRequest {
    fn default() -> Self {
        Self {
            include_cluster_authorized_operations: false,
            endpoint_type: 1,
        }
    }
}

impl Value for DescribeClusterRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <bool>::bytes_min(form);
        if version >= 1 {
            bytes += <i8>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            include_cluster_authorized_operations: from.field("include_cluster_authorized_operations")?,
            endpoint_type: if version >= 1 { from.field("endpoint_type")? } else { 1 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("include_cluster_authorized_operations", &self.include_cluster_authorized_operations)?;
        if version >= 1 {
            to.field("endpoint_type", &self.endpoint_type)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for DescribeClusterRequest {
    const API: ApiKey = ApiKey::DescribeCluster;
}

/// Response: DescribeCluster, versions 0-1.
///
/// Names the cluster and its brokers (KIP-700).
///
/// 1: which endpoints are asked for (KIP-919).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeClusterResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// A fault of the whole request.
    pub error_code: i16,
    /// What is wrong. Default: null.
    pub error_message: Option<Str>,
    /// Which endpoints follow. Versions 1+. Default: 1.
    pub endpoint_type: i8,
    /// The cluster.
    pub cluster_id: Str,
    /// The broker that takes changes of topics. Default: -1.
    pub controller_id: i32,
    /// The brokers.
    pub brokers: Vec<DescribeClusterResponseBroker>,
    /// A bit for each operation; the default: not asked for. Default: -2147483648.
    pub cluster_authorized_operations: i32,
}

impl Default for DescribeClusterResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: None,
            endpoint_type: 1,
            cluster_id: Str::default(),
            controller_id: -1,
            brokers: Vec::new(),
            cluster_authorized_operations: -2147483648,
        }
    }
}

impl Value for DescribeClusterResponse {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        if version >= 1 {
            bytes += <i8>::bytes_min(form);
        }
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Vec<DescribeClusterResponseBroker>>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            error_code: from.field("error_code")?,
            error_message: from.field("error_message")?,
            endpoint_type: if version >= 1 { from.field("endpoint_type")? } else { 1 },
            cluster_id: from.field("cluster_id")?,
            controller_id: from.field("controller_id")?,
            brokers: from.field("brokers")?,
            cluster_authorized_operations: from.field("cluster_authorized_operations")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("error_code", &self.error_code)?;
        to.field("error_message", &self.error_message)?;
        if version >= 1 {
            to.field("endpoint_type", &self.endpoint_type)?;
        }
        to.field("cluster_id", &self.cluster_id)?;
        to.field("controller_id", &self.controller_id)?;
        to.field("brokers", &self.brokers)?;
        to.field("cluster_authorized_operations", &self.cluster_authorized_operations)?;
        to.no_tags();
        Ok(())
    }
}

/// One of [`DescribeClusterResponse::brokers`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeClusterResponseBroker {
    /// Its id.
    pub broker_id: i32,
    /// Its host.
    pub host: Str,
    /// Its port.
    pub port: i32,
    /// Its rack. Default: null.
    pub rack: Option<Str>,
}

impl Value for DescribeClusterResponseBroker {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <Str>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        bytes += <Option<Str>>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            broker_id: from.field("broker_id")?,
            host: from.field("host")?,
            port: from.field("port")?,
            rack: from.field("rack")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("broker_id", &self.broker_id)?;
        to.field("host", &self.host)?;
        to.field("port", &self.port)?;
        to.field("rack", &self.rack)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for DescribeClusterResponse {
    const API: ApiKey = ApiKey::DescribeCluster;
}

impl Request for DescribeClusterRequest {
    type Response = DescribeClusterResponse;
}

impl Response for DescribeClusterResponse {}
