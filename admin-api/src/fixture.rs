//! An appliance in memory for tests, and a caller that drives the router without a socket.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use larder_proxy::outcome::{CacheStatus, Forward, NotStored};
use larder_proxy::traffic::snapshot::{
    CacheCount, CacheSnapshot, Connections, DiskUsage, Histogram, OriginSnapshot, OwnerUsage, Requests, RuleSnapshot,
    Snapshot, VhostSnapshot,
};
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt;

use crate::{
    AllowedHosts, Appliance, AuditLog, ConfigInfo, Parts, Phase, PurgeError, PurgeErrorKind, PurgeReport, Purging,
    Readiness, Scope, Tier, TierState, Tokens, UnknownName, router,
};

pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const BOUNDS_US: &[u64] = &[100, 1_000, 2_500_000];

/// Keeps figures for one vhost, one origin and the cache, and objects by URL on the host `www.example.test`.
pub(crate) struct Pantry {
    pub(crate) totals: Snapshot,
    pub(crate) shown: Mutex<Snapshot>,
    /// Size of each variant.
    pub(crate) objects: Mutex<BTreeMap<String, Vec<u64>>>,
    pub(crate) resets: Mutex<Vec<Scope>>,
    pub(crate) phase: Mutex<Phase>,
    fence: Mutex<u64>,
}

impl Pantry {
    pub(crate) fn new(totals: Snapshot) -> Self {
        Self {
            shown: Mutex::new(totals.clone()),
            totals,
            objects: Mutex::default(),
            resets: Mutex::default(),
            phase: Mutex::new(Phase::Ready),
            fence: Mutex::new(41),
        }
    }

    fn purge(&self, url: &str) -> Result<PurgeReport, PurgeError> {
        let error = |kind, position, reason: &str| PurgeError {
            kind,
            position,
            reason: reason.to_owned(),
        };
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(error(PurgeErrorKind::BadUrl, 0, "no scheme"));
        };
        if !matches!(scheme, "http" | "https") {
            return Err(error(PurgeErrorKind::UnknownScheme, 0, "neither http nor https"));
        }
        if rest.split('/').next() != Some("www.example.test") {
            return Err(error(
                PurgeErrorKind::NoVhost,
                scheme.len() + 3,
                "no vhost answers for it",
            ));
        }
        let sizes = self.objects.lock().remove(url).unwrap_or_default();
        let mut fence = self.fence.lock();
        *fence += 1;
        Ok(PurgeReport {
            matched: sizes.len() as u64,
            bytes: sizes.iter().sum(),
            vhosts: BTreeMap::from([("www".to_owned(), sizes.len() as u64)]),
            key: rest.to_owned(),
            fence: *fence,
            hint: sizes.is_empty().then(|| "it is stored with another query".to_owned()),
        })
    }
}

impl Appliance for Pantry {
    fn snapshot(&self) -> Snapshot {
        self.shown.lock().clone()
    }

    fn totals(&self) -> Snapshot {
        self.totals.clone()
    }

    fn latency_bounds_us(&self) -> &'static [u64] {
        BOUNDS_US
    }

    fn reset(&self, scope: Scope) -> Result<Snapshot, UnknownName> {
        let mut shown = self.shown.lock();
        let before = shown.clone();
        match &scope {
            Scope::All => {
                *shown = Snapshot {
                    epoch: before.epoch + 1,
                    ..snapshot(&names(&before), 0)
                };
            }
            Scope::Vhost(name) => {
                let row = shown.vhosts.iter_mut().find(|row| row.name == *name);
                row.ok_or_else(|| UnknownName(name.clone()))?.requests = requests(0);
            }
            Scope::Origin(name) => {
                let row = shown.origins.iter_mut().find(|row| row.upstream == *name);
                row.ok_or_else(|| UnknownName(name.clone()))?.requests = 0;
            }
            Scope::Cache => shown.cache.inserted = 0,
        }
        self.resets.lock().push(scope);
        Ok(before)
    }

    fn purge_url<'a>(&'a self, url: &'a str) -> Purging<'a> {
        Box::pin(std::future::ready(self.purge(url)))
    }

    fn readiness(&self) -> Readiness {
        let tier = Tier {
            name: "memory".to_owned(),
            state: TierState::Up,
            detail: None,
        };
        Readiness {
            phase: *self.phase.lock(),
            tiers: vec![tier],
        }
    }

    fn config_version(&self) -> ConfigInfo {
        ConfigInfo {
            hash: "c0ffee".to_owned(),
            loaded_ms: 1_500,
            reloads: 3,
            reload_failures: 1,
            last_reload_error: Some("/etc/larder.toml: line 3".to_owned()),
        }
    }
}

fn names(snapshot: &Snapshot) -> [String; 4] {
    let origin = &snapshot.origins[0];
    [
        snapshot.vhosts[0].name.clone(),
        snapshot.vhosts[0].rules[0].name.clone(),
        origin.upstream.clone(),
        origin.server.clone(),
    ]
}

fn requests(count: u64) -> Requests {
    let histogram = || Histogram {
        counts: vec![count, 0, count, 1],
        sum_us: count * 1500,
    };
    Requests {
        requests: count,
        in_flight: 2,
        bytes_received: count,
        bytes_sent: count,
        responses: [0, count, 0, 0, count],
        cache: CacheStatus::ALL
            .map(|status| {
                (
                    status.word(),
                    CacheCount {
                        requests: count,
                        bytes_sent: count,
                    },
                )
            })
            .to_vec(),
        forwarded: Forward::ALL.map(|forward| (forward.name(), count)).to_vec(),
        not_stored: NotStored::all().map(|reason| (reason.name(), count)).collect(),
        stored: count,
        collapsed: count,
        hit_latency: histogram(),
        miss_latency: histogram(),
        origin_latency: histogram(),
    }
}

/// Every counter is `count`. The names are those of a vhost, a rule, an upstream and a server.
pub(crate) fn snapshot(names: &[String; 4], count: u64) -> Snapshot {
    let [vhost, rule, upstream, server] = names.clone();
    Snapshot {
        epoch: 7,
        now_ms: 1_700_000_000_000,
        started_ms: 1_600_000_000_500,
        connections: Connections {
            active: 1,
            accepted: count,
            refused: count,
            timeouts: vec![("header", count), ("idle", count)],
            malformed: vec![("bad-host", count)],
            upgraded: count,
        },
        total: requests(count),
        vhosts: vec![VhostSnapshot {
            name: vhost,
            since_ms: 1_600_000_000_500,
            requests: requests(count),
            rules: vec![RuleSnapshot {
                name: rule,
                requests: count,
                hits: count,
                bytes_sent: count,
            }],
        }],
        origins: vec![OriginSnapshot {
            upstream,
            server,
            requests: count,
            responses: [0, count, 0, 0, 0],
            failures: vec![("connect", count)],
            ..OriginSnapshot::default()
        }],
        cache: CacheSnapshot {
            name: "main".to_owned(),
            objects: 5,
            inserted: count,
            disks: vec![DiskUsage {
                path: "/var/lib/larder/cache".into(),
                objects: count,
                ..DiskUsage::default()
            }],
            owners: vec![OwnerUsage {
                name: names[0].clone(),
                ..OwnerUsage::default()
            }],
            ..CacheSnapshot::default()
        },
        log_lines_dropped: count,
    }
}

pub(crate) fn plain() -> Snapshot {
    snapshot(&["www", "", "app", "127.0.0.1:9000"].map(str::to_owned), 10)
}

/// A control plane over a [`Pantry`], in a state directory of its own.
pub(crate) struct Console {
    pub(crate) pantry: Arc<Pantry>,
    pub(crate) router: Router,
    dir: tempfile::TempDir,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }
}

impl Console {
    pub(crate) fn new() -> Self {
        Self::with(plain())
    }

    pub(crate) fn with(totals: Snapshot) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pantry = Arc::new(Pantry::new(totals));
        let router = router(Parts {
            appliance: Arc::clone(&pantry) as Arc<dyn Appliance>,
            tokens: Tokens::from_secret(SECRET).unwrap(),
            audit: AuditLog::open(dir.path()).unwrap(),
            hosts: AllowedHosts::new("127.0.0.1:9090".parse().unwrap(), &[]),
        });
        Self { pantry, router, dir }
    }

    pub(crate) fn state_dir(&self) -> &Path {
        self.dir.path()
    }

    /// As it is.
    pub(crate) async fn raw(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// With the right host.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost:9090");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.raw(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// With the right host and token.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[("authorization", &bearer())], "").await
    }

    /// With the right host, token and media type.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        let headers = [("authorization", &*bearer()), ("content-type", "application/json")];
        self.send("POST", path, &headers, body).await
    }

    pub(crate) fn audit_lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state_dir().join("audit.log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn bearer() -> String {
    format!("Bearer {SECRET}")
}
