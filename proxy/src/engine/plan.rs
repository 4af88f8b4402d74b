//! The first half of a request, without waiting: normalize, route, key, lookup. Its end is what is to be done.

use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use ipnet::IpNet;
use larder_semantics::cache_control::RequestDirectives;
use larder_semantics::{Fields, Vary, accept_encoding};
use larder_storage::{Lookup, Object, Store, VaryRule};

use super::head::StoredHead;
use crate::clock::Moment;
use crate::key;
use crate::outcome::{CacheStatus, Forward, NotStored};
use crate::routing::{Router, Rule, Vhost};
use crate::target::Target;

pub(crate) type CacheStore = Store<StoredHead, Selecting>;
pub(crate) type CachedObject = Object<StoredHead>;
pub(crate) type Leader = larder_storage::Leader<StoredHead, Selecting>;
pub(crate) type Reader = larder_storage::Reader<StoredHead, Selecting>;

/// The selecting fields of a key's variants, as the store holds them.
#[derive(Debug, PartialEq)]
pub(crate) struct Selecting(pub(crate) Vary);

impl VaryRule for Selecting {
    fn weight(&self) -> usize {
        self.0.as_str().len() + size_of::<Self>()
    }
}

/// A request as this half sees it, from either version of HTTP. `target` and `authority` are normalised.
#[derive(Debug)]
pub(crate) struct View<'a, F> {
    pub(crate) method: &'a Method,
    pub(crate) scheme: &'static str,
    /// Host in lower case, with the port where it is not the scheme's default.
    pub(crate) authority: &'a [u8],
    /// The host alone.
    pub(crate) host: &'a [u8],
    pub(crate) fields: &'a F,
    pub(crate) has_body: bool,
    pub(crate) upgrade: Option<&'a [u8]>,
    pub(crate) client: IpAddr,
}

/// The vhost and rule that answer.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) vhost: Arc<Vhost>,
    pub(crate) rule: Arc<Rule>,
}

#[derive(Debug)]
pub(crate) enum Plan {
    /// Serve this from memory.
    Hit(Arc<CachedObject>, i64),
    Forward(ForwardPlan),
    /// `only-if-cached`, and it isn't (RFC 9111 section 5.2.1.7).
    OnlyIfCached,
    /// TRACE and CONNECT.
    MethodNotAllowed,
    /// The PURGE method, from an address that may.
    Purge,
    /// The PURGE method, from elsewhere.
    PurgeForbidden,
}

#[derive(Debug, Clone)]
pub(crate) struct ForwardPlan {
    pub(crate) why: Forward,
    pub(crate) cache: CacheStatus,
    pub(crate) fill: FillMode,
    /// What was found and could not be used.
    pub(crate) found: Option<Arc<CachedObject>>,
}

/// What the answer may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillMode {
    /// Passed through.
    Pass(NotStored),
    /// Stored if it may be; nobody joins.
    Alone,
    /// Stored if it may be; others wait for it.
    Shared,
}

impl ForwardPlan {
    /// The request's Upgrade is passed on.
    pub(crate) fn is_upgrade(&self) -> bool {
        self.why == Forward::Upgrade
    }
}

/// Chooses the vhost and its rule, applies the rule's query settings to `target` and writes the key. Where these settings
/// took something away, the query as it was is returned beside the route.
pub(crate) fn route<F: Fields>(
    view: &View<'_, F>,
    router: &Router,
    target: &mut Target,
    key_out: &mut Vec<u8>,
) -> Option<(Route, Option<Vec<u8>>)> {
    let vhost = router.vhost(view.host)?;
    let rule = vhost.rule(view.method, target, view.fields)?;
    let raw_query = rule.apply_query(target);
    key::write(view.scheme, view.authority, target.as_bytes(), &vhost.name, key_out);
    Some((
        Route {
            vhost: Arc::clone(vhost),
            rule: Arc::clone(rule),
        },
        raw_query,
    ))
}

/// Looks the request up and decides what is to be done. `raw_query` is the query before the rule's settings removed anything,
/// so that `bypass = { query = ... }` works on ignored parameters too.
pub(crate) fn plan<F: Fields>(
    view: &View<'_, F>,
    route: &Route,
    raw_query: Option<&[u8]>,
    key: &[u8],
    store: &CacheStore,
    now: Moment,
) -> Plan {
    if let Some(plan) = by_method(view, route) {
        return plan;
    }
    let directives = RequestDirectives::parse(view.fields);
    let plan = lookup(view, route, raw_query, key, store, now, &directives);
    match plan {
        Plan::Forward(_) if directives.only_if_cached => Plan::OnlyIfCached,
        Plan::Forward(forward) => Plan::Forward(ForwardPlan {
            fill: fill_mode(view, route, raw_query, forward.cache),
            ..forward
        }),
        other => other,
    }
}

fn by_method<F>(view: &View<'_, F>, route: &Route) -> Option<Plan> {
    if let Some(purge) = &route.vhost.purge
        && purge.method == *view.method
    {
        return Some(if is_within(&purge.allow, view.client) {
            Plan::Purge
        } else {
            Plan::PurgeForbidden
        });
    }
    let pass = |why| {
        let fill = FillMode::Pass(NotStored::Request);
        Plan::Forward(ForwardPlan {
            why,
            cache: CacheStatus::Bypass,
            fill,
            found: None,
        })
    };
    match *view.method {
        Method::TRACE | Method::CONNECT => Some(Plan::MethodNotAllowed),
        Method::GET | Method::HEAD if view.has_body => Some(pass(Forward::Body)),
        Method::GET if may_upgrade(view, &route.vhost) => Some(pass(Forward::Upgrade)),
        Method::GET | Method::HEAD => None,
        _ => Some(pass(Forward::Method)),
    }
}

/// The vhost lets clients upgrade to what this one asks for.
fn may_upgrade<F>(view: &View<'_, F>, vhost: &Vhost) -> bool {
    view.upgrade.is_some_and(|asked| {
        vhost
            .upgrade
            .iter()
            .any(|protocol| asked.eq_ignore_ascii_case(protocol.as_bytes()))
    })
}

pub(crate) fn is_within(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

fn lookup<F: Fields>(
    view: &View<'_, F>,
    route: &Route,
    raw_query: Option<&[u8]>,
    key: &[u8],
    store: &CacheStore,
    now: Moment,
    directives: &RequestDirectives,
) -> Plan {
    let forward = |why, cache, found| {
        Plan::Forward(ForwardPlan {
            why,
            cache,
            fill: FillMode::Shared,
            found,
        })
    };
    if route.rule.bypass.holds(raw_query, view.fields) {
        return forward(Forward::Rule, CacheStatus::Bypass, None);
    }
    if directives.no_cache && route.rule.honour_request_no_cache {
        return forward(Forward::Request, CacheStatus::Bypass, None);
    }
    match store.get(key, |vary, out| vary.0.variant_key(view.fields, out)) {
        Lookup::Found(object) => {
            let ttl = object.head.ttl(now);
            if ttl <= 0 {
                forward(Forward::Stale, CacheStatus::Expired, Some(object))
            } else if !object.head.answers_authorized && is_authorized(view.fields) {
                forward(Forward::Authorization, CacheStatus::Bypass, Some(object))
            } else if !is_acceptable(&object, view.fields) {
                forward(Forward::VaryMiss, CacheStatus::Miss, Some(object))
            } else {
                Plan::Hit(object, ttl)
            }
        }
        Lookup::NoVariant => forward(Forward::VaryMiss, CacheStatus::Miss, None),
        Lookup::Nothing => forward(Forward::UriMiss, CacheStatus::Miss, None),
    }
}

/// A content-coding that the client does not take is never served, whatever the origin says of Vary (RFC 9110 section
/// 12.5.3).
fn is_acceptable<F: Fields>(object: &CachedObject, fields: &F) -> bool {
    object
        .head
        .content_encoding()
        .is_none_or(|coding| accept_encoding::accepts(fields, coding))
}

fn is_authorized<F: Fields>(fields: &F) -> bool {
    fields.lines("authorization").next().is_some()
}

fn fill_mode<F: Fields>(view: &View<'_, F>, route: &Route, raw_query: Option<&[u8]>, cache: CacheStatus) -> FillMode {
    if *view.method == Method::HEAD || view.fields.lines("range").next().is_some() {
        // An answer to HEAD has no body to store; one to Range may be a part only.
        FillMode::Pass(NotStored::Request)
    } else if route.rule.no_store.holds(raw_query, view.fields) {
        FillMode::Pass(NotStored::Rule)
    } else if cache == CacheStatus::Bypass || is_authorized(view.fields) {
        // Nobody may wait for an answer that could be meant for this client alone.
        FillMode::Alone
    } else {
        FillMode::Shared
    }
}
