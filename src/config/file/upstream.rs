//! `[[upstream]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::values::{At, TimeSpan};

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Upstream {
    /// Its row in the statistics, and what vhosts call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<At<String>>,
    /// This version takes one server, so that only `round_robin` is accepted.
    pub balance: At<Balance>,
    /// Idle connections that each worker keeps.
    pub keepalive: At<u32>,
    /// Connections at once.
    pub connections: At<u32>,
    /// Requests that may wait for a connection.
    pub queue: At<u32>,
    pub timeouts: UpstreamTimeouts,
    /// One server in this version.
    pub servers: At<Vec<At<UpstreamServer>>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<At<Health>>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            name: None,
            balance: Balance::RoundRobin.into(),
            keepalive: 64.into(),
            connections: 1024.into(),
            queue: 1024.into(),
            timeouts: UpstreamTimeouts::default(),
            servers: At::default(),
            health: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    #[default]
    RoundRobin,
    LeastConn,
    RandomTwo,
    Hash,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamTimeouts {
    /// To open a connection, time in the queue included.
    pub connect: At<TimeSpan>,
    /// From the end of the request to the head of the answer.
    pub first_byte: At<TimeSpan>,
    /// Between two reads of the answer's body.
    pub between_bytes: At<TimeSpan>,
    /// From the first attempt to the last byte of the answer. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<At<TimeSpan>>,
}

impl Default for UpstreamTimeouts {
    fn default() -> Self {
        Self {
            connect: TimeSpan::secs(5).into(),
            first_byte: TimeSpan::secs(60).into(),
            between_bytes: TimeSpan::secs(30).into(),
            total: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamServer {
    /// `host:port`. A name is looked up whenever a connection is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<At<String>>,
    /// Not in this version, except 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<At<u32>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fails: Option<At<u32>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_timeout: Option<At<TimeSpan>>,
    /// Not in this version, except `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<At<bool>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Health {
    pub path: Option<String>,
    pub interval: Option<TimeSpan>,
}
