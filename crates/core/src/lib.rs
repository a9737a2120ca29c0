//! Data, rules and ports of Backstitch. No IO.
