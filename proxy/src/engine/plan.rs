//! The first half of a request, without waiting: normalize, route, key, lookup. Its end is what is to be done.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, header};
use ipnet::IpNet;
use larder_semantics::cache_control::RequestDirectives;
use larder_semantics::{Fields, Vary, accept_encoding};
use larder_storage::{Lookup, Object, Store, UseCounts, VaryRule};

use super::head::StoredHead;
use super::respond::CACHE_NAME;
use crate::clock::Moment;
use crate::http1::Version;
use crate::key;
use crate::origin::forward::ForwardContext;
use crate::origin::sent::Sent;
use crate::outcome::{CacheStatus, Forward, NotStored};
use crate::routing::{Router, Rule, Vhost};
use crate::target::Target;

pub(crate) type CacheStore = Store<StoredHead, Selecting>;
pub(crate) type CachedObject = Object<StoredHead>;
pub(crate) type Leader = larder_storage::Leader<StoredHead, Selecting>;
pub(crate) type Reader = larder_storage::Reader<StoredHead, Selecting>;

/// Of their form on disk, and of the variant keys that are made by them.
const SELECTING_VERSION: u8 = 1;

/// The selecting fields of a key's variants, as the store holds them.
#[derive(Debug, PartialEq)]
pub(crate) struct Selecting(pub(crate) Vary);

impl VaryRule for Selecting {
    fn weight(&self) -> usize {
        self.0.as_str().len() + size_of::<Self>()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(SELECTING_VERSION);
        out.extend_from_slice(self.0.as_str().as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&SELECTING_VERSION, text) = bytes.split_first()? else {
            return None;
        };
        let mut fields = HeaderMap::with_capacity(1);
        fields.insert(header::VARY, HeaderValue::from_bytes(text).ok()?);
        let vary = Vary::parse(&fields).ok()?;
        // Anything but the canonical form was not written here.
        (!vary.is_empty() && vary.as_str().as_bytes() == text).then_some(Self(vary))
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
    pub(crate) version: Version,
    pub(crate) client: IpAddr,
}

impl<F: Fields> View<'_, F> {
    /// Appends the variant key of the request: what it says in the fields that select, as the origin gets them.
    fn variant_key(&self, vhost: &Vhost, vary: &Selecting, out: &mut Vec<u8>) {
        let authority = std::str::from_utf8(self.authority).unwrap_or_default();
        let context = context(vhost, self.scheme, authority, self.version, self.client);
        vary.0.variant_key(&Sent::new(self.fields, context), out);
    }
}

/// What the fields of a request to a vhost's origin depend on.
pub(super) fn context<'a>(
    vhost: &'a Vhost,
    scheme: &'static str,
    authority: &'a str,
    version: Version,
    client: IpAddr,
) -> ForwardContext<'a> {
    ForwardContext {
        client_ip: client,
        scheme,
        // HTTP/1.0 may name no host; the origin is asked by its own name then.
        host: if authority.is_empty() {
            vhost.upstream.address()
        } else {
            authority
        },
        version: version.into(),
        trusted: is_within(&vhost.trusted_proxies, client),
        received_by: CACHE_NAME,
    }
}

/// The vhost and rule that answer.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) vhost: Arc<Vhost>,
    pub(crate) rule: Arc<Rule>,
}

#[derive(Debug)]
pub(crate) enum Plan {
    /// Serve this, with so many seconds of freshness left.
    Hit(Arc<CachedObject>, i64),
    /// Only the disk can tell, and it would have to be waited for.
    Load(Wanted),
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

/// What is to become of a request that nothing is found for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    only_if_cached: bool,
    fill: FillMode,
    min_uses: u32,
}

/// Why nothing that is stored answers a request.
#[derive(Debug)]
pub(crate) struct Miss {
    why: Forward,
    cache: CacheStatus,
    /// What was found and cannot be used.
    found: Option<Arc<CachedObject>>,
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
    uses: &UseCounts,
    now: Moment,
) -> Plan {
    if let Some(plan) = by_method(view, route) {
        return plan;
    }
    match lookup(view, route, raw_query, key, store, now) {
        Some(Ok((object, ttl))) => Plan::Hit(object, ttl),
        Some(Err(miss)) => wanted(view, route, raw_query)
            .forward(miss, key, uses)
            .map_or(Plan::OnlyIfCached, Plan::Forward),
        None => Plan::Load(wanted(view, route, raw_query)),
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

/// What is stored for the request and may be served, or why nothing is; `None` where the disk would have to be waited for.
fn lookup<F: Fields>(
    view: &View<'_, F>,
    route: &Route,
    raw_query: Option<&[u8]>,
    key: &[u8],
    store: &CacheStore,
    now: Moment,
) -> Option<Result<(Arc<CachedObject>, i64), Miss>> {
    if route.rule.bypass.holds(raw_query, view.fields) {
        return Some(Err(Miss::new(Forward::Rule, CacheStatus::Bypass, None)));
    }
    if route.rule.honour_request_no_cache && RequestDirectives::parse(view.fields).no_cache {
        return Some(Err(Miss::new(Forward::Request, CacheStatus::Bypass, None)));
    }
    let variant = |vary: &Selecting, out: &mut Vec<u8>| view.variant_key(&route.vhost, vary, out);
    let found = match store.get(key, variant) {
        Lookup::Found(object) => Lookup::Found(object),
        in_memory => match (store.load_now(key, variant)?, in_memory) {
            // The disk may have lost what the memory still knows of.
            (Lookup::Nothing, Lookup::NoVariant) => Lookup::NoVariant,
            (on_disk, _) => on_disk,
        },
    };
    Some(choose(found, view.fields, now))
}

/// Whether what was found in either tier may be served to this request, and for how long.
pub(super) fn choose<F: Fields>(
    found: Lookup<StoredHead>,
    fields: &F,
    now: Moment,
) -> Result<(Arc<CachedObject>, i64), Miss> {
    let object = match found {
        Lookup::Found(object) => object,
        Lookup::NoVariant => return Err(Miss::new(Forward::VaryMiss, CacheStatus::Miss, None)),
        Lookup::Nothing => return Err(Miss::new(Forward::UriMiss, CacheStatus::Miss, None)),
    };
    let ttl = object.head.ttl(now);
    if ttl <= 0 {
        Err(Miss::new(Forward::Stale, CacheStatus::Expired, Some(object)))
    } else if !object.head.answers_authorized && is_authorized(fields) {
        Err(Miss::new(Forward::Authorization, CacheStatus::Bypass, Some(object)))
    } else if !is_acceptable(&object, fields) {
        Err(Miss::new(Forward::VaryMiss, CacheStatus::Miss, Some(object)))
    } else {
        Ok((object, ttl))
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

/// What is to become of the request where nothing is found for it.
pub(crate) fn wanted<F: Fields>(view: &View<'_, F>, route: &Route, raw_query: Option<&[u8]>) -> Wanted {
    Wanted {
        only_if_cached: RequestDirectives::parse(view.fields).only_if_cached,
        fill: fill_mode(view, route, raw_query),
        min_uses: route.rule.min_uses,
    }
}

fn fill_mode<F: Fields>(view: &View<'_, F>, route: &Route, raw_query: Option<&[u8]>) -> FillMode {
    if *view.method == Method::HEAD || view.fields.lines("range").next().is_some() {
        // An answer to HEAD has no body to store; one to Range may be a part only.
        FillMode::Pass(NotStored::Request)
    } else if route.rule.no_store.holds(raw_query, view.fields) {
        FillMode::Pass(NotStored::Rule)
    } else if is_authorized(view.fields) {
        // Nobody may wait for an answer that could be meant for this client alone.
        FillMode::Alone
    } else {
        FillMode::Shared
    }
}

impl Wanted {
    /// How the request goes to the origin; `None` where its client wants a stored answer or none. Every request that goes is a
    /// use of its key, and too few of them store nothing; what has been stored already is refreshed at once.
    pub(crate) fn forward(self, miss: Miss, key: &[u8], uses: &UseCounts) -> Option<ForwardPlan> {
        if self.only_if_cached {
            return None;
        }
        let Miss { why, cache, found } = miss;
        let min_uses = self.min_uses.min(UseCounts::MAX);
        let is_scarce = min_uses > 1 && uses.count(key) < min_uses && found.is_none();
        let (cache, fill) = match (self.fill, cache) {
            (FillMode::Pass(reason), _) => (cache, FillMode::Pass(reason)),
            (_, CacheStatus::Miss) if is_scarce => (CacheStatus::Scarce, FillMode::Pass(NotStored::MinUses)),
            _ if is_scarce => (cache, FillMode::Pass(NotStored::MinUses)),
            (_, CacheStatus::Bypass) => (cache, FillMode::Alone),
            (fill, _) => (cache, fill),
        };
        Some(ForwardPlan {
            why,
            cache,
            fill,
            found,
        })
    }
}

impl Miss {
    pub(super) const fn new(why: Forward, cache: CacheStatus, found: Option<Arc<CachedObject>>) -> Self {
        Self { why, cache, found }
    }
}
