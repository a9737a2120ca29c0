//! Columns of a graph of records, drawn from the newest node to the oldest.
//!
//! Every column is a line that leads down to a node that comes later. A node that several lines lead to joins
//! them. A node that no line leads to starts a line of its own. A leaf is a node without a line from above or
//! to below: it is drawn beside its parent.

use std::collections::HashMap;

/// Characters of a graph.
pub(super) struct Characters {
    pub(super) current: &'static str,
    pub(super) node: &'static str,
    pub(super) failure: &'static str,
    pub(super) rescue: &'static str,
    line: &'static str,
    join: &'static str,
    start: &'static str,
    dash: &'static str,
    cross: &'static str,
    up: &'static str,
    end: &'static str,
}

impl Characters {
    pub(super) const UNICODE: Self = Self {
        current: "@",
        node: "○",
        failure: "×",
        rescue: "◇",
        line: "│",
        join: "├",
        start: "╭",
        dash: "─",
        cross: "┼",
        up: "┴",
        end: "╯",
    };

    pub(super) const ASCII: Self = Self {
        current: "@",
        node: "o",
        failure: "x",
        rescue: "*",
        line: "|",
        join: "|",
        start: ".",
        dash: "-",
        cross: "+",
        up: "-",
        end: "'",
    };
}

/// A node that is drawn beside its parent.
pub(super) struct Leaf<T> {
    pub(super) symbol: &'static str,
    pub(super) content: T,
}

/// A row of the graph, with the content of a node if it has one.
pub(super) struct GraphRow<T> {
    pub(super) prefix: String,
    pub(super) content: Option<T>,
}

/// A graph that is drawn from top to bottom.
pub(super) struct Graph<T> {
    characters: Characters,
    /// The node that each column leads to.
    columns: Vec<Option<u64>>,
    leaves: HashMap<u64, Vec<Leaf<T>>>,
}

impl<T> Graph<T> {
    /// Creates a graph whose first column leads to `newest`.
    pub(super) fn new(characters: Characters, newest: Option<u64>) -> Self {
        Self { characters, columns: vec![newest], leaves: HashMap::new() }
    }

    pub(super) fn characters(&self) -> &Characters {
        &self.characters
    }

    /// Adds a leaf beside a node that is not drawn yet.
    pub(super) fn add_leaf(&mut self, node: u64, leaf: Leaf<T>) {
        self.leaves.entry(node).or_default().push(leaf);
    }

    /// Leaves out a node: lines and leaves that lead to it lead to its parent instead.
    pub(super) fn pass(&mut self, node: u64, parent: Option<u64>) {
        for column in self.columns.iter_mut().filter(|column| **column == Some(node)) {
            *column = parent;
        }
        if let (Some(leaves), Some(parent)) = (self.leaves.remove(&node), parent) {
            self.leaves.entry(parent).or_default().extend(leaves);
        }
    }

    /// Draws a node.
    pub(super) fn node(
        &mut self,
        node: u64,
        parent: Option<u64>,
        symbol: &'static str,
        content: T,
    ) -> Vec<GraphRow<T>> {
        let mut rows = Vec::new();
        let found = self.columns.iter().position(|column| *column == Some(node));
        let own = found.unwrap_or_else(|| self.free(0));
        let mut is_started = found.is_some();
        if is_started {
            rows.extend(self.join_columns(own, node));
        }
        for leaf in self.leaves.remove(&node).unwrap_or_default() {
            self.columns[own] = is_started.then_some(node);
            let beside = self.free(own + 1);
            rows.push(self.row(beside, leaf.symbol, Some(leaf.content)));
            (self.columns[own], self.columns[beside]) = (Some(node), Some(node));
            let prefix = self.join(own, beside, is_started);
            rows.push(GraphRow { prefix, content: None });
            self.columns[beside] = None;
            self.trim();
            is_started = true;
        }
        self.columns[own] = Some(node);
        rows.push(self.row(own, symbol, Some(content)));
        self.columns[own] = parent;
        self.trim();
        rows
    }

    /// Returns a free column from `first` on.
    fn free(&mut self, first: usize) -> usize {
        let found = self.columns.iter().skip(first).position(Option::is_none);
        let free = found.map_or(self.columns.len().max(first), |offset| first + offset);
        self.columns.resize(self.columns.len().max(free + 1), None);
        free
    }

    /// Joins all columns that lead to a node into the first of them.
    fn join_columns(&mut self, own: usize, node: u64) -> Option<GraphRow<T>> {
        let last = self.columns.iter().rposition(|column| *column == Some(node))?;
        if last == own {
            return None;
        }
        let prefix = self.join(own, last, true);
        for column in self.columns.iter_mut().skip(own + 1).filter(|column| **column == Some(node)) {
            *column = None;
        }
        self.trim();
        Some(GraphRow { prefix, content: None })
    }

    /// Draws the row that joins the columns from `own` to `last` that lead to the same node.
    fn join(&self, own: usize, last: usize, is_started: bool) -> String {
        let characters = &self.characters;
        let mut row = String::new();
        for (index, column) in self.columns.iter().enumerate() {
            let is_same = *column == self.columns[own];
            let (mark, is_inside) = match index {
                index if index == own => (if is_started { characters.join } else { characters.start }, true),
                index if index == last => (characters.end, false),
                index if index > own && index < last => match (is_same, column) {
                    (true, _) => (characters.up, true),
                    (false, Some(_)) => (characters.cross, true),
                    (false, None) => (characters.dash, true),
                },
                _ if column.is_some() => (characters.line, false),
                _ => (" ", false),
            };
            row.push_str(mark);
            row.push_str(if is_inside { characters.dash } else { " " });
        }
        row.trim_end().to_owned()
    }

    fn row(&self, own: usize, symbol: &str, content: Option<T>) -> GraphRow<T> {
        let mut prefix = String::new();
        for (index, column) in self.columns.iter().enumerate() {
            prefix.push_str(match column {
                _ if index == own => symbol,
                Some(_) => self.characters.line,
                None => " ",
            });
            prefix.push(' ');
        }
        GraphRow { prefix, content }
    }

    fn trim(&mut self) {
        while self.columns.last() == Some(&None) {
            self.columns.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(graph: &mut Graph<String>, nodes: &[(u64, Option<u64>)]) -> Vec<String> {
        let mut lines = Vec::new();
        for (node, parent) in nodes {
            let symbol = graph.characters().node;
            for row in graph.node(*node, *parent, symbol, node.to_string()) {
                lines.push(format!("{}{}", row.prefix, row.content.unwrap_or_default()));
            }
        }
        lines
    }

    fn chain(range: std::ops::Range<u64>, jumps: &[(u64, u64)]) -> Vec<(u64, Option<u64>)> {
        let parent = |node: u64| {
            let jump = jumps.iter().find(|(at, _)| *at == node).map(|(_, to)| *to);
            jump.or(node.checked_sub(1))
        };
        range.rev().map(|node| (node, parent(node))).collect()
    }

    #[test]
    fn a_rewind_branches_off_and_joins_where_it_went() {
        let mut graph = Graph::new(Characters::UNICODE, Some(5));
        let lines = drawn(&mut graph, &chain(0..6, &[(4, 1)]));
        assert_eq!(lines, ["○ 5", "○ 4", "│ ○ 3", "│ ○ 2", "├─╯", "○ 1", "○ 0"]);
    }

    #[test]
    fn columns_between_are_crossed_and_used_again() {
        let mut graph = Graph::new(Characters::ASCII, Some(8));
        let lines = drawn(&mut graph, &chain(0..9, &[(8, 1), (6, 4), (4, 1)]));
        let expected = [
            "o 8", "| o 7", "| o 6", "| | o 5", "| |-'", "| o 4", "| | o 3", "| | o 2", "|---'", "o 1", "o 0",
        ];
        // The columns of 4 and of 2 both lead to 1.
        assert_eq!(lines, expected);
    }

    #[test]
    fn leaves_stand_beside_their_parents_also_when_those_are_left_out() {
        let mut graph = Graph::new(Characters::UNICODE, Some(3));
        let leaf = |text: &str| Leaf { symbol: "◇", content: text.to_owned() };
        graph.add_leaf(3, leaf("rescue"));
        graph.add_leaf(2, leaf("fork"));
        let mut lines = drawn(&mut graph, &[(3, Some(2))]);
        graph.pass(2, Some(1));
        lines.extend(drawn(&mut graph, &[(1, Some(0)), (0, None)]));
        assert_eq!(lines, ["│ ◇ rescue", "├─╯", "○ 3", "│ ◇ fork", "├─╯", "○ 1", "○ 0"]);
        let mut graph = Graph::new(Characters::UNICODE, None);
        graph.add_leaf(1, leaf("rescue"));
        assert_eq!(drawn(&mut graph, &[(1, None)]), ["  ◇ rescue", "╭─╯", "○ 1"]);
    }
}
