//! The data plane as the admin plane sees it, and the reload of its configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_admin_api as admin;
use larder_proxy::DataPlane;
use larder_proxy::clock::unix_ms;
use larder_proxy::plane::PurgeUrlError;
use larder_proxy::traffic::snapshot::Snapshot;
use larder_proxy::traffic::{self, BUCKETS_US};
use larder_storage::disk::DiskState;
use parking_lot::Mutex;

use crate::config::{self, Loaded, Style};

const NOTHING_STORED: &str = "Nothing was stored under this key. Scheme, host, port (where it is not the scheme's own) and query are part of it.";

#[derive(Debug)]
pub(super) struct Control {
    plane: Arc<DataPlane>,
    /// What is in force.
    loaded: Mutex<Loaded>,
    info: Mutex<admin::ConfigInfo>,
}

impl Control {
    pub(super) fn new(plane: Arc<DataPlane>, loaded: Loaded) -> Self {
        let info = admin::ConfigInfo {
            hash: hash(&loaded),
            loaded_ms: unix_ms(),
            ..admin::ConfigInfo::default()
        };
        Self {
            plane,
            loaded: Mutex::new(loaded),
            info: Mutex::new(info),
        }
    }

    /// Reads the configuration file again and takes in its rules, vhosts and upstreams: all of it or nothing.
    pub(super) fn reload(&self) {
        let result = self.try_reload();
        let mut info = self.info.lock();
        match result {
            Ok(new_hash) => {
                tracing::info!(hash = new_hash, "configuration reloaded");
                info.hash = new_hash;
                info.loaded_ms = unix_ms();
                info.reloads += 1;
                info.last_reload_error = None;
            }
            Err(why) => {
                tracing::error!("the configuration was not reloaded, the old one stays in force: {why}");
                info.reload_failures += 1;
                info.last_reload_error = Some(why);
            }
        }
    }

    /// The tiers of the cache: memory, then each disk by its path.
    fn tiers(&self) -> Vec<admin::Tier> {
        let cache = self.plane.snapshot().cache;
        let memory = admin::Tier {
            name: "memory".to_owned(),
            state: if cache.memory_max == 0 {
                admin::TierState::Off
            } else {
                admin::TierState::Up
            },
            detail: None,
        };
        let disks = cache.disks.iter().map(|disk| {
            let warming = disk.warming.map(|percent| format!("warming {percent} %"));
            let (state, detail) = match &disk.state {
                DiskState::Up => (admin::TierState::Up, warming),
                DiskState::Degraded(why) => (admin::TierState::Degraded, Some(why.clone())),
            };
            admin::Tier {
                name: disk.path.display().to_string(),
                state,
                detail,
            }
        });
        std::iter::once(memory).chain(disks).collect()
    }

    fn try_reload(&self) -> Result<String, String> {
        let mut loaded = self.loaded.lock();
        let path = loaded.path.clone().ok_or("it came from no file")?;
        let new = config::load(&path).map_err(|findings| findings.render(Style::Plain))?;
        let fixed = loaded.resolved.needs_restart(&new.resolved);
        if !fixed.is_empty() {
            return Err(format!("only a restart can change {}", fixed.join(", ")));
        }
        self.plane
            .reload(&new.resolved.live)
            .map_err(|error| error.to_string())?;
        let new_hash = hash(&new);
        *loaded = new;
        Ok(new_hash)
    }
}

fn hash(loaded: &Loaded) -> String {
    blake3::hash(loaded.text.as_bytes()).to_hex().as_str().to_owned()
}

impl admin::Appliance for Control {
    fn snapshot(&self) -> Snapshot {
        self.plane.snapshot()
    }

    fn totals(&self) -> Snapshot {
        self.plane.totals()
    }

    fn latency_bounds_us(&self) -> &'static [u64] {
        &BUCKETS_US
    }

    fn reset(&self, scope: admin::Scope) -> Result<Snapshot, admin::UnknownName> {
        let scope = match scope {
            admin::Scope::All => traffic::Scope::All,
            admin::Scope::Vhost(name) => traffic::Scope::Vhost(name),
            admin::Scope::Origin(name) => traffic::Scope::Origin(name),
            admin::Scope::Cache => traffic::Scope::Cache,
        };
        self.plane
            .reset(&scope)
            .map_err(|unknown| admin::UnknownName(unknown.0))
    }

    fn purge_url<'a>(&'a self, url: &'a str) -> admin::Purging<'a> {
        Box::pin(async move {
            let purged = self.plane.purge_url(url).await.map_err(|error| purge_error(&error))?;
            let hint = (purged.variants == 0).then(|| NOTHING_STORED.to_owned());
            Ok(admin::PurgeReport {
                matched: purged.variants,
                bytes: purged.bytes,
                vhosts: BTreeMap::from([(purged.vhost, purged.variants)]),
                key: purged.url,
                fence: purged.fence,
                hint,
            })
        })
    }

    fn readiness(&self) -> admin::Readiness {
        let phase = if self.plane.is_draining() {
            admin::Phase::Draining
        } else {
            admin::Phase::Ready
        };
        let mut tiers = self.tiers();
        // Not a tier of the cache, but as much to be known: requests go on, their lines are lost.
        tiers.extend(self.plane.log_trouble().map(|why| admin::Tier {
            name: "access_log".to_owned(),
            state: admin::TierState::Degraded,
            detail: Some(why),
        }));
        admin::Readiness { phase, tiers }
    }

    fn config_version(&self) -> admin::ConfigInfo {
        self.info.lock().clone()
    }
}

fn purge_error(error: &PurgeUrlError) -> admin::PurgeError {
    let (kind, position) = match error {
        PurgeUrlError::NotAbsolute | PurgeUrlError::Authority => (admin::PurgeErrorKind::BadUrl, 0),
        PurgeUrlError::Byte { position } => (admin::PurgeErrorKind::BadUrl, *position),
        PurgeUrlError::Scheme => (admin::PurgeErrorKind::UnknownScheme, 0),
        PurgeUrlError::NoVhost { .. } => (admin::PurgeErrorKind::NoVhost, 0),
        PurgeUrlError::NotDurable(_) => (admin::PurgeErrorKind::NotDurable, 0),
    };
    admin::PurgeError {
        kind,
        position,
        reason: error.to_string(),
    }
}
