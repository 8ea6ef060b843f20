//! The table of APIs: what is served, and what of it is advertised.

use super::generated::{API_TABLE, ApiKey};

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first.
    pub min: i16,
    /// The last.
    pub max: i16,
}

impl Versions {
    /// Whether it has this version.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Every version, in order.
    pub fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }
}

/// As in `3-11`.
impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.max - self.min {
            0 => write!(f, "{}", self.min),
            _ => write!(f, "{}-{}", self.min, self.max),
        }
    }
}

/// What there is to know of an API before one of its messages is read.
///
/// Some clients look at what is advertised to find out what else a broker can do: it may begin before what is served.
/// It may also end earlier, while an answer to the last versions is not yet whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiRow {
    /// The API.
    pub key: ApiKey,
    /// Its name.
    pub name: &'static str,
    /// The versions in which requests are taken.
    pub served: Versions,
    /// The versions that an answer to ApiVersions names.
    pub advertised: Versions,
    /// The first version with compact lengths and tagged fields.
    pub flexible_from: Option<i16>,
}

impl ApiRow {
    /// Whether a version has compact lengths and tagged fields.
    pub fn is_flexible(&self, version: i16) -> bool {
        self.flexible_from.is_some_and(|first| version >= first)
    }

    /// Whether the header of a response has tagged fields. That of ApiVersions has none: it is read by clients that
    /// don't know yet what the broker speaks.
    pub(super) fn has_flexible_response_header(&self, version: i16) -> bool {
        self.is_flexible(version) && self.key != ApiKey::ApiVersions
    }
}

impl ApiKey {
    /// Its number on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The API with this number, if there is one.
    pub fn from_code(code: i16) -> Option<Self> {
        let found = API_TABLE.binary_search_by_key(&code, |row| row.key.code());
        found.ok().map(|index| API_TABLE[index].key)
    }

    /// Its row of the table.
    pub fn row(self) -> &'static ApiRow {
        &API_TABLE[self.index()]
    }
}

/// Its name.
impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_found_by_number() {
        for (index, row) in API_TABLE.iter().enumerate() {
            assert_eq!(ApiKey::from_code(row.key.code()), Some(row.key));
            assert_eq!((row.key.index(), row.key.row()), (index, row));
            assert!(
                row.advertised.min <= row.served.min && row.served.contains(row.advertised.max)
            );
        }
        for unknown in [-1, 4, 17, 68, i16::MAX, i16::MIN] {
            assert_eq!(ApiKey::from_code(unknown), None);
        }
    }

    #[test]
    fn what_old_clients_look_for_is_advertised() {
        let advertised = |key: ApiKey| key.row().advertised.to_string();
        assert_eq!(advertised(ApiKey::Produce), "0-11");
        assert_eq!(advertised(ApiKey::OffsetDelete), "0");
        for old in [
            ApiKey::FindCoordinator,
            ApiKey::JoinGroup,
            ApiKey::SyncGroup,
            ApiKey::Heartbeat,
            ApiKey::LeaveGroup,
        ] {
            assert_eq!(old.row().served.min, 0, "{old}");
        }
    }
}
