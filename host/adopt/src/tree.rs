//! JSON that keeps the order of its keys, which is the order of the documentation.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The same with sorted keys, as kinds get it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Flag(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Map(entries) => {
                Value::Object(entries.iter().map(|(k, v)| (k.clone(), v.to_value())).collect::<Map<_, _>>())
            }
        }
    }

    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            Self::List(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::List(items) => items.is_empty(),
            Self::Map(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// The value at an RFC 6901 pointer.
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        steps(pointer).iter().try_fold(self, |tree, step| tree.get(step))
    }

    /// Takes out what stands at a pointer, and what is empty without it. A pointer that leads further than the tree
    /// takes out the nearest part that exists; the whole tree is never taken. The result is what was taken, with
    /// its own pointer.
    pub fn take(&mut self, pointer: &str) -> Option<(String, Self)> {
        let steps = steps(pointer);
        let mut prefixes = (1..=steps.len()).rev().filter_map(|n| steps.get(..n));
        let path = prefixes.find(|path| self.at(&join(path)).is_some())?;
        let (last, parents) = path.split_last()?;
        let mut holder = &mut *self;
        for step in parents {
            holder = match holder {
                Self::Map(entries) => entries.iter_mut().find(|(k, _)| k == step).map(|(_, v)| v)?,
                Self::List(items) => items.get_mut(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        let taken = match holder {
            Self::Map(entries) => {
                let at = entries.iter().position(|(k, _)| k == last)?;
                entries.remove(at).1
            }
            Self::List(items) => {
                let at = last.parse::<usize>().ok().filter(|at| *at < items.len())?;
                items.remove(at)
            }
            _ => return None,
        };
        let parent = join(parents);
        if !parents.is_empty() && self.at(&parent).is_some_and(Self::is_empty) {
            self.take(&parent);
        }
        Some((join(path), taken))
    }

    /// Every leaf with its pointer.
    pub fn leaves(&self) -> Vec<(String, &Self)> {
        fn walk<'t>(tree: &'t Tree, at: &str, out: &mut Vec<(String, &'t Tree)>) {
            match tree {
                Tree::Map(entries) => {
                    entries.iter().for_each(|(k, v)| walk(v, &proxops_repo::yaml::child(at, k), out));
                }
                Tree::List(items) => {
                    items.iter().enumerate().for_each(|(i, v)| walk(v, &format!("{at}/{i}"), out));
                }
                leaf => out.push((at.to_owned(), leaf)),
            }
        }
        let mut out = Vec::new();
        walk(self, "", &mut out);
        out
    }
}

/// The unescaped parts of an RFC 6901 pointer.
pub(crate) fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

fn join(steps: &[String]) -> String {
    let mut out = String::new();
    steps.iter().for_each(|step| proxops_repo::yaml::push_key(&mut out, step));
    out
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Tree;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree::Null)
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Tree, E> {
                Ok(Tree::Flag(flag))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
                Ok(Tree::Number(number.into()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
                Ok(Tree::Number(number.into()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
                Ok(Number::from_f64(number).map_or(Tree::Null, Tree::Number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
                Ok(Tree::Text(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Tree::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Tree::Map(entries))
            }
        }
        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"{"node":"pve01","cpu":{"type":"host"},"disks":[{"b":1},{"a":2}],"a/b":true}"#;

    #[test]
    fn keys_keep_their_order_and_sort_only_for_kinds() {
        let tree = Tree::parse(SPEC).unwrap();
        let Tree::Map(entries) = &tree else { panic!("no map") };
        let keys: Vec<&str> = entries.iter().map(|(k, _)| k.as_str()).collect();
        assert_eq!(keys, ["node", "cpu", "disks", "a/b"]);
        assert_eq!(tree.to_value(), serde_json::from_str::<Value>(SPEC).unwrap());
    }

    #[test]
    fn what_is_taken_leaves_no_empty_parents() {
        let mut tree = Tree::parse(SPEC).unwrap();
        assert_eq!(tree.take("/cpu/type"), Some(("/cpu/type".into(), Tree::Text("host".into()))));
        assert_eq!(tree.get("cpu"), None);
        assert_eq!(tree.take("/disks/1/nothing/there").map(|(at, _)| at), Some("/disks/1".into()));
        assert_eq!(tree.take("/a~1b").map(|(at, _)| at), Some("/a~1b".into()));
        assert_eq!(tree.take("/none"), None);
        assert_eq!(tree.take(""), None);
    }
}
