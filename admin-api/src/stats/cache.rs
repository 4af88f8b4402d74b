//! The cache zone and its tiers.

use std::collections::BTreeMap;

use larder_proxy::traffic::snapshot::{CacheSnapshot, DiskCounters, DiskState, DiskUsage, OwnerUsage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::TierState;

/// The cache zone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheStats {
    pub name: String,
    /// Unix time in milliseconds from which the counters count.
    pub since_ms: u64,
    /// Bytes (gauge).
    pub memory_used: u64,
    /// Bytes (gauge).
    pub memory_max: u64,
    /// In memory (gauge).
    pub objects: u64,
    /// Gauge.
    pub fills_active: u64,
    /// Bytes held by fills in progress (gauge).
    pub fill_bytes: u64,
    pub inserted: u64,
    pub evicted: u64,
    /// Objects that were not taken for want of room.
    pub refused: u64,
    pub purged: u64,
    /// Variants that had to go because their key had too many.
    pub variants_capped: u64,
    /// In the order of the configuration.
    pub disks: Vec<DiskStats>,
    /// What each vhost holds, by its name.
    pub vhosts: BTreeMap<String, VhostCacheStats>,
}

/// One disk of the disk tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskStats {
    pub path: String,
    pub state: TierState,
    /// Why it is degraded, or how far its index is loaded: `warming 43 %`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Bytes allocated below the path: segments, body files, index and snapshot (gauge).
    pub used: u64,
    /// Bytes that may be allocated (gauge).
    pub max: u64,
    /// Part of `used` that is the index and its snapshot (gauge).
    pub index_bytes: u64,
    /// Bytes of the heads and bodies that are alive (gauge).
    pub live_bytes: u64,
    /// Each variant counted (gauge).
    pub objects: u64,
    /// Bytes that wait to be written (gauge).
    pub queue_bytes: u64,
    /// Percent of the index that is in memory after a start; null once it is complete.
    pub warming: Option<u8>,
    /// By name: hits, misses, written, written_bytes, read_bytes, evicted, reinserted, expired, inactive, purged, corrupt,
    /// errors, refused_busy, refused_unavailable, promoted, demoted.
    pub counters: BTreeMap<String, u64>,
}

/// What a vhost holds (gauges).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VhostCacheStats {
    pub memory_objects: u64,
    /// Overhead included.
    pub memory_bytes: u64,
    pub disk_objects: u64,
    /// Heads and bodies.
    pub disk_bytes: u64,
}

impl CacheStats {
    pub(crate) fn new(from: &CacheSnapshot) -> Self {
        Self {
            name: from.name.clone(),
            since_ms: from.since_ms,
            memory_used: from.memory_used,
            memory_max: from.memory_max,
            objects: from.objects,
            fills_active: from.fills_active,
            fill_bytes: from.fill_bytes,
            inserted: from.inserted,
            evicted: from.evicted,
            refused: from.refused,
            purged: from.purged,
            variants_capped: from.variants_capped,
            disks: from.disks.iter().map(DiskStats::new).collect(),
            vhosts: from.owners.iter().map(of_vhost).collect(),
        }
    }
}

impl DiskStats {
    fn new(from: &DiskUsage) -> Self {
        let warming = from.warming.map(|percent| format!("warming {percent} %"));
        let (state, detail) = match &from.state {
            DiskState::Up => (TierState::Up, warming),
            DiskState::Degraded(why) => (TierState::Degraded, Some(why.clone())),
        };
        let counters = DiskCounters::NAMES.into_iter().zip(from.counters.to_array());
        Self {
            path: from.path.display().to_string(),
            state,
            detail,
            used: from.used,
            max: from.max,
            index_bytes: from.index_bytes,
            live_bytes: from.live_bytes,
            objects: from.objects,
            queue_bytes: from.queue_bytes,
            warming: from.warming,
            counters: counters.map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

fn of_vhost(owner: &OwnerUsage) -> (String, VhostCacheStats) {
    let stats = VhostCacheStats {
        memory_objects: owner.memory_objects,
        memory_bytes: owner.memory_bytes,
        disk_objects: owner.disk_objects,
        disk_bytes: owner.disk_bytes,
    };
    (owner.name.clone(), stats)
}
