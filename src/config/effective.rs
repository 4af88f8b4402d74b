//! The way back: settings as a file with every default written out, which reads as the same settings again.

use std::time::Duration;

use larder_proxy::config::{Boot, HostPattern, KeyParts, LogFormat, PathPattern, Rule, Upstream, Vhost};
use larder_semantics::{Policy, SetCookie, StatusMatch};
use larder_storage::disk::DiskConfig;

use super::Resolved;
use super::file::{self, File, Override};
use super::values::{At, AutoOr, ByteSize, Cidr, TimeSpan, TtlTable};

/// A TOML file with all that is in force.
pub fn effective(resolved: &Resolved) -> Result<String, toml::ser::Error> {
    toml::to_string(&to_file(resolved))
}

fn to_file(resolved: &Resolved) -> File {
    let live = &resolved.live;
    File {
        state_dir: resolved.state_dir.clone().into(),
        server: server(&resolved.boot),
        listener: resolved.boot.listeners.iter().map(listener).collect(),
        admin: file::Admin {
            listen: resolved.admin.listen.to_string().into(),
            dialects: None,
        },
        cache: cache(&resolved.boot),
        upstream: live
            .upstreams
            .iter()
            .map(|upstream| self::upstream(upstream).into())
            .collect(),
        vhost: live
            .vhosts
            .iter()
            .map(|vhost| self::vhost(vhost, &live.upstreams).into())
            .collect(),
    }
}

fn server(boot: &Boot) -> file::Server {
    let limits = &boot.limits;
    file::Server {
        workers: AutoOr::Count(boot.workers as u64).into(),
        drain: time(boot.drain),
        access_log: boot.access_log.as_ref().map(|log| {
            let format = match log.format {
                LogFormat::Combined => file::LogFormat::Combined,
                LogFormat::Json => file::LogFormat::Json,
            };
            let path = Some(log.path.clone().into());
            file::AccessLog { path, format }.into()
        }),
        timeouts: file::Timeouts {
            header: time(boot.timeouts.header),
            idle: time(boot.timeouts.idle),
            body: time(boot.timeouts.body),
            write: time(boot.timeouts.write),
        },
        limits: file::Limits {
            head_bytes: size(limits.head_bytes as u64),
            headers: count(limits.headers),
            body_bytes: size(limits.body_bytes),
            body_rate: size(limits.body_rate),
            connections: AutoOr::Count(limits.connections as u64).into(),
            connections_per_client: limits.connections_per_client.map(count),
        },
    }
}

fn listener(address: &std::net::SocketAddr) -> At<file::Listener> {
    let address = Some(address.to_string().into());
    file::Listener { address, tls: None }.into()
}

fn cache(boot: &Boot) -> file::Cache {
    file::Cache {
        name: boot.cache_name.clone().into(),
        memory: file::Memory {
            max_size: size(boot.memory.max_size),
            // Where the tier is off there is no largest object.
            max_object: (boot.memory.max_object > 0).then(|| size(boot.memory.max_object)),
            variants: count(boot.memory.variants),
        },
        disk: boot.disks.iter().map(disk).collect(),
    }
}

fn disk(disk: &DiskConfig) -> At<file::Disk> {
    file::Disk {
        path: Some(disk.path.clone().into()),
        max_size: Some(size(disk.max_size)),
        min_free: Some(size(disk.min_free)),
        inactive: disk.inactive.map(time),
    }
    .into()
}

fn upstream(upstream: &Upstream) -> file::Upstream {
    let server = file::UpstreamServer {
        address: Some(upstream.address.clone().into()),
        ..file::UpstreamServer::default()
    };
    file::Upstream {
        name: Some(upstream.name.clone().into()),
        keepalive: count(upstream.keepalive),
        connections: count(upstream.connections),
        queue: count(upstream.queue),
        timeouts: file::UpstreamTimeouts {
            connect: time(upstream.timeouts.connect),
            first_byte: time(upstream.timeouts.first_byte),
            between_bytes: time(upstream.timeouts.between_bytes),
            total: upstream.timeouts.total.map(time),
        },
        servers: vec![server.into()].into(),
        ..file::Upstream::default()
    }
}

fn vhost(vhost: &Vhost, upstreams: &[Upstream]) -> file::Vhost {
    let host = |host: &HostPattern| match host {
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Suffix(suffix) => format!("*{suffix}"),
        HostPattern::Any => "*".to_owned(),
    };
    let hosts: Vec<String> = vhost.hosts.iter().map(host).collect();
    file::Vhost {
        name: Some(vhost.name.clone().into()),
        hosts: words(&hosts),
        default: false.into(),
        upstream: upstreams
            .get(vhost.upstream)
            .map(|upstream| upstream.name.clone().into()),
        root: None,
        purge: vhost.purge.as_ref().map(|purge| {
            let method = purge.method.to_string().into();
            let allow = purge.allow.iter().copied().map(Cidr).collect();
            file::Purge { method, allow }.into()
        }),
        upgrade: words(&vhost.upgrade),
        trusted_proxies: vhost.trusted_proxies.iter().copied().map(Cidr).collect(),
        rule: vhost.rules.iter().map(|rule| self::rule(rule).into()).collect(),
    }
}

fn rule(rule: &Rule) -> file::Rule {
    let Policy {
        ttl,
        ttl_force,
        overrides,
        set_cookie,
        heuristic,
        targeted,
    } = &rule.policy;
    let overrides: Vec<Override> = [
        (overrides.no_store, Override::NoStore),
        (overrides.private, Override::Private),
        (overrides.set_cookie, Override::SetCookie),
    ]
    .into_iter()
    .filter_map(|(is_named, named)| is_named.then_some(named))
    .collect();
    file::Rule {
        name: Some(rule.name.clone().into()),
        matches: matches(&rule.matches),
        ttl: (!ttl.is_empty()).then(|| ttl_table(ttl).into()),
        ttl_force: (*ttl_force).into(),
        overrides: (!overrides.is_empty()).then(|| overrides.into()),
        set_cookie: match set_cookie {
            SetCookie::NoStore => file::SetCookie::NoStore,
            SetCookie::Strip => file::SetCookie::Strip,
            SetCookie::Store => file::SetCookie::Store,
        },
        heuristic: heuristic.map(|heuristic| {
            let fraction = heuristic.fraction.into();
            let max = time(heuristic.max);
            file::Heuristic { fraction, max }.into()
        }),
        targeted: words(targeted),
        key: key(&rule.key),
        bypass: condition(&rule.bypass),
        no_store: condition(&rule.no_store),
        honour_no_cache: rule.honour_request_no_cache,
        min_uses: (rule.min_uses > 1).then(|| rule.min_uses.into()),
        ..file::Rule::default()
    }
}

fn matches(matches: &larder_proxy::config::Match) -> file::Match {
    let condition = matches.condition.clone().unwrap_or_default();
    let mut written = file::Match {
        method: matches.methods.iter().map(|method| method.to_string().into()).collect(),
        header: words(&condition.header),
        cookie: words(&condition.cookie),
        query: words(&condition.query),
        ..file::Match::default()
    };
    match &matches.path {
        Some(PathPattern::Glob(glob)) => written.path = Some(glob.clone().into()),
        Some(PathPattern::Prefix(prefix)) => written.path_prefix = Some(prefix.clone().into()),
        Some(PathPattern::Regex(regex)) => written.path_regex = Some(regex.clone().into()),
        None => {}
    }
    written
}

fn condition(condition: &larder_proxy::config::Condition) -> file::Condition {
    file::Condition {
        query: words(&condition.query),
        cookie: words(&condition.cookie),
        header: words(&condition.header),
    }
}

fn key(key: &KeyParts) -> file::Key {
    file::Key {
        ignore_query: words(&key.ignore_query),
        keep_query: key.keep_query.as_deref().map(words),
        sort_query: key.sort_query,
    }
}

fn ttl_table(ttl: &[(StatusMatch, Duration)]) -> TtlTable {
    let entry = |(status, ttl): &(StatusMatch, Duration)| {
        let status = match status {
            StatusMatch::Exactly(code) => code.to_string(),
            StatusMatch::Any => "any".to_owned(),
        };
        (status.into(), time(*ttl))
    };
    TtlTable(ttl.iter().map(entry).collect())
}

fn time(duration: Duration) -> At<TimeSpan> {
    TimeSpan(duration).into()
}

fn size(bytes: u64) -> At<ByteSize> {
    ByteSize(bytes).into()
}

fn count(count: usize) -> At<u32> {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

fn words(words: &[String]) -> Vec<At<String>> {
    words.iter().cloned().map(At::from).collect()
}
