//! Random choices from a seed: the same case number gives the same manifest on every machine.

use serde_json::{Map, Value, json};

/// A source of choices (splitmix64).
#[derive(Debug, Clone)]
pub struct Draw {
    state: u64,
    /// Percent of the optional fields that are there.
    density: u64,
}

impl Draw {
    /// The choices of one case. Some cases are sparse, some are full.
    pub fn new(seed: u64) -> Self {
        let mut draw = Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed, density: 50 };
        draw.vary();
        draw
    }

    /// Draws anew how full the next manifest is.
    pub fn vary(&mut self) {
        self.density = self.pick(&[8, 20, 35, 50, 75, 95]);
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// True if an optional field is there.
    pub fn there(&mut self) -> bool {
        self.chance(self.density)
    }

    /// A coin.
    pub fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// A number in the range, its ends more often than the rest.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        match self.below(8) {
            0 => low,
            1 => high,
            _ => low + self.below(high - low + 1),
        }
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64) as usize;
        all[at].clone()
    }

    /// One of these, as a JSON value.
    pub fn word(&mut self, all: &[&str]) -> Value {
        json!(self.pick(all))
    }

    /// Some of these, each at most once, in any order.
    pub fn some<T: Clone>(&mut self, all: &[T], most: usize) -> Vec<T> {
        let mut rest = all.to_vec();
        let count = self.below(most.min(all.len()) as u64 + 1);
        (0..count).map(|_| rest.swap_remove(self.below(rest.len() as u64) as usize)).collect()
    }

    /// A boolean value.
    pub fn flag(&mut self) -> Value {
        json!(self.coin())
    }

    /// A size of so many MiB in any notation.
    pub fn size(&mut self, mib: u64) -> Value {
        let mut ways = vec![format!("{mib}MiB"), format!("{mib}M"), format!("{}KiB", mib << 10)];
        if mib.is_multiple_of(256) && mib > 0 {
            ways.push(format!("{}GiB", mib as f64 / 1024.0));
            ways.push(format!("{}G", mib as f64 / 1024.0));
        }
        if mib.is_multiple_of(1 << 18) && mib > 0 {
            ways.push(format!("{}TiB", mib as f64 / f64::from(1 << 20)));
        }
        json!(self.pick(&ways))
    }
}

/// A mapping under construction.
#[derive(Debug, Default)]
pub struct Fields(pub Map<String, Value>);

impl Fields {
    /// Always there.
    pub fn must(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// There or not, by the draw's density.
    pub fn may(&mut self, draw: &mut Draw, name: &str, value: impl FnOnce(&mut Draw) -> Value) -> &mut Self {
        if draw.there() {
            let value = value(draw);
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    /// The finished value.
    pub fn done(self) -> Value {
        Value::Object(self.0)
    }
}
