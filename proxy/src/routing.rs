//! From host, path and fields to a virtual host and its rule. Everything is compiled when the configuration is taken in: a
//! host costs a few hash probes, a path one probe of its first segment and the rules that could match it.

mod conditions;
mod observe;
mod paths;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use ipnet::IpNet;
use larder_semantics::{Fields, Policy};

use crate::config::{self, HostPattern, Live};
use crate::origin::{Observe, Upstream};
use crate::query::QueryRules;
use crate::target::Target;
use crate::traffic::{Traffic, VhostCounters, WorkerId};

pub use conditions::Conditions;
use paths::PathIndex;

/// What cannot be compiled. The configuration file's own checks find these first, with a place in the file.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("rule `{rule}` of vhost `{vhost}` has a pattern that does not compile")]
    Pattern {
        vhost: String,
        rule: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("vhost `{vhost}` names an upstream that does not exist")]
    Upstream { vhost: String },
}

/// The live configuration, compiled. Replaced as a whole by a reload.
#[derive(Debug)]
pub struct Router {
    exact: HashMap<Box<[u8]>, usize, RandomState>,
    /// By what follows the `*` of `*.example.test`, dot included.
    suffix: HashMap<Box<[u8]>, usize, RandomState>,
    any: Option<usize>,
    vhosts: Vec<Arc<Vhost>>,
    upstreams: Vec<Arc<Upstream>>,
}

/// A virtual host, compiled.
pub struct Vhost {
    pub name: String,
    pub counters: Arc<VhostCounters>,
    pub upstream: Arc<Upstream>,
    /// By worker: who counts what happens with the upstream.
    observers: Vec<Arc<dyn Observe>>,
    pub purge: Option<config::PurgeMethod>,
    pub upgrade: Vec<String>,
    pub trusted_proxies: Vec<IpNet>,
    /// The last one is the implicit rule that matches everything.
    rules: Vec<Arc<Rule>>,
    paths: PathIndex,
}

/// A rule, compiled.
#[derive(Debug)]
pub struct Rule {
    /// Its place in the vhost, and in the vhost's counters.
    pub index: usize,
    pub name: String,
    pub policy: Policy,
    query: QueryRules,
    pub bypass: Conditions,
    pub no_store: Conditions,
    /// Requests for a key before its answer is stored.
    pub min_uses: u32,
    pub honour_request_no_cache: bool,
    methods: Vec<http::Method>,
    condition: Option<Conditions>,
}

impl Router {
    /// Compiles `live`. Upstreams whose settings did not change are taken over from `previous` with their connections;
    /// counters are found by name.
    ///
    /// # Errors
    /// A pattern that does not compile, or an upstream that does not exist.
    pub fn compile(live: &Live, traffic: &Traffic, previous: Option<&Self>) -> Result<Self, CompileError> {
        let workers = traffic.workers();
        let upstreams: Vec<_> = live
            .upstreams
            .iter()
            .map(|settings| upstream(settings, workers, previous))
            .collect();
        let mut router = Self {
            exact: HashMap::default(),
            suffix: HashMap::default(),
            any: None,
            vhosts: Vec::with_capacity(live.vhosts.len()),
            upstreams: Vec::new(),
        };
        for (index, vhost) in live.vhosts.iter().enumerate() {
            for host in &vhost.hosts {
                match host {
                    HostPattern::Exact(name) => drop(router.exact.insert(name.as_bytes().into(), index)),
                    HostPattern::Suffix(name) => drop(router.suffix.insert(name.as_bytes().into(), index)),
                    HostPattern::Any => router.any = Some(index),
                }
            }
            router
                .vhosts
                .push(Arc::new(Vhost::compile(vhost, &upstreams, traffic)?));
        }
        router.upstreams = upstreams;
        let rows: Vec<_> = live
            .vhosts
            .iter()
            .map(|vhost| {
                (
                    vhost.name.clone(),
                    vhost.rules.iter().map(|rule| rule.name.clone()).collect(),
                )
            })
            .collect();
        let origins: Vec<_> = live
            .upstreams
            .iter()
            .map(|upstream| (upstream.name.clone(), upstream.address.clone()))
            .collect();
        traffic.configure(&rows, &origins);
        Ok(router)
    }

    /// The vhost that answers to `host`: an exact name, else the longest wildcard, else the default.
    #[must_use]
    pub fn vhost(&self, host: &[u8]) -> Option<&Arc<Vhost>> {
        let index = self
            .exact
            .get(host)
            .copied()
            .or_else(|| self.by_suffix(host))
            .or(self.any)?;
        self.vhosts.get(index)
    }

    fn by_suffix(&self, host: &[u8]) -> Option<usize> {
        if self.suffix.is_empty() {
            return None;
        }
        memchr::memchr_iter(b'.', host)
            .filter(|&at| at > 0)
            .find_map(|at| self.suffix.get(host.get(at..)?).copied())
    }

    #[must_use]
    pub fn vhosts(&self) -> &[Arc<Vhost>] {
        &self.vhosts
    }

    #[must_use]
    pub fn upstreams(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }
}

fn upstream(settings: &config::Upstream, workers: usize, previous: Option<&Router>) -> Arc<Upstream> {
    previous
        .into_iter()
        .flat_map(|router| &router.upstreams)
        .find(|known| known.settings() == settings)
        .cloned()
        .unwrap_or_else(|| Arc::new(Upstream::new(settings, workers)))
}

impl fmt::Debug for Vhost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vhost")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Vhost {
    fn compile(vhost: &config::Vhost, upstreams: &[Arc<Upstream>], traffic: &Traffic) -> Result<Self, CompileError> {
        let upstream = upstreams
            .get(vhost.upstream)
            .cloned()
            .ok_or_else(|| CompileError::Upstream {
                vhost: vhost.name.clone(),
            })?;
        let names: Vec<_> = vhost.rules.iter().map(|rule| rule.name.clone()).collect();
        let patterns: Vec<_> = vhost.rules.iter().map(|rule| rule.matches.path.as_ref()).collect();
        let paths = PathIndex::compile(&patterns).map_err(|(at, source)| CompileError::Pattern {
            vhost: vhost.name.clone(),
            rule: names.get(at).cloned().unwrap_or_default(),
            source,
        })?;
        let mut rules = Vec::with_capacity(vhost.rules.len() + 1);
        for (index, rule) in vhost.rules.iter().enumerate() {
            rules.push(Arc::new(Rule::compile(index, rule, &vhost.name)?));
        }
        rules.push(Arc::new(Rule::compile(rules.len(), &implicit_rule(), &vhost.name)?));
        Ok(Self {
            name: vhost.name.clone(),
            counters: traffic.vhost(&vhost.name, &names),
            observers: observe::by_worker(traffic, &upstream),
            upstream,
            purge: vhost.purge.clone(),
            upgrade: vhost.upgrade.clone(),
            trusted_proxies: vhost.trusted_proxies.clone(),
            rules,
            paths,
        })
    }

    /// Who counts what `worker` does with the upstream.
    #[must_use]
    pub fn observer(&self, worker: WorkerId) -> Arc<dyn Observe> {
        self.observers
            .get(worker.index())
            .cloned()
            .unwrap_or_else(|| Arc::new(()))
    }

    /// The first rule that matches. The implicit last one always does.
    pub fn rule(&self, method: &http::Method, target: &Target, fields: &impl Fields) -> Option<&Arc<Rule>> {
        self.paths
            .candidates(target.path())
            .filter_map(|index| self.rules.get(index))
            .find(|rule| rule.matches(method, target, fields))
            .or_else(|| self.rules.last())
    }
}

/// Where no rule matches, RFC 9111 alone decides, with the default targeted field (RFC 9213).
fn implicit_rule() -> config::Rule {
    config::Rule {
        policy: Policy {
            targeted: vec!["cdn-cache-control".to_owned()],
            ..Policy::default()
        },
        ..config::Rule::default()
    }
}

impl Rule {
    fn compile(index: usize, rule: &config::Rule, vhost: &str) -> Result<Self, CompileError> {
        let query = QueryRules::compile(&rule.key).map_err(|source| CompileError::Pattern {
            vhost: vhost.to_owned(),
            rule: rule.name.clone(),
            source: Box::new(source),
        })?;
        Ok(Self {
            index,
            name: rule.name.clone(),
            policy: rule.policy.clone(),
            query,
            bypass: Conditions::compile(&rule.bypass),
            no_store: Conditions::compile(&rule.no_store),
            min_uses: rule.min_uses,
            honour_request_no_cache: rule.honour_request_no_cache,
            methods: rule.matches.methods.clone(),
            condition: rule.matches.condition.as_ref().map(Conditions::compile),
        })
    }

    /// Takes out of the query what the rule leaves out of the key. Where something was done, the query as it was is returned.
    pub fn apply_query(&self, target: &mut Target) -> Option<Vec<u8>> {
        if !self.query.is_active() {
            return None;
        }
        let query = target.query()?;
        let (left, raw) = (self.query.apply(query), query.to_vec());
        target.set_query(left.as_deref());
        Some(raw)
    }

    fn matches(&self, method: &http::Method, target: &Target, fields: &impl Fields) -> bool {
        (self.methods.is_empty() || self.methods.contains(method))
            && self
                .condition
                .as_ref()
                .is_none_or(|condition| condition.all_hold(target.query(), fields))
    }
}

#[cfg(test)]
mod tests;
