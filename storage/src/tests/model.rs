//! Random operations against a small reference. Where nothing is evicted both must agree in everything; where the tier
//! is too small, what it finds must still be what the reference has.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["x", "y", "z"];

#[derive(Debug, Clone, Copy)]
struct Shape {
    key: u8,
    /// `None`: nothing is varied on.
    rule: Option<u8>,
    request: (usize, usize),
}

#[derive(Debug, Clone)]
enum Op {
    Get(Shape),
    Store(Shape, usize),
    Open(Shape, usize),
    Finish(usize),
    Lose(usize),
    Replace(Shape),
    Remove(Shape),
    Purge(u8),
    Clear,
}

fn shape() -> impl Strategy<Value = Shape> {
    let rule = prop_oneof![2 => Just(None), 3 => (0..3u8).prop_map(Some)];
    (0..4u8, rule, (0..3usize, 0..3usize)).prop_map(|(key, rule, request)| Shape { key, rule, request })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => shape().prop_map(Op::Get),
        8 => (shape(), 0..3000usize).prop_map(|(shape, len)| Op::Store(shape, len)),
        4 => (shape(), 0..3000usize).prop_map(|(shape, len)| Op::Open(shape, len)),
        4 => any::<usize>().prop_map(Op::Finish),
        1 => any::<usize>().prop_map(Op::Lose),
        3 => shape().prop_map(Op::Replace),
        2 => shape().prop_map(Op::Remove),
        2 => (0..4u8).prop_map(Op::Purge),
        1 => Just(Op::Clear),
    ]
}

impl Shape {
    fn fields(self) -> [&'static str; 2] {
        [NAMES[self.request.0], NAMES[self.request.1]]
    }

    fn rule(self) -> Option<Fields> {
        self.rule
            .map(|rule| Fields([vec![0], vec![1], vec![0, 1]][usize::from(rule)].clone()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    head: u64,
    begun: u64,
}

#[derive(Debug)]
enum Slot {
    Plain(Content),
    /// Least recently stored first.
    Varied(Fields, u64, Vec<(Vec<u8>, Content)>),
}

struct Pending {
    filling: Filling<Number, Fields>,
    _reader: TestReader,
    shape: Shape,
    content: Content,
    doomed: bool,
}

struct Pair {
    store: TestStore,
    exact: bool,
    cap: usize,
    model: BTreeMap<u8, Slot>,
    pending: Vec<Pending>,
    serial: u64,
}

fn body(head: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (head as usize * 31 + i).to_le_bytes()[0]).collect()
}

fn name(rule: &Fields, shape: Shape) -> Vec<u8> {
    let mut name = Vec::new();
    Request(&shape.fields()).append(rule, &mut name);
    name
}

impl Pair {
    fn new(config: Config, exact: bool) -> Self {
        Self {
            store: Store::new(config),
            exact,
            cap: config.variants,
            model: BTreeMap::new(),
            pending: Vec::new(),
            serial: 0,
        }
    }

    fn expected(&self, shape: Shape) -> Option<Content> {
        match self.model.get(&shape.key)? {
            Slot::Plain(content) => Some(*content),
            Slot::Varied(rule, _, variants) => {
                let name = name(rule, shape);
                variants
                    .iter()
                    .find(|(own, _)| *own == name)
                    .map(|(_, content)| *content)
            }
        }
    }

    fn get(&self, shape: Shape) -> Option<Arc<Object<Number>>> {
        let fields = shape.fields();
        let lookup = self.store.get(&[shape.key], Request(&fields).variant());
        let expected = self.expected(shape).map(|content| content.head);
        match &lookup {
            Lookup::Found(object) => {
                assert_eq!(Some(object.head.0 >> 16), expected);
                let len = usize::try_from(object.body.len()).unwrap();
                assert_eq!(object.body.chunks().unwrap().concat(), body(object.head.0 >> 16, len));
                // The length is part of the head, so that a short body would show.
                assert_eq!(object.head.0 & 0xffff, len as u64);
            }
            Lookup::NoVariant => {
                assert!(
                    !self.exact || matches!(self.model.get(&shape.key), Some(Slot::Varied(..))) && expected.is_none()
                );
            }
            Lookup::Nothing => assert!(!self.exact || !self.model.contains_key(&shape.key)),
        }
        match lookup {
            Lookup::Found(object) => Some(object),
            _ => None,
        }
    }

    fn open(&mut self, shape: Shape, len: usize) {
        self.serial += 1;
        let (head, begun) = (self.serial, self.serial);
        let fields = shape.fields();
        let begin = self
            .store
            .begin(&[shape.key], Join::Never, None, Request(&fields).variant());
        let Begin::Lead(leader, reader) = begin else {
            panic!("it joins nobody");
        };
        let offer = Offer {
            expected_len: None,
            keep: Keep::Store,
            vary: shape.rule().and_then(|rule| Request(&fields).vary(&rule)),
        };
        let mut filling = leader.head(Arc::new(Number(head << 16 | len as u64)), offer);
        now(filling.push(Bytes::from(body(head, len)))).unwrap().unwrap();
        self.pending.push(Pending {
            filling,
            _reader: reader,
            shape,
            content: Content { head, begun },
            doomed: false,
        });
    }

    fn finish(&mut self, pending: Pending) {
        let Pending {
            filling,
            shape,
            content,
            doomed,
            ..
        } = pending;
        let newest = match self.model.get(&shape.key) {
            None => 0,
            Some(Slot::Plain(old)) => old.begun,
            Some(Slot::Varied(rule, begun, variants)) if Some(rule) == shape.rule().as_ref() => {
                let _ = begun;
                let own = name(rule, shape);
                variants
                    .iter()
                    .find(|(name, _)| *name == own)
                    .map_or(0, |(_, old)| old.begun)
            }
            Some(Slot::Varied(_, begun, _)) => *begun,
        };
        let result = finish(filling).map(|_| ());
        let expected = if doomed {
            Err(NotKept::Doomed)
        } else if newest > content.begun {
            Err(NotKept::Replaced)
        } else {
            Ok(())
        };
        assert!(!doomed || result == Err(NotKept::Doomed));
        assert!(!self.exact || result == expected, "{result:?} {expected:?}");
        if result.is_ok() {
            self.apply(shape, content);
        }
    }

    fn apply(&mut self, shape: Shape, content: Content) {
        let Some(rule) = shape.rule() else {
            self.model.insert(shape.key, Slot::Plain(content));
            return;
        };
        let own = name(&rule, shape);
        if let Some(Slot::Varied(current, _, variants)) = self.model.get_mut(&shape.key)
            && *current == rule
        {
            variants.retain(|(name, _)| *name != own);
            variants.push((own, content));
            if variants.len() > self.cap {
                variants.remove(0);
            }
        } else {
            self.model
                .insert(shape.key, Slot::Varied(rule, content.begun, vec![(own, content)]));
        }
    }

    fn replace(&mut self, shape: Shape) {
        let Some(object) = self.get(shape) else {
            return;
        };
        let content = self.expected(shape).unwrap();
        self.serial += 1;
        let begun = self.serial;
        // The store numbers this like a fill.
        let result = self
            .store
            .replace(&[shape.key], &object, Arc::new(Number(object.head.0)));
        assert!(!self.exact || result.is_ok());
        if result.is_ok() {
            let rule = match &self.model[&shape.key] {
                Slot::Plain(_) => None,
                Slot::Varied(rule, ..) => (0..3u8).find(|&i| {
                    let shape = Shape { rule: Some(i), ..shape };
                    shape.rule().as_ref() == Some(rule)
                }),
            };
            self.apply(Shape { rule, ..shape }, Content { begun, ..content });
        }
    }

    fn remove(&mut self, shape: Shape) {
        let Some(object) = self.get(shape) else {
            return;
        };
        assert!(self.store.remove_if_same(&[shape.key], &object));
        match self.model.get_mut(&shape.key).unwrap() {
            Slot::Plain(_) => {
                self.model.remove(&shape.key);
            }
            Slot::Varied(rule, _, variants) => {
                let own = name(rule, shape);
                variants.retain(|(name, _)| *name != own);
            }
        }
    }

    fn purge(&mut self, key: u8) {
        let had = match self.model.remove(&key) {
            None => 0,
            Some(Slot::Plain(_)) => 1,
            Some(Slot::Varied(_, _, variants)) => variants.len() as u64,
        };
        let purged = self.store.purge(&[key]);
        assert!(purged.variants <= had && (!self.exact || purged.variants == had));
        for pending in self.pending.iter_mut().filter(|pending| pending.shape.key == key) {
            pending.doomed = true;
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Get(shape) => {
                self.get(shape);
            }
            Op::Store(shape, len) => {
                self.open(shape, len);
                let pending = self.pending.pop().unwrap();
                self.finish(pending);
            }
            Op::Open(shape, len) => self.open(shape, len),
            Op::Finish(index) if !self.pending.is_empty() => {
                let pending = self.pending.remove(index % self.pending.len());
                self.finish(pending);
            }
            Op::Lose(index) if !self.pending.is_empty() => {
                self.pending.remove(index % self.pending.len());
            }
            Op::Finish(_) | Op::Lose(_) => {}
            Op::Replace(shape) => self.replace(shape),
            Op::Remove(shape) => self.remove(shape),
            Op::Purge(key) => self.purge(key),
            Op::Clear => {
                (0..4).for_each(|key| {
                    self.model.remove(&key);
                });
                self.store.clear();
                self.pending.iter_mut().for_each(|pending| pending.doomed = true);
                assert_eq!(self.store.usage().used, 0);
            }
        }
        self.check_accounts();
    }

    fn check_accounts(&self) {
        let usage = self.store.usage();
        assert!(usage.used <= usage.max, "{usage:?}");
        assert_eq!(usage.fills_active, self.pending.len() as u64);
        if self.exact {
            let (mut objects, mut variants) = (0, 0);
            for slot in self.model.values() {
                match slot {
                    Slot::Plain(_) => objects += 1,
                    Slot::Varied(_, _, own) => variants += own.len() as u64,
                }
            }
            assert_eq!((usage.objects, usage.variants), (objects + variants, variants));
            assert_eq!(usage.evicted + usage.refused, 0);
        }
    }

    fn end(mut self) {
        self.pending.clear();
        self.store.clear();
        let usage = self.store.usage();
        let nothing = (
            usage.used,
            usage.objects,
            usage.variants,
            usage.fills_active,
            usage.fill_bytes,
        );
        assert_eq!(nothing, (0, 0, 0, 0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_roomy_store_agrees_with_the_reference(ops in vec(op(), 0..120)) {
        let config = Config { max_size: 64 * MIB, max_object: MIB, variants: 3 };
        let mut pair = Pair::new(config, true);
        for op in ops {
            pair.step(op);
        }
        pair.end();
    }

    #[test]
    fn a_crowded_store_never_finds_anything_else(ops in vec(op(), 0..120), max_size in 6_000..40_000u64) {
        let config = Config { max_size, max_object: 4000, variants: 100 };
        let mut pair = Pair::new(config, false);
        for op in ops {
            pair.step(op);
        }
        pair.end();
    }
}
