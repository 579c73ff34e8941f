//! From parser events to documents.
//!
//! The event parser keeps its own stack on the heap; the recursion here is bounded by `MAX_DEPTH`.

use super::{
    Document, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, MAX_TEXT, Pos, Positions, Problem, Spot, Stream, push_key,
    scalar,
};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// Reads all documents of a text.
pub(super) fn build(text: &str) -> Stream {
    let mut builder = Builder::new(text);
    // A stop has left its problem behind; the documents before it stay.
    let _ = builder.stream();
    builder.out
}

/// The rest of the file can't be read. The problem is already noted.
struct Stop;

/// A finished node.
struct Node {
    value: Value,
    /// Levels of nesting below it.
    height: usize,
}

/// What an alias stands for.
struct Anchor {
    value: Value,
    height: usize,
    /// Pointers relative to the anchored node, its own ("") first.
    spots: Vec<(Box<str>, Spot)>,
    text: usize,
}

struct Builder<'a> {
    source: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    out: Stream,
    /// Pointer of the node that is being read.
    path: String,
    spots: Vec<(Box<str>, Spot)>,
    anchors: HashMap<usize, Anchor>,
    nodes: usize,
    text: usize,
    /// Inside a key that is refused as a whole: nothing more to say about its parts.
    muted: bool,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            source: text,
            parser: Parser::new_from_str(text),
            out: Stream::default(),
            path: String::new(),
            spots: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            text: 0,
            muted: false,
        }
    }

    fn stream(&mut self) -> Result<(), Stop> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), _) => {
                    self.path.clear();
                    self.spots.clear();
                    self.anchors.clear();
                    let (event, span) = self.next()?;
                    let node = self.node(event, span, None, 0)?;
                    let positions = Positions::new(std::mem::take(&mut self.spots));
                    self.out.documents.push(Document { value: node.value, positions });
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Stop> {
        match self.parser.next_event() {
            Some(Ok((_, span))) if self.out.problems.len() >= MAX_PROBLEMS => {
                let message = format!("more than {MAX_PROBLEMS} mistakes: the rest of the file is not read");
                Err(self.stop(pos(&span.start), "too-many-mistakes", message, ""))
            }
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let at = pos(error.marker());
                if error.info().contains("tab")
                    && let Some(at) = self.indenting_tab(at.line)
                {
                    let message = "not valid YAML: a tab in the indentation";
                    return Err(self.stop(at, "yaml-syntax", message, "indent with spaces"));
                }
                if error.info().contains("unknown anchor") {
                    return Err(self.no_anchor(at, "the alias refers to an anchor that is not there"));
                }
                // Brackets in brackets, beyond the parser's own bound.
                if error.info().contains("recursion limit") {
                    return Err(self.too_deep(at));
                }
                let message = format!("not valid YAML: {}", error.info());
                let help = "check indentation (spaces only), quotes, and the space after each colon";
                Err(self.stop(at, "yaml-syntax", message, help))
            }
            // Cannot come before the end of the stream; ends the reading if it ever does.
            None => Err(Stop),
        }
    }

    /// The first tab before a line's content, from a line on. The parser reports the token before it.
    fn indenting_tab(&self, from: u32) -> Option<Pos> {
        let lines = (1u32..).zip(self.source.lines()).skip_while(|(line, _)| *line < from);
        lines.filter(|(_, text)| !text.trim().is_empty()).find_map(|(line, text)| {
            let indent = text.chars().take_while(|c| c.is_whitespace()).position(|c| c == '\t')?;
            Some(Pos { line, column: u32::try_from(indent).ok()?.saturating_add(1) })
        })
    }

    fn note(&mut self, at: Pos, code: &'static str, message: impl Into<String>, help: &str) {
        if self.muted {
            return;
        }
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.out.problems.push(Problem {
            at,
            code,
            pointer: self.path.clone(),
            message: message.into(),
            help,
        });
    }

    fn stop(&mut self, at: Pos, code: &'static str, message: impl Into<String>, help: &str) -> Stop {
        self.muted = false;
        self.note(at, code, message, help);
        Stop
    }

    /// Counts nodes and text against the bounds.
    fn spend(&mut self, at: Pos, nodes: usize, text: usize) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.text = self.text.saturating_add(text);
        if self.nodes > MAX_NODES || self.text > MAX_TEXT {
            let message =
                format!("the file expands to more than {MAX_NODES} values or {MAX_TEXT} bytes of text");
            let help = "write fewer aliases (`*name`), or split the file";
            return Err(self.stop(at, "too-many-nodes", message, help));
        }
        Ok(())
    }

    fn check_depth(&mut self, at: Pos, depth: usize) -> Result<(), Stop> {
        if depth > MAX_DEPTH { Err(self.too_deep(at)) } else { Ok(()) }
    }

    fn too_deep(&mut self, at: Pos) -> Stop {
        self.stop(at, "too-deep", format!("nested deeper than {MAX_DEPTH} levels"), "")
    }

    fn node(&mut self, event: Event<'a>, span: Span, key: Option<Pos>, depth: usize) -> Result<Node, Stop> {
        let at = pos(&span.start);
        self.check_depth(at, depth)?;
        let (first, text_before) = (self.spots.len(), self.text);
        self.spots.push((self.path.as_str().into(), Spot { key, value: at }));
        let (node, anchor) = match event {
            Event::Alias(id) => return self.alias(id, at, key, depth),
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(at, 1, text.len())?;
                let value = self.scalar(&text, style, tag.as_deref(), at);
                (Node { value, height: 0 }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.spend(at, 1, 0)?;
                self.collection_tag(tag, "seq", at);
                (self.sequence(depth)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.spend(at, 1, 0)?;
                self.collection_tag(tag, "map", at);
                (self.mapping(depth)?, anchor)
            }
            // The parser's grammar has no other event here.
            _ => return Err(self.stop(at, "yaml-syntax", "not valid YAML", "")),
        };
        if anchor > 0 {
            let own = self.path.len();
            let spots = self.spots.get(first..).unwrap_or_default();
            let spots = spots.iter().map(|(at, s)| (at.get(own..).unwrap_or_default().into(), *s)).collect();
            let text = self.text - text_before;
            self.anchors
                .insert(anchor, Anchor { value: node.value.clone(), height: node.height, spots, text });
        }
        Ok(node)
    }

    fn no_anchor(&mut self, at: Pos, message: &str) -> Stop {
        let help =
            "an alias can only stand behind its anchor (`&name`), in the same document and outside of it";
        self.stop(at, "unknown-alias", message, help)
    }

    fn alias(&mut self, id: usize, at: Pos, key: Option<Pos>, depth: usize) -> Result<Node, Stop> {
        let Some(anchor) = self.anchors.get(&id) else {
            return Err(self.no_anchor(at, "the alias refers to an anchor that is not complete"));
        };
        let (nodes, text, height) = (anchor.spots.len(), anchor.text, anchor.height);
        self.spend(at, nodes, text)?;
        self.check_depth(at, depth + height)?;
        let Some(anchor) = self.anchors.get(&id) else { return Err(Stop) };
        self.spots.pop();
        for (relative, spot) in &anchor.spots {
            let spot = if relative.is_empty() { Spot { key, value: at } } else { *spot };
            self.spots.push((format!("{}{relative}", self.path).into(), spot));
        }
        Ok(Node { value: anchor.value.clone(), height })
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, Stop> {
        let (mut items, mut height) = (Vec::new(), 0);
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Node { value: Value::Array(items), height });
            }
            let own = self.path.len();
            self.path.push('/');
            self.path.push_str(&items.len().to_string());
            let node = self.node(event, span, None, depth + 1)?;
            self.path.truncate(own);
            height = height.max(node.height + 1);
            items.push(node.value);
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, Stop> {
        let mut entries: BTreeMap<String, (Value, Pos)> = BTreeMap::new();
        let mut height = 0;
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                let map: Map<String, Value> =
                    entries.into_iter().map(|(key, (value, _))| (key, value)).collect();
                return Ok(Node { value: Value::Object(map), height });
            }
            let key_at = pos(&span.start);
            let key = self.key(event, span, depth)?;
            let (own, first) = (self.path.len(), self.spots.len());
            if let Some(key) = &key {
                push_key(&mut self.path, key);
                if let Some((_, Pos { line, .. })) = entries.get(key) {
                    let message = format!("`{key}` is already given in line {line}");
                    self.note(key_at, "duplicate-key", message, "keep one of the two");
                }
            }
            let (event, span) = self.next()?;
            let node = self.node(event, span, Some(key_at), depth + 1)?;
            self.path.truncate(own);
            height = height.max(node.height + 1);
            match key {
                Some(key) if !entries.contains_key(&key) => {
                    entries.insert(key, (node.value, key_at));
                }
                _ => self.spots.truncate(first),
            }
        }
    }

    /// The text of a key; `None` when it is something else, which is noted.
    fn key(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Option<String>, Stop> {
        let at = pos(&span.start);
        let help = "put the key in quotes";
        match &event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<" => {
                let message = "merge keys (`<<`) are not part of YAML 1.2 and nothing is merged here";
                self.note(
                    at,
                    "merge-key",
                    message,
                    "write the fields out; an alias may stand for a whole value",
                );
                self.spend(at, 1, 2)?;
                return Ok(None);
            }
            Event::Scalar(text, style, 0, None) => {
                self.spend(at, 1, text.len())?;
                if *style != ScalarStyle::Plain || matches!(scalar::resolve(text), Ok(Value::String(_))) {
                    return Ok(Some(text.to_string()));
                }
                self.note(at, "key-not-text", "a key must be text, not a number, a boolean or null", help);
                return Ok(None);
            }
            _ => {}
        }
        self.note(at, "key-not-text", "a key must be plain text without anchor, alias or tag", help);
        let first = self.spots.len();
        let muted = std::mem::replace(&mut self.muted, true);
        self.node(event, span, None, depth + 1)?;
        self.muted = muted;
        self.spots.truncate(first);
        Ok(None)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Pos) -> Value {
        let value = match tag {
            // The non-specific tag `!` means: take it as text.
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(Value::String(text.to_owned())),
            Some(tag) if tag.is_yaml_core_schema() => scalar::tagged(text, &tag.suffix),
            Some(_) => Err(("unknown-tag", "tags of other programs are not read")),
            None if style == ScalarStyle::Plain => scalar::resolve(text),
            None => Ok(Value::String(text.to_owned())),
        };
        value.unwrap_or_else(|(code, message)| {
            self.note(at, code, message, "");
            Value::Null
        })
    }

    fn collection_tag(&mut self, tag: Option<Cow<'a, Tag>>, fits: &str, at: Pos) {
        let Some(tag) = tag else { return };
        let non_specific = tag.handle.is_empty() && tag.suffix == "!";
        if !(non_specific || (tag.is_yaml_core_schema() && tag.suffix == fits)) {
            self.note(at, "unknown-tag", "tags of other programs are not read", "remove the tag");
        }
    }
}

fn pos(marker: &Marker) -> Pos {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Pos { line: number(marker.line()), column: number(marker.col()).saturating_add(1) }
}
