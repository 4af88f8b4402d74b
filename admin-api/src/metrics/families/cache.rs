//! Metrics of the cache zone, its disks, and what each vhost holds.

use larder_proxy::traffic::snapshot::{DiskState, DiskUsage};

use super::super::{Family, Kind, Reading};

pub(in super::super) const FAMILIES: &[Family] = &[
    Family {
        name: "larder_cache_memory_used_bytes",
        kind: Kind::Gauge,
        labels: &["cache"],
        help: "Memory used by objects.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.memory_used),
    },
    Family {
        name: "larder_cache_memory_max_bytes",
        kind: Kind::Gauge,
        labels: &["cache"],
        help: "Memory that objects may use.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.memory_max),
    },
    Family {
        name: "larder_cache_objects",
        kind: Kind::Gauge,
        labels: &["cache"],
        help: "Objects stored, each variant counted.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.objects),
    },
    Family {
        name: "larder_cache_fills_active",
        kind: Kind::Gauge,
        labels: &["cache"],
        help: "Answers of origins that are being read into the cache.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.fills_active),
    },
    Family {
        name: "larder_cache_fill_bytes",
        kind: Kind::Gauge,
        labels: &["cache"],
        help: "Memory held by fills in progress.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.fill_bytes),
    },
    Family {
        name: "larder_cache_inserted_total",
        kind: Kind::Counter,
        labels: &["cache"],
        help: "Objects stored.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.inserted),
    },
    Family {
        name: "larder_cache_evicted_total",
        kind: Kind::Counter,
        labels: &["cache"],
        help: "Objects that had to go for others.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.evicted),
    },
    Family {
        name: "larder_cache_refused_total",
        kind: Kind::Counter,
        labels: &["cache"],
        help: "Objects that were not taken for want of room.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.refused),
    },
    Family {
        name: "larder_cache_purged_total",
        kind: Kind::Counter,
        labels: &["cache"],
        help: "Objects taken out by invalidations.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.purged),
    },
    Family {
        name: "larder_cache_variants_capped_total",
        kind: Kind::Counter,
        labels: &["cache"],
        help: "Variants that had to go because their key had too many.",
        read: |reading, samples| samples.put(&[&reading.totals.cache.name], reading.totals.cache.variants_capped),
    },
    Family {
        name: "larder_disk_up",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "1 while the disk works, 0 while it is degraded.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                samples.put(labels, u64::from(disk.state == DiskState::Up))
            })
        },
    },
    Family {
        name: "larder_disk_used_bytes",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Bytes allocated below the path of the disk.",
        read: |reading, samples| each_disk(reading, |labels, disk| samples.put(labels, disk.used)),
    },
    Family {
        name: "larder_disk_max_bytes",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Bytes that the disk may allocate.",
        read: |reading, samples| each_disk(reading, |labels, disk| samples.put(labels, disk.max)),
    },
    Family {
        name: "larder_disk_index_bytes",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Bytes of the disk that its index takes.",
        read: |reading, samples| each_disk(reading, |labels, disk| samples.put(labels, disk.index_bytes)),
    },
    Family {
        name: "larder_disk_live_bytes",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Bytes of the heads and bodies that are alive.",
        read: |reading, samples| each_disk(reading, |labels, disk| samples.put(labels, disk.live_bytes)),
    },
    Family {
        name: "larder_disk_objects",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Objects on the disk, each variant counted.",
        read: |reading, samples| each_disk(reading, |labels, disk| samples.put(labels, disk.objects)),
    },
    Family {
        name: "larder_disk_queue_bytes",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Bytes that wait to be written.",
        read: |reading, samples| each_disk(reading, |labels, disk| samples.put(labels, disk.queue_bytes)),
    },
    Family {
        name: "larder_disk_index_loaded_percent",
        kind: Kind::Gauge,
        labels: &["cache", "path"],
        help: "Percent of the index that is in memory after a start.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                samples.put(labels, disk.warming.map_or(100, u64::from))
            })
        },
    },
    Family {
        name: "larder_disk_lookups_total",
        kind: Kind::Counter,
        labels: &["cache", "path", "result"],
        help: "Lookups of what was not in memory.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                for (word, count) in [("hit", disk.counters.hits), ("miss", disk.counters.misses)] {
                    samples.put(&[labels, &[word]].concat(), count);
                }
            });
        },
    },
    Family {
        name: "larder_disk_io_bytes_total",
        kind: Kind::Counter,
        labels: &["cache", "path", "direction"],
        help: "Bytes read for lookups, and bytes written, those that were moved included.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                for (word, count) in [
                    ("read", disk.counters.read_bytes),
                    ("written", disk.counters.written_bytes),
                ] {
                    samples.put(&[labels, &[word]].concat(), count);
                }
            });
        },
    },
    Family {
        name: "larder_disk_objects_total",
        kind: Kind::Counter,
        labels: &["cache", "path", "event"],
        help: "Objects that were written, moved between the tiers, or dropped.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                for (word, count) in [
                    ("written", disk.counters.written),
                    ("reinserted", disk.counters.reinserted),
                    ("promoted", disk.counters.promoted),
                    ("demoted", disk.counters.demoted),
                    ("evicted", disk.counters.evicted),
                    ("expired", disk.counters.expired),
                    ("inactive", disk.counters.inactive),
                    ("purged", disk.counters.purged),
                ] {
                    samples.put(&[labels, &[word]].concat(), count);
                }
            });
        },
    },
    Family {
        name: "larder_disk_refused_total",
        kind: Kind::Counter,
        labels: &["cache", "path", "reason"],
        help: "Objects that were not admitted.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                for (word, count) in [
                    ("busy", disk.counters.refused_busy),
                    ("unavailable", disk.counters.refused_unavailable),
                ] {
                    samples.put(&[labels, &[word]].concat(), count);
                }
            });
        },
    },
    Family {
        name: "larder_disk_faults_total",
        kind: Kind::Counter,
        labels: &["cache", "path", "kind"],
        help: "Records that were damaged, and operations that the disk failed.",
        read: |reading, samples| {
            each_disk(reading, |labels, disk| {
                for (word, count) in [("corrupt", disk.counters.corrupt), ("error", disk.counters.errors)] {
                    samples.put(&[labels, &[word]].concat(), count);
                }
            });
        },
    },
    Family {
        name: "larder_vhost_cache_bytes",
        kind: Kind::Gauge,
        labels: &["vhost", "tier"],
        help: "Bytes that a vhost holds in a tier.",
        read: |reading, samples| {
            for owner in &reading.totals.cache.owners {
                for (tier, value) in [("memory", owner.memory_bytes), ("disk", owner.disk_bytes)] {
                    samples.put(&[&owner.name, tier], value);
                }
            }
        },
    },
    Family {
        name: "larder_vhost_cache_objects",
        kind: Kind::Gauge,
        labels: &["vhost", "tier"],
        help: "Objects that a vhost holds in a tier.",
        read: |reading, samples| {
            for owner in &reading.totals.cache.owners {
                for (tier, value) in [("memory", owner.memory_objects), ("disk", owner.disk_objects)] {
                    samples.put(&[&owner.name, tier], value);
                }
            }
        },
    },
];

fn each_disk(reading: &Reading<'_>, mut put: impl FnMut(&[&str], &DiskUsage)) {
    let cache = &reading.totals.cache;
    for disk in &cache.disks {
        put(&[&cache.name, &disk.path.display().to_string()], disk);
    }
}
