//! YAML as a positioned tree: keys, scalars and where they stand in the text, comments included.
//!
//! Only what a SOPS document can hold is accepted: string keys, no duplicates, no aliases.

use std::collections::BTreeSet;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::scalar::{self, Resolved};

/// Larger files are refused: a file of secrets is small.
const MAX_BYTES: usize = 16 << 20;
/// Deeper trees are refused.
const MAX_DEPTH: usize = 100;

/// A node and its place in the text.
#[derive(Debug)]
pub(crate) struct Node {
    /// Bytes of the text. Of a block collection: from its first token to the end of its last scalar; of a
    /// block scalar: its lines without the header.
    pub(crate) span: Range<usize>,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Map { entries: Vec<Entry>, column: usize, flow: bool },
    List { items: Vec<Item> },
    Scalar { text: String, resolved: Resolved },
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node,
    /// Comments right before the key, without `#`.
    pub(crate) comments: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) value: Node,
    /// Comments right before the item, without `#`.
    pub(crate) comments: Vec<String>,
}

/// Why the text is refused, with line and column from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) position: Option<(usize, usize)>,
    pub(crate) reason: String,
}

impl Node {
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map { entries, .. } => entries,
            _ => &[],
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub(crate) fn items(&self) -> &[Item] {
        match &self.content {
            Content::List { items } => items,
            _ => &[],
        }
    }

    /// The text of a scalar; `None` for null and collections.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { resolved: Resolved::Null, .. } => None,
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { resolved: Resolved::Null, .. })
    }
}

/// Parses every document of the text. Each root is a map; a document without content is left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, Refused> {
    if text.len() > MAX_BYTES {
        return Err(Refused { position: None, reason: format!("larger than {} MiB", MAX_BYTES >> 20) });
    }
    let events = events(text)?;
    let mut builder =
        Builder { comments: comments(text, &events), next_comment: 0, stack: Vec::new(), roots: vec![] };
    for (event, place) in events {
        builder.event(event, place)?;
    }
    Ok(builder.roots)
}

/// Where an event stands: bytes, line and column from 1.
#[derive(Debug, Clone)]
struct Place {
    span: Range<usize>,
    line: usize,
    column: usize,
}

impl Place {
    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, Refused> {
        Err(Refused { position: Some((self.line, self.column)), reason: reason.into() })
    }
}

fn events(text: &str) -> Result<Vec<(Event<'_>, Place)>, Refused> {
    // The parser counts characters; the writer needs bytes.
    let offsets: Option<Vec<usize>> =
        (!text.is_ascii()).then(|| text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect());
    let byte = |index: usize| match &offsets {
        None => index.min(text.len()),
        Some(offsets) => offsets.get(index).copied().unwrap_or(text.len()),
    };
    let place = |span: &Span| Place {
        span: byte(span.start.index())..byte(span.end.index()).max(byte(span.start.index())),
        line: span.start.line(),
        column: span.start.col() + 1,
    };
    let mut events = Vec::new();
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => events.push((event, place(&span))),
            Err(error) => {
                let marker = error.marker();
                return Err(Refused {
                    position: Some((marker.line(), marker.col() + 1)),
                    reason: format!("not YAML: {}", error.info()),
                });
            }
        }
    }
    Ok(events)
}

/// A comment that has its line to itself.
struct Comment {
    start: usize,
    column: usize,
    text: String,
}

/// Comments on lines of their own, outside of scalars.
fn comments(text: &str, events: &[(Event<'_>, Place)]) -> Vec<Comment> {
    let mut scalars = events
        .iter()
        .filter(|(event, _)| matches!(event, Event::Scalar(..)))
        .map(|(_, place)| place.span.clone())
        .peekable();
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        let Some(body) = line.trim().strip_prefix('#') else { continue };
        while scalars.next_if(|span| span.end <= at).is_some() {}
        if scalars.peek().is_some_and(|span| span.start <= at) {
            continue;
        }
        found.push(Comment { start: at, column: at + line.len() - start + 1, text: body.to_owned() });
    }
    found
}

enum Frame {
    Map {
        entries: Vec<Entry>,
        keys: BTreeSet<String>,
        key: Option<(String, Place, Vec<String>)>,
        start: Place,
        lead: Vec<String>,
    },
    List {
        items: Vec<Item>,
        start: Place,
        lead: Vec<String>,
    },
}

struct Builder {
    comments: Vec<Comment>,
    next_comment: usize,
    stack: Vec<Frame>,
    roots: Vec<Node>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, place: Place) -> Result<(), Refused> {
        match event {
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref(), place),
            Event::SequenceStart(..) => {
                let lead = self.begin(&place)?;
                self.stack.push(Frame::List { items: Vec::new(), start: place, lead });
                Ok(())
            }
            Event::MappingStart(..) => {
                let lead = self.begin(&place)?;
                self.stack.push(Frame::Map {
                    entries: Vec::new(),
                    keys: BTreeSet::new(),
                    key: None,
                    start: place,
                    lead,
                });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(place),
            Event::Alias(_) => place.refuse("aliases are not used in encrypted documents"),
            _ => Ok(()),
        }
    }

    /// Comments before a list item that starts here; a key takes its own in [`Builder::scalar`].
    fn begin(&mut self, place: &Place) -> Result<Vec<String>, Refused> {
        if self.stack.len() >= MAX_DEPTH {
            return place.refuse("nested too deeply");
        }
        if matches!(self.stack.last(), Some(Frame::Map { key: None, .. })) {
            return place.refuse("a key must be a string");
        }
        Ok(self.item_comments(place))
    }

    fn item_comments(&mut self, place: &Place) -> Vec<String> {
        match self.stack.last() {
            Some(Frame::List { .. }) => self.take_comments(place.span.start, |column| column < place.column),
            _ => Vec::new(),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        place: Place,
    ) -> Result<(), Refused> {
        let resolved = scalar::resolve(text, style == ScalarStyle::Plain, tag);
        if matches!(self.stack.last(), Some(Frame::Map { key: None, .. })) {
            if !matches!(resolved, Resolved::Str(_)) {
                return place.refuse("a key must be a string");
            }
            let lead = self.take_comments(place.span.start, |column| column == place.column);
            if let Some(Frame::Map { key, keys, .. }) = self.stack.last_mut() {
                if !keys.insert(text.to_owned()) {
                    return place.refuse(format!("key {text} appears twice"));
                }
                *key = Some((text.to_owned(), place, lead));
            }
            return Ok(());
        }
        if matches!(resolved, Resolved::TooLarge) {
            return place.refuse("an integer of more than 63 bits");
        }
        let lead = self.item_comments(&place);
        let node =
            Node { span: place.span.clone(), content: Content::Scalar { text: text.to_owned(), resolved } };
        self.attach(node, lead, &place)
    }

    fn end(&mut self, place: Place) -> Result<(), Refused> {
        let (content, start, lead, last) = match self.stack.pop() {
            Some(Frame::Map { entries, start, lead, .. }) => {
                let last = entries.last().map(|entry| entry.value.span.end.max(entry.key_span.end));
                let flow = !place.span.is_empty();
                (Content::Map { entries, column: start.column, flow }, start, lead, last)
            }
            Some(Frame::List { items, start, lead }) => {
                let last = items.last().map(|item| item.value.span.end);
                (Content::List { items }, start, lead, last)
            }
            None => return place.refuse("unbalanced"),
        };
        // A block collection ends with its last scalar; only flow style has a closing token.
        let end = if place.span.is_empty() { last.unwrap_or(start.span.end) } else { place.span.end };
        let node = Node { span: start.span.start..end.max(start.span.start), content };
        self.attach(node, lead, &start)
    }

    fn attach(&mut self, node: Node, lead: Vec<String>, place: &Place) -> Result<(), Refused> {
        match self.stack.last_mut() {
            Some(Frame::Map { entries, key, .. }) => match key.take() {
                Some((key, at, comments)) => {
                    entries.push(Entry { key, key_span: at.span, value: node, comments });
                    Ok(())
                }
                None => place.refuse("a key must be a string"),
            },
            Some(Frame::List { items, .. }) => {
                items.push(Item { value: node, comments: lead });
                Ok(())
            }
            None => match node.content {
                Content::Map { .. } => {
                    self.roots.push(node);
                    Ok(())
                }
                _ if node.is_null() => Ok(()),
                _ => place.refuse("the document must be a map"),
            },
        }
    }

    /// Takes the comments before `position`; those whose column does not fit belong to what came before.
    fn take_comments(&mut self, position: usize, fits: impl Fn(usize) -> bool) -> Vec<String> {
        let mut taken = Vec::new();
        while let Some(comment) = self.comments.get(self.next_comment).filter(|c| c.start < position) {
            if fits(comment.column) {
                taken.push(comment.text.clone());
            }
            self.next_comment += 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Node {
        parse(text).unwrap().remove(0)
    }

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().reason
    }

    #[test]
    fn spans_cover_exactly_what_is_written() {
        let text = "é: plain  # note\n'q': \"dou\\\"ble\"\nblock: |\n  # not a comment\n  x\nnone:\nlast: [1, {a: b}]\n";
        let root = root(text);
        let at = |key: &str| &text[root.entry(key).unwrap().value.span.clone()];
        assert_eq!(at("é"), "plain");
        assert_eq!(at("q"), "\"dou\\\"ble\"");
        assert_eq!(at("block").trim_end(), "# not a comment\n  x", "without its header");
        assert_eq!(at("last"), "[1, {a: b}]");
        assert_eq!(&text[root.entry("q").unwrap().key_span.clone()], "'q'");
        assert!(root.entry("none").unwrap().value.is_null());
    }

    #[test]
    fn comments_belong_to_the_key_or_item_that_they_stand_above() {
        let root = root(
            "#a\n# b\nk:\n    #c\n    x: 1\n    #deep foot\nl:\n    #d\n    - 1\n    - y: |\n        #text\n      #e\n      z: 2\n",
        );
        assert_eq!(root.entry("k").unwrap().comments, ["a", " b"]);
        assert_eq!(root.entry("k").unwrap().value.entry("x").unwrap().comments, ["c"]);
        let list = &root.entry("l").unwrap().value;
        assert!(root.entry("l").unwrap().comments.is_empty());
        assert_eq!(list.items()[0].comments, ["d"]);
        assert!(list.items()[1].comments.is_empty());
        assert_eq!(list.items()[1].value.entry("z").unwrap().comments, ["e"]);
    }

    #[test]
    fn what_the_format_can_not_hold_is_refused() {
        assert!(refused("a: 1\nb: {c: 1, c: 2}\n").contains("twice"));
        assert!(refused("1: x\n").contains("string"));
        assert!(refused("{a: b}: x\n").contains("string"));
        assert!(refused("- a\n").contains("map"));
        assert!(refused("text\n").contains("map"));
        assert!(refused("a: &x 1\nb: *x\n").contains("alias"));
        assert!(refused("a: 9223372036854775808\n").contains("63"));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        for open in ["[", "{a: ", "- ", "? "] {
            let text = format!("a:\n  {}", open.repeat(20_000));
            assert!(parse(&text).is_err(), "{open}");
        }
    }
}
