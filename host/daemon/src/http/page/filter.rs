//! Which objects of a table are shown.

use crate::ObjectStatus;
use maud::{Markup, html};
use serde::Deserialize;

/// Rows of one page of a table.
pub(super) const ROWS: usize = 100;
/// Longest search text that is looked at.
const LONGEST: usize = 200;
/// States, worst first, as the filter offers and the table orders them.
pub(super) const STATES: [&str; 11] = [
    "failed",
    "anomalous",
    "unknown",
    "drift",
    "desired",
    "in-progress",
    "pending",
    "deferred",
    "pruned",
    "skipped",
    "converged",
];

/// From the query; anything else in it is ignored.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Filter {
    /// Part of a name, node, vmid, kind or reason.
    pub q: String,
    /// One of [`STATES`], `open` for all that are not converged, or empty for all.
    pub state: String,
    /// A kind, or empty.
    pub kind: String,
    /// A cluster, or empty.
    pub cluster: String,
    /// From 1.
    pub page: String,
}

impl Filter {
    /// Whether a row is shown. Words of the search must all be there, in any order and case.
    pub(super) fn shows(&self, cluster: &str, o: &ObjectStatus) -> bool {
        let state = match self.state.as_str() {
            "" => true,
            "open" => o.state != "converged" && o.state != "skipped",
            state => o.state == state,
        };
        if !state
            || !(self.kind.is_empty() || self.kind == o.kind)
            || !(self.cluster.is_empty() || self.cluster == cluster)
        {
            return false;
        }
        if self.q.trim().is_empty() {
            return true;
        }
        let vmid = o.vmid.map(|v| v.to_string()).unwrap_or_default();
        let reason = o.reason.as_deref().unwrap_or_default();
        let node = o.node.as_deref().unwrap_or_default();
        let row =
            format!("{cluster} {}/{} {node} {vmid} {} {reason}", o.kind, o.name, o.state).to_lowercase();
        let wanted: String = self.q.chars().take(LONGEST).collect();
        wanted.to_lowercase().split_whitespace().all(|word| row.contains(word))
    }

    /// From 0.
    pub(super) fn page(&self, rows: usize) -> usize {
        let last = rows.saturating_sub(1) / ROWS;
        self.page.parse::<usize>().unwrap_or(1).saturating_sub(1).min(last)
    }

    /// The query of the same filter with another page.
    pub(super) fn query(&self, page: usize) -> String {
        let enc = super::parts::encode;
        let pairs =
            [("q", &self.q), ("state", &self.state), ("kind", &self.kind), ("cluster", &self.cluster)];
        let pairs = pairs.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| format!("{k}={}", enc(v)));
        let pairs: Vec<String> = pairs.chain([format!("page={}", page + 1)]).collect();
        format!("?{}#objects", pairs.join("&"))
    }

    /// The form. `clusters` is empty on a cluster's own page.
    pub(super) fn form(&self, kinds: &[&str], clusters: &[&str]) -> Markup {
        let choice = |name: &str, label: &str, all: &str, chosen: &str, words: &[&str]| {
            html! {
                label { span { (label) }
                    select name=(name) {
                        option value="" selected[chosen.is_empty()] { (all) }
                        @if name == "state" { option value="open" selected[chosen == "open"] { "not converged" } }
                        @for word in words { option value=(word) selected[chosen == *word] { (word) } }
                    }
                }
            }
        };
        html! {
            form.filter method="get" action="#objects" role="search" aria-label="Objects" {
                label.search { span { "Search" }
                    input type="search" name="q" value=(self.q) maxlength=(LONGEST) autocomplete="off"
                        placeholder="name, node, vmid, reason" aria-keyshortcuts="/";
                }
                (choice("state", "State", "all states", &self.state, &STATES))
                (choice("kind", "Kind", "all kinds", &self.kind, kinds))
                @if !clusters.is_empty() { (choice("cluster", "Cluster", "all clusters", &self.cluster, clusters)) }
                button type="submit" { "Show" }
            }
        }
    }
}

/// Worst first.
pub(super) fn rank(state: &str) -> usize {
    STATES.iter().position(|s| *s == state).unwrap_or(STATES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(name: &str, state: &'static str) -> ObjectStatus {
        ObjectStatus {
            kind: "VM".to_owned(),
            name: name.to_owned(),
            node: Some("pve01".to_owned()),
            vmid: Some(104),
            state: state.into(),
            reason: None,
            last_action: None,
            last_error: None,
            updated_at: None,
        }
    }

    #[test]
    fn a_search_finds_all_its_words_in_any_order_and_case() {
        let with =
            |q: &str| Filter { q: q.to_owned(), ..Filter::default() }.shows("lab", &vm("web-01", "drift"));
        for q in ["", "WEB", "104", "pve01 web", "drift vm/web", "lab"] {
            assert!(with(q), "{q}");
        }
        assert!(!with("db"));
        assert!(!with("web db"));
    }

    #[test]
    fn open_means_everything_that_wants_a_look() {
        let open = Filter { state: "open".to_owned(), ..Filter::default() };
        assert!(open.shows("lab", &vm("a", "drift")));
        assert!(!open.shows("lab", &vm("a", "converged")));
    }

    #[test]
    fn a_page_beyond_the_last_is_the_last() {
        let page = |page: &str, rows| Filter { page: page.to_owned(), ..Filter::default() }.page(rows);
        assert_eq!(
            (page("", 250), page("2", 250), page("99", 250), page("-1", 250), page("9", 0)),
            (0, 1, 2, 0, 0)
        );
    }
}
