//! The records: orders of a shop, the same each time.

use serde::Serialize;

const REGIONS: [&str; 4] = ["north", "east", "south", "west"];
const CUSTOMERS: [&str; 12] =
    ["Adler", "Berger", "Conrad", "Dorn", "Ebner", "Falk", "Gruber", "Hahn", "Ilg", "Jost", "Kern", "Lang"];

/// The number of orders.
pub(crate) const COUNT: u64 = 3_000;

/// An order.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) customer: &'static str,
    pub(crate) region: &'static str,
    pub(crate) paid: bool,
    /// In cents.
    pub(crate) total: u64,
}

/// All orders.
pub(crate) fn all() -> Vec<Order> {
    let mut state = 42_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut order = |id| Order {
        id,
        customer: CUSTOMERS[next(12) as usize],
        region: REGIONS[next(4) as usize],
        paid: next(10) < 8,
        total: 500 + next(20_000),
    };
    (1..=COUNT).map(&mut order).collect()
}

/// The expected answer: the number of paid orders of the north, and their total value in cents.
pub(crate) fn answer(orders: &[Order]) -> (u64, u64) {
    let wanted = orders.iter().filter(|order| order.paid && order.region == "north");
    wanted.fold((0, 0), |(count, total), order| (count + 1, total + order.total))
}
